#pragma once

#include <cstdint>

/// What the kernels of all backends compute: the recurrence of fast weights through many steps, for several
/// matrices side by side. README.md has the mathematics.
///
/// Delta's and Oja's rules are one recurrence: a stage reads r = M p and writes M' = g p^T with
/// g = beta phi(s, r). Delta: M = W, p = k, s = v. Oja: M = W^T, p = v, s = k.

namespace fastweights::kernels {

inline constexpr int64_t kScanStages = 4;
inline constexpr int64_t kScanWidth = 64;
inline constexpr int64_t kScanQueries = 2;

/// phi: s, s - r, tanh(s - r), softmax(s - r)
enum class ScanPhi { Value, Difference, Tanh, Softmax };

/// The activation of the slow net's projections before they enter the rule.
enum class ScanForm { Raw, Tanh, Softmax, Sigmoid };

/// Whether the matrix is W, or its transpose.
enum class ScanMatrix { Plain, Transposed };

/// Which side of the matrix a query stands at: M q or M^T q.
enum class ScanRead { Along, Across };

/// A method with stages, or the closed solution for p, s and beta that are constant over a step. A flow has
/// one stage: its slope is the mean over the step, and queries read M in the middle of the step.
enum class ScanStep { Stages, Flow };

/// p, s and beta come ready-made, or are made of features z: form(weight z).
enum class ScanSource { Given, Features };

/// p, s or beta of a step and head: the number of rows (1: all stages share it; or one per stage), and if it
/// is projected from features, which ones and with which activation.
struct ScanPart {
  int64_t rows;
  int64_t begin, count;  // features
  ScanForm form;
};

struct ScanPlan {
  ScanPhi phi;
  ScanMatrix matrix;
  ScanStep step;
  ScanSource source;
  int64_t width;   // D
  int64_t heads;   // H
  int64_t stages;  // S
  double a[kScanStages][kScanStages];
  double b[kScanStages];
  ScanPart p, s, beta;
  int64_t z_rows, features;  // per step, F
  int64_t queries;           // per stage
  ScanRead read;
  int64_t stretch;  // steps between two kept matrices

  /// Packs (one value per lane) that a group keeps from forward to backward if its longest lane has `steps`.
  int64_t kept(int64_t steps) const { return (steps + stretch - 1) / stretch * width * width; }
  /// Steps whose features are worked on together.
  int64_t batch() const { return z_rows >= kScanStages ? 8 : 32; }
};

/// Arrays of a whole call. R: steps of all samples together; rows of p, s, beta and z as the plan says.
/// Absent arrays are null.
template <typename T>
struct ScanArrays {
  T *p, *s;                  // [R, rows, H, D]
  T* beta;                   // [R, rows, H]
  T* z;                      // [R, rows, F]
  T *p_weight, *s_weight;    // [H, D, features of the part]
  T* beta_weight;            // [H, features of the part]
  const T *p_mask, *s_mask;  // [B, H, D]: factors of p and s
  T* dt;                     // [R]
  T* start;                  // [B, H, D, D]
  T* out;                    // [M, H, D, D]
  T* q;                      // [R, S, queries, H, D]
  T* y;                      // [R, S, queries, H, D]
  T* g;                      // [R, S, H, D]: stage slopes are g p^T
};

}  // namespace fastweights::kernels

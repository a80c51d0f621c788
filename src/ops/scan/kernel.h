#pragma once

#include <cstdint>

/// The recurrence of fast weights through many steps, for several matrices side by side. README.md has the
/// mathematics.
///
/// Delta's and Oja's rules are one recurrence: a stage reads r = M p and writes M' = g p^T with
/// g = beta phi(s, r). Delta: M = W, p = k, s = v. Oja: M = W^T, p = v, s = k.

namespace fastweights::kernels {

inline constexpr int64_t kScanStages = 4;
inline constexpr int64_t kScanWidth = 64;
inline constexpr int64_t kScanQueries = 2;

/// phi: s, s - r, tanh(s - r), softmax(s - r)
enum class ScanPhi { Value, Difference, Tanh, Softmax };

/// What the slow net's numbers go through before they enter the rule.
enum class ScanForm { Raw, Tanh, Softmax, Sigmoid };

/// Whether the matrix is W, or its transpose.
enum class ScanMatrix { Plain, Transposed };

/// Which side of the matrix a query stands at: M q or M^T q.
enum class ScanRead { Along, Across };

/// A method with stages, or the exact solution of a linear rule with constant p, s and beta.
enum class ScanStep { Stages, ExactFlow };

/// p, s and beta come ready-made, or are made of features z: form(weight z).
enum class ScanSource { Given, Features };

/// Numbers per step and head of p, s or beta: how many rows (1: all stages share them; or one per stage), and
/// if they are made, from which features and through what.
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

  /// Packs, a number for every lane each, that a group keeps between forward and backward when its longest
  /// lane has so many steps.
  int64_t kept(int64_t steps) const { return (steps + stretch - 1) / stretch * width * width; }
  /// Steps whose features are worked on together.
  int64_t batch() const { return z_rows >= kScanStages ? 8 : 32; }
};

/// Where a group's packs stand in its scratch, in packs.
struct ScanLayout {
  int64_t m, phi, g;             // [stretch + 1][D][D], [stretch][S][D], [S][D]
  int64_t p, s, beta, dt, rate;  // [stretch][rows][D], ..., [stretch] each
  int64_t grad_p, grad_s, grad_beta, grad_dt;
  int64_t lambda, inner_g, inner_read;         // [D][D], [S][D], [rows of p][D]
  int64_t q, y;                                // [D] each
  int64_t weight[3], mask[3], grad_weight[3];  // of p, s, beta
  int64_t z, grad_z;                           // [batch][rows][F]
  int64_t size;
};
ScanLayout scan_layout(const ScanPlan& plan) noexcept;

/// Arrays of a whole call. R: steps of all samples together; rows of p, s, beta and z as the plan says.
/// What is not there is null.
template <typename T>
struct ScanArrays {
  T *p, *s;                  // [R, rows, H, D]
  T* beta;                   // [R, rows, H]
  T* z;                      // [R, rows, F]
  T *p_weight, *s_weight;    // [H, D, features of the part]
  T* beta_weight;            // [H, features of the part]
  const T *p_mask, *s_mask;  // [B, H, D]: factors of what was made
  T* dt;                     // [R]
  T* start;                  // [B, H, D, D]
  T* out;                    // [M, H, D, D]
  T* q;                      // [R, S, queries, H, D]
  T* y;                      // [R, S, queries, H, D]
  T* g;                      // [R, S, H, D]: stage slopes are g p^T, or beta g p^T with the exact flow
};

/// The recurrence of one lane.
struct ScanLane {
  int64_t sample, head;
  int64_t first, steps;   // rows of R
  const int64_t* places;  // [outputs]: numbers of steps after which M is wanted, rising, at most `steps`
  int64_t first_output, outputs;
};

/// Lanes side by side; those of one sample stand together in the order of their heads.
struct ScanGroup {
  const ScanLane* lanes;
  int64_t count;
};

/// How many lanes fit, for numbers of so many bytes.
int64_t scan_lanes(int64_t bytes) noexcept;

/// `kept` is null where no backward pass follows. Scratch and kept are aligned to 64 bytes.
template <typename T>
void scan_forward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group, T* kept,
                  T* scratch) noexcept;

/// Gradients in the layout of what they belong to. Of out, y and g they are given; null: there are none. Of
/// the rest they are wanted where not null: p, s, beta and q are set, start is set; weights are added to; z
/// and dt are set to the sum over the group's heads.
template <typename T>
void scan_backward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanArrays<T>& grads,
                   const ScanGroup& group, const T* kept, T* scratch) noexcept;

}  // namespace fastweights::kernels

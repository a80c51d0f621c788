#pragma once

#include "ops/scan/kernel.h"

/// The kernels of the CPU: groups of recurrences, one in each lane of a vector register, compiled once per
/// instruction set.

namespace fastweights::kernels {

/// Offsets of a group's arrays in its scratch memory, in packs.
struct ScanLayout {
  int64_t m, phi, g;       // [stretch + 1][D][D], [stretch][S][D], [S][D] (a flow: [2][D])
  int64_t p, s, beta, dt;  // [stretch][rows][D], ..., [stretch]
  int64_t grad_p, grad_s, grad_beta, grad_dt;
  int64_t lambda, inner_g, inner_read;         // [D][D], like g, [rows of p][D]
  int64_t q, y;                                // [D] each
  int64_t weight[3], mask[3], grad_weight[3];  // of p, s, beta
  int64_t z, grad_z;                           // [batch][rows][F]
  int64_t size;
};
ScanLayout scan_layout(const ScanPlan& plan) noexcept;

/// The recurrence of one lane.
struct ScanLane {
  int64_t sample, head;
  int64_t first, steps;         // rows of R
  const int64_t* output_steps;  // [outputs]: M is requested after this many steps, rising, at most `steps`
  int64_t first_output, outputs;
};

/// Lanes side by side; those of one sample stand together in the order of their heads.
struct ScanGroup {
  const ScanLane* lanes;
  int64_t count;
};

/// Lanes of a vector register, for elements of `bytes` bytes.
int64_t scan_lanes(int64_t bytes) noexcept;

/// `kept` is null where no backward pass follows. Scratch and kept are aligned to 64 bytes.
template <typename T>
void scan_forward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group, T* kept,
                  T* scratch) noexcept;

/// Gradients in the layout of the arrays they belong to. Those of out, y and g are inputs; null: absent. Of
/// the rest those are computed that are not null: p, s, beta, q and start are set; weights are added to; z
/// and dt are set to the sum over the group's heads.
template <typename T>
void scan_backward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanArrays<T>& grads,
                   const ScanGroup& group, const T* kept, T* scratch) noexcept;

}  // namespace fastweights::kernels

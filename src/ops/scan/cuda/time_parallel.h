#pragma once

#include "ops/scan/plan.h"

/// Linear rules with too few samples to fill a GPU: pieces of time in parallel (README.md, section 8).

namespace fastweights {

/// Tensors of a call on a device; absent ones are undefined.
struct DeviceArrays {
  Tensor p, s, beta, dt, start, q, out, y, g;
};

/// One call of the kernels: everything that the forward and the backward pass share.
struct DeviceCall {
  kernels::ScanPlan plan;
  ScanIndex index;
  Tensor phi, m;  // kept for a backward pass

  void keep(const DeviceArrays& arrays);
  /// Makes out, y and g.
  void forward(DeviceArrays& arrays, StageSlopes slopes) const;
  /// `incoming` has the gradients of out, y and g; the others are returned with them.
  DeviceArrays backward(const DeviceArrays& arrays, const DeviceArrays& incoming) const;
};

/// Whether pieces are faster, for this number of samples.
bool splits_time(const kernels::ScanPlan& plan, int64_t samples, int64_t longest);
/// Steps of each piece, or 0 where one pass is faster.
int64_t parallel_steps(const kernels::ScanPlan& plan, const ScanInput& input);

/// W at the outputs: [M, H, D, D]
Tensor time_parallel_scan(const DeviceCall& call, const DeviceArrays& arrays, const ScanInput& input,
                          int64_t steps);

}  // namespace fastweights

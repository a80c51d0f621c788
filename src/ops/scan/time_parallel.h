#pragma once

#include "ops/scan/fused.h"
#include "ops/scan/kernel.h"

/// Linear rules on a GPU that would otherwise have too little to do: pieces of time side by side (README.md,
/// section 8).

namespace fastweights {

/// Tensors of a call on a device; undefined ones are not there.
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

/// Whether pieces are the better way, for so many samples.
bool splits_time(const kernels::ScanPlan& plan, int64_t samples, int64_t longest);
/// Steps of each piece, or 0 where one after another is the better way.
int64_t parallel_steps(const kernels::ScanPlan& plan, const ScanInput& input);

/// W at the outputs: [M, H, D, D]
Tensor time_parallel_scan(const DeviceCall& call, const DeviceArrays& arrays, const ScanInput& input,
                          int64_t steps);

}  // namespace fastweights

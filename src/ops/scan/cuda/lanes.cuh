#pragma once

#include <cuda_runtime.h>

/// Sums over teams of 4, 8, 16 or 32 neighbouring lanes of a warp; whole warps must take part.

namespace fastweights::kernels::cuda {

/// Every lane gets it.
template <int Lanes>
__device__ float lanes_sum(float x) {
#pragma unroll
  for (int far = Lanes / 2; far > 0; far /= 2) x += __shfl_xor_sync(~0u, x, far);
  return x;
}

template <int Lanes>
__device__ float lanes_max(float x) {
#pragma unroll
  for (int far = Lanes / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, far));
  return x;
}

/// Eight sums over eight lanes or more at once: in each exchange a lane gives away half of the sums that it
/// has and gets its part of the others. The lane at `position` of its team ends with sum number position /
/// (Lanes / 8).
template <int Lanes>
__device__ float eight_sums(const float (&x)[8], int position) {
  float left[4], less[2];
  const bool upper = position & (Lanes / 2), middle = position & (Lanes / 4), lower = position & (Lanes / 8);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    left[i] = (upper ? x[i + 4] : x[i]) + __shfl_xor_sync(~0u, upper ? x[i] : x[i + 4], Lanes / 2);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    less[i] =
        (middle ? left[i + 2] : left[i]) + __shfl_xor_sync(~0u, middle ? left[i] : left[i + 2], Lanes / 4);
  float sum = (lower ? less[1] : less[0]) + __shfl_xor_sync(~0u, lower ? less[0] : less[1], Lanes / 8);
#pragma unroll
  for (int far = Lanes / 16; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
  return sum;
}

}  // namespace fastweights::kernels::cuda

#include "kernels/cuda/dropout.h"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

// Random::uniform after `skipped` others
__device__ double uniform(uint64_t state, uint64_t skipped) {
  uint64_t z = state + (skipped + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

__global__ void dropout_kernel(float* mask, int64_t count, double rate, float kept, uint64_t state,
                               const int64_t* seed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const uint64_t from = state + (seed ? static_cast<uint64_t>(*seed) : 0);
  if (i < count) mask[i] = uniform(from, static_cast<uint64_t>(i)) < rate ? 0.0f : kept;
}

}  // namespace

void cuda_dropout(float* mask, int64_t count, double rate, uint64_t state, const int64_t* seed,
                  void* stream) {
  constexpr int64_t kThreads = 256;
  if (count == 0) return;
  dropout_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0,
                   static_cast<cudaStream_t>(stream)>>>(mask, count, rate, static_cast<float>(1 / (1 - rate)),
                                                        state, seed);
  cuda::check_launch("dropout");
}

}  // namespace fastweights::kernels

#include "kernels/cuda/adam.h"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

__global__ void adam_kernel(CudaAdam step) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float norm = *step.norm;
  if (i >= step.count || !isfinite(norm)) return;
  const float clip = static_cast<float>(step.clip);
  const float gradient = step.gradients[i] * (clip > 0 && norm > clip ? clip / norm : 1.0f);
  const float rate = static_cast<float>(step.rates[0]) * (step.factors ? step.factors[i] : 1.0f);
  const float beta1 = static_cast<float>(step.beta1), beta2 = static_cast<float>(step.beta2);
  const float first = step.first[i] * beta1 + gradient * static_cast<float>(1 - step.beta1);
  const float second = step.second[i] * beta2 + gradient * gradient * static_cast<float>(1 - step.beta2);
  step.first[i] = first;
  step.second[i] = second;
  const float denominator =
      sqrtf(second) / static_cast<float>(step.rates[2]) + static_cast<float>(step.epsilon);
  step.parameters[i] = step.parameters[i] * (1.0f - rate * static_cast<float>(step.weight_decay)) -
                       rate / static_cast<float>(step.rates[1]) * first / denominator;
}

}  // namespace

void cuda_adam(const CudaAdam& step, void* stream) {
  constexpr int64_t kThreads = 256;
  if (step.count == 0) return;
  adam_kernel<<<static_cast<unsigned>((step.count + kThreads - 1) / kThreads), kThreads, 0,
                static_cast<cudaStream_t>(stream)>>>(step);
  cuda::check_launch("adam");
}

}  // namespace fastweights::kernels

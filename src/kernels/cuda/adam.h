#pragma once

#include <cstdint>

/// One step of Adam for all parameters of a model at once, on a GPU.

namespace fastweights::kernels {

struct CudaAdam {
  int64_t count;
  float* parameters;
  const float* gradients;
  float *first, *second;  // means of the gradients and of their squares
  const float* factors;   // of the learning rate, for each parameter; or null
  const float* norm;      // [1]: of the gradients; if not finite, the step changes nothing
  double clip;            // largest norm; 0: any
  double beta1, beta2, epsilon, weight_decay;
  const double* rates;  // [3], new in every step: the learning rate, 1 - beta1^t, sqrt(1 - beta2^t)
};

/// Pointers are of the device, `stream` is a cudaStream_t; a launch that fails throws.
void cuda_adam(const CudaAdam& step, void* stream);

}  // namespace fastweights::kernels

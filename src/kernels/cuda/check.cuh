#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace fastweights::kernels::cuda {

/// Throws if the last launch was refused.
inline void check_launch(const char* who) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("[") + who +
                           "] the GPU refused a kernel: " + cudaGetErrorString(status));
}

}  // namespace fastweights::kernels::cuda

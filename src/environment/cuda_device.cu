#include <cuda_runtime.h>

#include "environment/cuda_device.h"

namespace fastweights {

BackendInfo cuda_backend() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess)
    return {"cuda", false, std::string("CUDA driver: ") + cudaGetErrorString(status)};
  if (count == 0) return {"cuda", false, "no CUDA device found"};
  cudaDeviceProp device{};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess)
    return {"cuda", false, "the device does not respond"};
  const std::string name = std::string(device.name) + ", compute capability " + std::to_string(device.major) +
                           "." + std::to_string(device.minor) + ", " +
                           std::to_string(device.totalGlobalMem >> 30) + " GiB";
  if (device.major < 8) return {"cuda", false, name + ": compute capability 8.0 or later is required"};
  return {"cuda", true, name};
}

}  // namespace fastweights

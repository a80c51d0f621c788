#include <stdexcept>
#include <string>

#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels {
namespace {

using cuda::Pass;
using cuda::Task;

void check_launch() {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("[scan] the GPU refused a kernel: ") + cudaGetErrorString(status));
}

void run(const Task& task, Pass pass, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const bool extras = task.queries > 0 || task.arrays.g || task.grads.g || task.grads.dt;
  if (extras) {
    cuda::launch_extras(task, pass, on);
  } else if (task.width <= 4) {
    cuda::launch_4(task, pass, on);
  } else if (task.width == 5) {
    cuda::launch_5(task, pass, on);
  } else if (task.width <= 8) {
    cuda::launch_8(task, pass, on);
  } else if (task.width <= 10) {
    cuda::launch_10(task, pass, on);
  } else if (task.width <= 16) {
    cuda::launch_16(task, pass, on);
  } else if (task.width <= 20) {
    cuda::launch_20(task, pass, on);
  } else if (task.width <= 32) {
    cuda::launch_32(task, pass, on);
  } else {
    cuda::launch_64(task, pass, on);
  }
  check_launch();
}

__global__ void clear_kernel(float* x, int64_t size, int64_t row_size, const int64_t* used) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t i = *used * row_size + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < size; i += threads) x[i] = 0;
}

}  // namespace

void cuda_scan_forward(const ScanPlan& plan, const ScanArrays<float>& arrays, const CudaSamples& samples,
                       const CudaKept& kept, void* stream) {
  run(cuda::task_of(plan, arrays, samples, kept), Pass::Forward, stream);
}

void cuda_scan_backward(const ScanPlan& plan, const ScanArrays<float>& arrays, const ScanArrays<float>& grads,
                        const CudaSamples& samples, const CudaKept& kept, void* stream) {
  Task task = cuda::task_of(plan, arrays, samples, kept);
  task.grads = grads;
  run(task, Pass::Backward, stream);
}

void cuda_clear_unused(float* x, int64_t rows, int64_t row_size, const int64_t* used, void* stream) {
  constexpr int kThreads = 256, kBlocks = 256;
  clear_kernel<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, rows * row_size, row_size,
                                                                            used);
  check_launch();
}

}  // namespace fastweights::kernels

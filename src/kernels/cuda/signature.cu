#include "kernels/cuda/signature.cuh"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

// bytes of shared memory that every device gives a block without being asked
constexpr int64_t kRoom = 48 * 1024;
// scratch in global memory, for larger windows
constexpr int64_t kScratch = 1 << 25;
constexpr int64_t kMostBlocks = 1 << 14;

bool fits(const CudaSignature& task) {
  return cuda::window_room(task.plan) * static_cast<int64_t>(sizeof(double)) <= kRoom;
}

int64_t blocks_of(const CudaSignature& task) {
  const int64_t together = max(int64_t{1}, kScratch / cuda::window_room(task.plan));
  return min(task.windows, fits(task) ? kMostBlocks : together);
}

unsigned threads_of(const CudaSignature& task) {
  const int64_t entries = task.plan.power[task.plan.depth];
  return static_cast<unsigned>(min(int64_t{256}, (entries + 31) / 32 * 32));
}

__global__ void logsignature_kernel(cuda::Levels levels, CudaSignature task, double* scratch, int64_t each) {
  extern __shared__ double shared[];
  double* room = scratch ? scratch + blockIdx.x * each : shared;
  for (int64_t window = blockIdx.x; window < task.windows; window += gridDim.x)
    cuda::logsignature_window(levels, task, window, room);
}

}  // namespace

int64_t cuda_logsignature_scratch(const CudaSignature& task) {
  return fits(task) ? 0 : blocks_of(task) * cuda::window_room(task.plan);
}

void cuda_logsignature(const CudaSignature& task, double* scratch, void* stream) {
  if (task.windows == 0) return;
  const int64_t each = cuda::window_room(task.plan);
  const size_t bytes = fits(task) ? static_cast<size_t>(each) * sizeof(double) : 0;
  logsignature_kernel<<<static_cast<unsigned>(blocks_of(task)), threads_of(task), bytes,
                        static_cast<cudaStream_t>(stream)>>>(cuda::levels_of(task.plan), task,
                                                             fits(task) ? nullptr : scratch, each);
  cuda::check_launch("logsignature");
}

}  // namespace fastweights::kernels

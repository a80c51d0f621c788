#include "kernels/cuda/path.cuh"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

constexpr int kThreads = 256;

// each thread loops over items, if there are more items than threads
unsigned blocks_for(int64_t items, int64_t threads) {
  constexpr int64_t kMost = 1 << 14;
  return static_cast<unsigned>(min((items + threads - 1) / threads, kMost));
}

__device__ int64_t first_item() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ int64_t all_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

__global__ void straight_kernel(PathKind kind, int64_t terms, CudaSeries series, float* coefficients) {
  const int64_t items = (series.rows - series.samples) * series.channels;
  for (int64_t i = first_item(); i < items; i += all_threads())
    cuda::straight_piece(kind, terms, series, i, coefficients);
}

__global__ void natural_kernel(PathKind kind, CudaSeries series, int64_t first, int64_t count,
                               float* coefficients, double* scratch) {
  for (int64_t i = first_item(); i < count * series.channels; i += all_threads())
    cuda::natural_channel(kind, series, first, i, coefficients, scratch);
}

__global__ void rectilinear_kernel(CudaSeries series, int64_t time_channel, float* doubled) {
  for (int64_t i = first_item(); i < series.rows * series.channels; i += all_threads())
    cuda::rectilinear_knot(series, time_channel, i, doubled);
}

__global__ void last_observations_kernel(CudaSeries series, float* out) {
  for (int64_t i = first_item(); i < series.rows * series.channels; i += all_threads())
    cuda::last_observation(series, i, out);
}

__global__ void sample_kernel(CudaPathSample task) {
  __shared__ cuda::SampleRoom room;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * cuda::kSampleThreads; first < task.count;
       first += static_cast<int64_t>(gridDim.x) * cuda::kSampleThreads)
    cuda::sample_times(task, first, room);
}

}  // namespace

void cuda_straight_path(PathKind kind, const CudaSeries& series, float* coefficients, void* stream) {
  const int64_t items = (series.rows - series.samples) * series.channels;
  if (items == 0) return;
  straight_kernel<<<blocks_for(items, kThreads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      kind, path_terms(kind), series, coefficients);
  cuda::check_launch("control");
}

void cuda_natural_path(PathKind kind, const CudaSeries& series, int64_t first, int64_t count,
                       float* coefficients, double* scratch, void* stream) {
  // few threads with long ways: as many multiprocessors as possible
  constexpr int kFew = 32;
  if (count == 0) return;
  natural_kernel<<<blocks_for(count * series.channels, kFew), kFew, 0, static_cast<cudaStream_t>(stream)>>>(
      kind, series, first, count, coefficients, scratch);
  cuda::check_launch("control");
}

void cuda_rectilinear_knots(const CudaSeries& series, int64_t time_channel, float* doubled, void* stream) {
  const int64_t items = series.rows * series.channels;
  if (items == 0) return;
  rectilinear_kernel<<<blocks_for(items, kThreads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      series, time_channel, doubled);
  cuda::check_launch("control");
}

void cuda_last_observations(const CudaSeries& series, float* out, void* stream) {
  const int64_t items = series.rows * series.channels;
  if (items == 0) return;
  last_observations_kernel<<<blocks_for(items, kThreads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      series, out);
  cuda::check_launch("control");
}

void cuda_path_sample(const CudaPathSample& task, void* stream) {
  if (task.count == 0) return;
  sample_kernel<<<blocks_for(task.count, cuda::kSampleThreads), cuda::kSampleThreads, 0,
                  static_cast<cudaStream_t>(stream)>>>(task);
  cuda::check_launch("control");
}

}  // namespace fastweights::kernels

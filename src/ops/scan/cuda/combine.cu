#include "ops/scan/cuda/combine.h"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

// rows of M times A plus B, one chunk after another; a block for each sample and head, a thread for each
// entry that fits, entry after entry
__global__ void combine_kernel(CudaChunks chunks, const float* a, const float* b, const float* start,
                               float* m) {
  extern __shared__ float room[];
  const int width = static_cast<int>(chunks.width), size = width * width;
  float *now = room, *by = room + size, *plus = by + size;
  const int64_t sample = blockIdx.x / chunks.heads, head = blockIdx.x % chunks.heads;
  for (int i = threadIdx.x; i < size; i += blockDim.x) now[i] = start[blockIdx.x * size + i];
  const int64_t first = chunks.offsets[sample], last = chunks.offsets[sample + 1];
  for (int64_t n = 0; n < last - first; ++n) {
    const int64_t chunk = chunks.backwards ? last - 1 - n : first + n;
    const int64_t at = (chunk * chunks.heads + head) * size;
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      by[i] = a[at + i];
      plus[i] = b ? b[at + i] : 0.0f;
      m[at + i] = now[i];
    }
    __syncthreads();
    for (int entry = threadIdx.x; entry < size; entry += blockDim.x) {
      const int i = entry / width, j = entry % width;
      float sum = plus[entry];
      for (int k = 0; k < width; ++k)
        sum += now[chunks.left ? k * width + j : i * width + k] *
               (chunks.left ? by[chunks.backwards ? k * width + i : i * width + k]
                            : by[chunks.backwards ? j * width + k : k * width + j]);
      plus[entry] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) now[i] = plus[i];
  }
}

}  // namespace

void cuda_combine(const CudaChunks& chunks, const float* a, const float* b, const float* start, float* m,
                  void* stream) {
  const auto size = static_cast<size_t>(chunks.width * chunks.width);
  const unsigned threads = size >= 256 ? 256u : size > 32 ? 64u : 32u;
  combine_kernel<<<static_cast<unsigned>(chunks.samples * chunks.heads), threads, 3 * size * sizeof(float),
                   static_cast<cudaStream_t>(stream)>>>(chunks, a, b, start, m);
  cuda::check_launch("scan");
}

}  // namespace fastweights::kernels

#include "ops/scan/cuda/program.h"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

// rows that a block does at a time, and its threads
constexpr int kRows = 64, kThreads = 256;
// a column of rows in shared memory: another bank for every channel
constexpr int kColumn = kRows + 1;
constexpr int64_t kMostBlocks = 1024;
// rows of G that are multiplied at once, so that a number of x is fetched and widened once for all of them
constexpr int kTogether = 8;

int64_t blocks_of(const CudaNormalise& task) {
  const int64_t tiles = (task.rows + kRows - 1) / kRows;
  return tiles < kMostBlocks ? tiles : kMostBlocks;
}

// length of a row of G in shared memory: whole groups
__host__ __device__ constexpr int gram_row(int size) {
  return (size + kTogether - 1) / kTogether * kTogether;
}

size_t room_of(const CudaNormalise& task) {
  const int size = static_cast<int>(task.channels) + 1;
  return size * gram_row(size) * sizeof(double) + size * kColumn * sizeof(float);
}

size_t backward_room_of(const CudaNormalise& task) {
  const int size = static_cast<int>(task.channels) + 1;
  return size * size * (sizeof(double) + sizeof(float)) + (size + 1) * kColumn * sizeof(float);
}

// rows without padding
__device__ int64_t last_of(const CudaNormalise& task) {
  return task.steps ? *task.steps * task.times : task.rows;
}

// x~ of a tile: [C + 1][kColumn], rows beyond the last one are zero
__device__ void load_tile(const CudaNormalise& task, int64_t first, int64_t last, float* x) {
  const int channels = static_cast<int>(task.channels);
  const int count = static_cast<int>(min(static_cast<int64_t>(kRows), last - first));
  for (int i = static_cast<int>(threadIdx.x); i < kRows * channels; i += kThreads)
    x[i % channels * kColumn + i / channels] = i / channels < count ? task.x[first * channels + i] : 0.0f;
  if (threadIdx.x < kRows)
    x[channels * kColumn + threadIdx.x] = static_cast<int>(threadIdx.x) < count ? 1.0f : 0.0f;
}

// rows i .. i + kTogether of G times x~, of one row of the tile
__device__ void metric_rows(const double* gram, const float* x, int size, int row, int i, double* sums) {
#pragma unroll
  for (int k = 0; k < kTogether; ++k) sums[k] = 0;
  for (int j = 0; j < size; ++j) {
    const double here = x[j * kColumn + row];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) sums[k] += gram[j * size + min(i + k, size - 1)] * here;
  }
}

// of x~^T G x~ what columns i .. i + kTogether of the triangle of G give, in one row of the tile
__device__ double square_part(const double* triangle, const float* x, int size, int row, int i) {
  double sums[kTogether] = {};
  const int last = min(i + kTogether, size);
  for (int j = 0; j < last; ++j) {
    const double here = x[j * kColumn + row];
    const auto* from = reinterpret_cast<const double2*>(triangle + j * gram_row(size) + i);
#pragma unroll
    for (int k = 0; k < kTogether / 2; ++k) {
      const double2 two = from[k];
      sums[2 * k] += two.x * here;
      sums[2 * k + 1] += two.y * here;
    }
  }
  double square = 0;
#pragma unroll
  for (int k = 0; k < kTogether; ++k) square += i + k < size ? x[(i + k) * kColumn + row] * sums[k] : 0.0;
  return square;
}

// four threads for each row, which share the columns of G
constexpr int kShares = kThreads / kRows;

__global__ void normalise_kernel(CudaNormalise task, float* out, float* r) {
  extern __shared__ __align__(16) double room[];
  __shared__ double squares[kShares][kRows];
  const int size = static_cast<int>(task.channels) + 1, row = static_cast<int>(threadIdx.x) % kRows,
            share = static_cast<int>(threadIdx.x) / kRows;
  double* triangle = room;
  float* x = reinterpret_cast<float*>(triangle + size * gram_row(size));
  for (int entry = static_cast<int>(threadIdx.x); entry < size * gram_row(size); entry += kThreads) {
    const int j = entry / gram_row(size), i = entry % gram_row(size);
    // the part below the diagonal is added to the one above it
    triangle[entry] = i < size && j <= i ? (j < i ? 2 : 1) * task.gram[j * size + i] : 0.0;
  }
  const int64_t last = last_of(task);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRows; first < last; first += gridDim.x * kRows) {
    __syncthreads();
    load_tile(task, first, last, x);
    __syncthreads();
    double square = 0;
    for (int i = share * kTogether; i < size; i += kShares * kTogether)
      square += square_part(triangle, x, size, row, i);
    squares[share][row] = square;
    __syncthreads();
    square = 0;
#pragma unroll
    for (int k = 0; k < kShares; ++k) square += squares[k][row];
    const int64_t at = first + row;
    if (at >= last) continue;
    const float scale = static_cast<float>(rsqrt(fmax(square, 0.0) + task.epsilon));
    if (share == 0) r[at] = scale;
    for (int i = share; out && i < size; i += kShares)
      out[at * task.out_row + i] = x[i * kColumn + row] * scale;
  }
}

// gradients of x~^T G x~ of a tile's rows, and of x where requested
__device__ void rows_backward(const CudaNormalise& task, int64_t first, int64_t last, const double* gram,
                              const float* x, const CudaNormaliseGradient& grad, const float* r,
                              float* grad_x, float* grad_square) {
  const int size = static_cast<int>(task.channels) + 1, row = static_cast<int>(threadIdx.x);
  const int64_t at = first + row;
  float here = 0;
  if (at < last) {
    float grad_r = 0;
    for (int i = 0; grad.out && i < size; ++i)
      grad_r += x[i * kColumn + row] * grad.out[at * task.out_row + i];
    for (int part = 0; !grad.out && part < grad.parts; ++part) grad_r += grad.r[part * task.rows + at];
    // r = (x~^T G x~ + eps)^(-1/2)
    here = -0.5f * r[at] * r[at] * r[at] * grad_r;
    double sums[kTogether];
    for (int i = 0; grad_x && i + 1 < size; i += kTogether) {
      metric_rows(gram, x, size, row, i, sums);
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        if (i + k + 1 < size)
          grad_x[at * task.channels + i + k] =
              r[at] * grad.out[at * task.out_row + i + k] + 2.0f * here * static_cast<float>(sums[k]);
      }
    }
  }
  grad_square[row] = here;
}

// adds a tile's part of the gradient of G on and below its diagonal, two rows and two columns for each thread
__device__ void add_gram(const float* x, const float* grad_square, int size, float* sums) {
  const int pairs = (size + 1) / 2, count = pairs * (pairs + 1) / 2;
  for (int pair = static_cast<int>(threadIdx.x); pair < count; pair += kThreads) {
    // row r of a triangle begins at r (r + 1) / 2
    int r = static_cast<int>((sqrtf(8.0f * static_cast<float>(pair) + 1.0f) - 1.0f) / 2);
    if (r * (r + 1) / 2 > pair) --r;
    if ((r + 1) * (r + 2) / 2 <= pair) ++r;
    const int i = 2 * r, j = 2 * (pair - r * (r + 1) / 2);
    const int next_i = min(i + 1, size - 1), next_j = min(j + 1, size - 1);
    float parts[2][2] = {};
    for (int n = 0; n < kRows; ++n) {
      const float left[] = {grad_square[n] * x[i * kColumn + n], grad_square[n] * x[next_i * kColumn + n]},
                  right[] = {x[j * kColumn + n], x[next_j * kColumn + n]};
#pragma unroll
      for (int a = 0; a < 2; ++a) {
#pragma unroll
        for (int b = 0; b < 2; ++b) parts[a][b] += left[a] * right[b];
      }
    }
#pragma unroll
    for (int a = 0; a < 2; ++a) {
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        if (i + a < size && j + b <= i + a) sums[(i + a) * size + j + b] += parts[a][b];
      }
    }
  }
}

__global__ void normalise_backward_kernel(CudaNormalise task, CudaNormaliseGradient grad, const float* r,
                                          float* grad_x, float* grad_grams) {
  extern __shared__ __align__(16) double room[];
  const int size = static_cast<int>(task.channels) + 1;
  double* gram = room;
  float* sums = reinterpret_cast<float*>(gram + size * size);  // of the gradient of G, which is symmetric
  float* x = sums + size * size;
  float* grad_square = x + size * kColumn;
  for (int i = static_cast<int>(threadIdx.x); i < size * size; i += kThreads) {
    gram[i] = task.gram[i];
    sums[i] = 0;
  }
  const int64_t last = last_of(task);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRows; first < last; first += gridDim.x * kRows) {
    __syncthreads();
    load_tile(task, first, last, x);
    __syncthreads();
    if (threadIdx.x < kRows) rows_backward(task, first, last, gram, x, grad, r, grad_x, grad_square);
    __syncthreads();
    add_gram(x, grad_square, size, sums);
  }
  __syncthreads();
  for (int entry = static_cast<int>(threadIdx.x); entry < size * size; entry += kThreads) {
    const int i = entry / size, j = entry % size;
    grad_grams[static_cast<int64_t>(blockIdx.x) * size * size + entry] = sums[i >= j ? entry : j * size + i];
  }
}

template <typename Kernel>
void allow_room(Kernel kernel, size_t bytes) {
  constexpr size_t kPlain = 44 * 1024;
  if (bytes <= kPlain) return;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

}  // namespace

int64_t cuda_normalise_parts(const CudaNormalise& task) { return blocks_of(task); }

void cuda_normalise(const CudaNormalise& task, float* out, float* r, void* stream) {
  if (task.rows == 0) return;
  allow_room(normalise_kernel, room_of(task));
  normalise_kernel<<<static_cast<unsigned>(blocks_of(task)), kThreads, room_of(task),
                     static_cast<cudaStream_t>(stream)>>>(task, out, r);
  cuda::check_launch("features");
}

void cuda_normalise_backward(const CudaNormalise& task, const CudaNormaliseGradient& grad, const float* r,
                             float* grad_x, float* grad_grams, void* stream) {
  if (task.rows == 0) return;
  allow_room(normalise_backward_kernel, backward_room_of(task));
  normalise_backward_kernel<<<static_cast<unsigned>(blocks_of(task)), kThreads, backward_room_of(task),
                              static_cast<cudaStream_t>(stream)>>>(task, grad, r, grad_x, grad_grams);
  cuda::check_launch("features");
}

}  // namespace fastweights::kernels

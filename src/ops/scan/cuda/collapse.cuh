#pragma once

#include <cuda_runtime.h>

#include "ops/scan/cuda/collapse.h"

/// Matrices of some hundred rows: a thread for each column, and sums in float64.

namespace fastweights::kernels::cuda {

inline constexpr int kCollapseColumns = 128;  // C + 2 at most, and the threads of a block

/// Column c of [A a].
struct InColumn {
  const CudaLayers& layers;
  int c;
  __device__ double operator()(int64_t unit) const {
    return c < layers.channels ? layers.in_weight[unit * layers.channels + c] : layers.in_bias[unit];
  }
  __device__ double mean() const {
    double sum = 0;
#pragma unroll 8
    for (int64_t k = 0; k < layers.units; ++k) sum += (*this)(k);
    return sum / static_cast<double>(layers.units);
  }
};

// row `row` of the map: this thread's column
__device__ inline double map_entry(const CudaLayers& layers, int64_t row, int c) {
  const float* out = layers.out_weight + row * layers.units;
  double sum = 0, weights = 0, inputs = 0;
  if (c > layers.channels) {
#pragma unroll 8
    for (int64_t k = 0; k < layers.units; ++k) sum += static_cast<double>(out[k]) * layers.norm_bias[k];
    return sum + layers.out_bias[row];
  }
  const InColumn in = {layers, c};
#pragma unroll 8
  for (int64_t k = 0; k < layers.units; ++k) {
    const double weight = static_cast<double>(out[k]) * layers.norm_weight[k], x = in(k);
    sum += weight * x;
    weights += weight;
    inputs += x;
  }
  return sum - weights * inputs / static_cast<double>(layers.units);
}

__device__ inline double gram_entry(const CudaLayers& layers, int row, int c) {
  const InColumn left = {layers, row}, right = {layers, c};
  double sum = 0, lefts = 0, rights = 0;
#pragma unroll 8
  for (int64_t k = 0; k < layers.units; ++k) {
    const double x = left(k), y = right(k);
    sum += x * y;
    lefts += x;
    rights += y;
  }
  const auto units = static_cast<double>(layers.units);
  return (sum - lefts * rights / units) / units;
}

// a block for each row of the map, then one for each row of the gram
__device__ inline void collapse(const CudaLayers& layers, float* map, double* gram) {
  const int64_t row = blockIdx.x, channels = layers.channels;
  const int c = static_cast<int>(threadIdx.x);
  if (row < layers.projections) {
    if (c < channels + 2) map[row * (channels + 2) + c] = static_cast<float>(map_entry(layers, row, c));
  } else if (c <= channels) {
    const int64_t i = row - layers.projections;
    gram[i * (channels + 1) + c] = gram_entry(layers, static_cast<int>(i), c);
  }
}

/// Shared memory of the backward pass.
struct CollapseRoom {
  double means[kCollapseColumns], centred[kCollapseColumns], products[kCollapseColumns];
};

// of one unit: gamma, b, and B as far as it goes without the other units
__device__ inline void unit_backward(const CudaLayers& layers, const float* grad_map, const double* grad_gram,
                                     const CudaLayerGradients& to, int64_t unit, CollapseRoom& room) {
  const int64_t channels = layers.channels;
  const int c = static_cast<int>(threadIdx.x), columns = static_cast<int>(channels) + 1;
  double back = 0;  // S^T dmap
  if (grad_map && c < channels + 2) {
#pragma unroll 8
    for (int64_t o = 0; o < layers.projections; ++o)
      back +=
          static_cast<double>(layers.out_weight[o * layers.units + unit]) * grad_map[o * (channels + 2) + c];
  }
  if (c < columns) {
    const InColumn in = {layers, c};
    room.centred[c] = in(unit)-in.mean();
    room.products[c] = back * room.centred[c];
  }
  if (c == columns) to.norm_bias[unit] = static_cast<float>(back);
  __syncthreads();
  if (c < columns) {
    double sum = 0;
    for (int j = 0; grad_gram && j < columns; ++j)
      sum += (grad_gram[c * columns + j] + grad_gram[j * columns + c]) * room.centred[j];
    to.centred[unit * columns + c] =
        layers.norm_weight[unit] * back + sum / static_cast<double>(layers.units);
  }
  if (c == 0) {
    double sum = 0;
    for (int j = 0; j < columns; ++j) sum += room.products[j];
    to.norm_weight[unit] = static_cast<float>(sum);
  }
}

// of one projection: its row of S, and c
__device__ inline void projection_backward(const CudaLayers& layers, const float* grad_map,
                                           const CudaLayerGradients& to, int64_t row, CollapseRoom& room) {
  const int64_t channels = layers.channels;
  const int c = static_cast<int>(threadIdx.x);
  if (c <= channels) room.means[c] = InColumn{layers, c}.mean();
  if (c < channels + 2) room.products[c] = grad_map ? grad_map[row * (channels + 2) + c] : 0.0f;
  __syncthreads();
  const double shift = room.products[channels + 1];
  for (int64_t k = c; k < layers.units; k += blockDim.x) {
    double sum = 0;
    for (int j = 0; j <= channels; ++j) sum += room.products[j] * (InColumn{layers, j}(k)-room.means[j]);
    to.out_weight[row * layers.units + k] =
        static_cast<float>(layers.norm_weight[k] * sum + layers.norm_bias[k] * shift);
  }
  if (c == 0) to.out_bias[row] = static_cast<float>(shift);
}

// a block for each unit, then one for each projection
__device__ inline void collapse_backward(const CudaLayers& layers, const float* grad_map,
                                         const double* grad_gram, const CudaLayerGradients& to,
                                         CollapseRoom& room) {
  const int64_t block = blockIdx.x;
  if (block < layers.units) {
    unit_backward(layers, grad_map, grad_gram, to, block, room);
  } else {
    projection_backward(layers, grad_map, to, block - layers.units, room);
  }
}

// a block for each column of B: gradients less their mean are those of [A a]
__device__ inline void centre_backward(const CudaLayers& layers, const CudaLayerGradients& to, double* sums) {
  const int64_t channels = layers.channels, columns = channels + 1, c = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int64_t k = thread; k < layers.units; k += blockDim.x) sum += to.centred[k * columns + c];
  sums[thread] = sum;
  __syncthreads();
  double mean = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x); ++i) mean += sums[i];
  mean /= static_cast<double>(layers.units);
  for (int64_t k = thread; k < layers.units; k += blockDim.x) {
    const auto grad = static_cast<float>(to.centred[k * columns + c] - mean);
    if (c < channels) {
      to.in_weight[k * channels + c] = grad;
    } else {
      to.in_bias[k] = grad;
    }
  }
}

}  // namespace fastweights::kernels::cuda

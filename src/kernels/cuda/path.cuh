#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/path.h"
#include "kernels/path_impl.h"

/// What threads do for paths: thread `item` of `items` in cuda/path.h's order.

namespace fastweights::kernels::cuda {

// the sample that owns a row, where sample b begins at offsets[b] - less * b
__device__ inline int64_t owner_of(const int64_t* offsets, int64_t samples, int64_t less, int64_t row) {
  int64_t low = 0, high = samples;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (offsets[middle] - less * middle <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// one channel of one series
struct Line {
  const float* x;   // at [row * channels]
  const double* t;  // at [row], or null
  int64_t length, channels;

  __device__ float at(int64_t row) const { return x[row * channels]; }
  // the last observation at or before a row, -1: none; and the first at or after it, length: none
  __device__ int64_t before(int64_t row) const {
    while (row >= 0 && std::isnan(at(row))) --row;
    return row;
  }
  __device__ int64_t after(int64_t row) const {
    while (row < length && std::isnan(at(row))) ++row;
    return row;
  }
  // what was observed last, before the first observation that one
  __device__ float carried(int64_t row) const {
    const int64_t left = before(row), source = left >= 0 ? left : after(row);
    return source < length ? at(source) : 0.0f;
  }
};

__device__ inline Line line_of(const CudaSeries& series, int64_t b, int64_t c) {
  const int64_t first = series.offsets[b];
  return {series.data + first * series.channels + c, series.times ? series.times + first : nullptr,
          series.offsets[b + 1] - first, series.channels};
}

// item: one piece and channel
__device__ inline void straight_piece(PathKind kind, int64_t terms, const CudaSeries& series, int64_t item,
                                      float* coefficients) {
  const int64_t piece = item / series.channels, c = item % series.channels;
  const int64_t b = owner_of(series.offsets, series.samples, 1, piece), i = piece - (series.offsets[b] - b);
  const Line line = line_of(series, b, c);
  float* out = coefficients + piece * terms * series.channels + c;
  const int64_t p = line.before(i), n = line.after(i + 1);
  if (p < 0 && n == line.length) {
    paths::zero_path(1, terms, series.channels, out);
    return;
  }
  // knots around the piece; the ends of a series repeat the nearest observation
  const int64_t left = p >= 0 ? p : 0, right = n < line.length ? n : line.length - 1;
  const double x0 = line.at(p >= 0 ? p : n), x1 = line.at(n < line.length ? n : p), t0 = line.t[left];
  const double secant = (x1 - x0) / (line.t[right] - t0);
  double before = secant;
  if (kind == PathKind::Hermite && i > 0 && p == i) {
    const int64_t last = line.before(i - 1);
    before = (x0 - line.at(last >= 0 ? last : i)) / (t0 - line.t[last >= 0 ? last : 0]);
  }
  paths::store_straight(kind, x0 + secant * (line.t[i] - t0), secant, before, line.t[i + 1] - line.t[i],
                        series.channels, out);
}

// values of one channel, interleaved with its neighbours
struct Column {
  double* first;
  int64_t stride;
  __device__ double& operator[](int64_t i) const { return first[i * stride]; }
};

// item: one sample, counted from `first`, and channel
__device__ inline void natural_channel(PathKind kind, const CudaSeries& series, int64_t first, int64_t item,
                                       float* coefficients, double* scratch) {
  const int64_t channels = series.channels, b = first + item / channels, c = item % channels;
  const int64_t begin = series.offsets[b], length = series.offsets[b + 1] - begin;
  const Knots knots = {series.times + begin, length, channels};
  double* own = scratch + 6 * (begin - series.offsets[first]) * channels + c;
  const auto column = [&](int64_t i) { return Column{own + i * length * channels, channels}; };
  paths::Channel<Column> channel = {0, column(0), column(1), column(2), column(3), column(4), column(5)};
  paths::gather(kind, knots, series.data + begin * channels + c, channel);
  float* out = coefficients + (begin - b) * 4 * channels + c;
  if (channel.count == 0) {
    paths::zero_path(length - 1, 4, channels, out);
  } else {
    paths::natural_forward(knots, channel, out);
  }
}

// item: one row and channel
__device__ inline void rectilinear_knot(const CudaSeries& series, int64_t time_channel, int64_t item,
                                        float* doubled) {
  const int64_t channels = series.channels, row = item / channels, c = item % channels;
  const int64_t b = owner_of(series.offsets, series.samples, 0, row), i = row - series.offsets[b];
  const Line line = line_of(series, b, c);
  float* out = doubled + (2 * row - b) * channels + c;
  const float now = line.carried(i);
  *out = now;
  // between two rows the time channel has moved already, the others have not
  if (i > 0) out[-channels] = c == time_channel ? now : line.carried(i - 1);
}

// item: one row and channel
__device__ inline void last_observation(const CudaSeries& series, int64_t item, float* out) {
  const int64_t row = item / series.channels, c = item % series.channels;
  const int64_t b = owner_of(series.offsets, series.samples, 0, row);
  out[item] = line_of(series, b, c).carried(row - series.offsets[b]);
}

constexpr int kSampleThreads = 128;

// where each of a block's times is
struct SampleRoom {
  int64_t piece[kSampleThreads];  // among those of all samples
  double s[kSampleThreads];       // from its beginning
};

// as many times from `first` on as the block has threads
__device__ inline void sample_times(const CudaPathSample& task, int64_t first, SampleRoom& room) {
  const int thread = static_cast<int>(threadIdx.x);
  const int count = static_cast<int>(min(static_cast<int64_t>(kSampleThreads), task.count - first));
  if (thread < count) {
    const int64_t q = first + thread, b = owner_of(task.offsets, task.samples, 0, q);
    const int64_t begin = task.knot_offsets[b];
    const double* knots = task.knots + begin;
    const int64_t i = paths::piece_at(knots, task.knot_offsets[b + 1] - begin, task.times[q]);
    room.piece[thread] = begin - b + i;
    room.s[thread] = task.times[q] - knots[i];
  }
  __syncthreads();
  const int channels = static_cast<int>(task.channels);
  for (int e = thread; e < count * channels; e += kSampleThreads) {
    const int q = e / channels, c = e % channels;
    const double s = room.s[q];
    const float* k = task.coefficients + room.piece[q] * task.terms * channels + c;
    const float a = k[0], b = k[channels];
    double value, derivative = b;
    if (task.terms == 2) {
      value = paths::line_value(a, b, s);
    } else {
      const double two_c = k[2 * channels], bend = k[3 * channels] * s;
      value = paths::cubic_value(a, b, two_c, bend, s);
      derivative = paths::cubic_derivative(b, two_c, bend, s);
    }
    task.value[first * task.channels + e] = static_cast<float>(value);
    task.derivative[first * task.channels + e] = static_cast<float>(derivative);
  }
  __syncthreads();
}

}  // namespace fastweights::kernels::cuda

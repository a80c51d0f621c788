#pragma once

#include <cstdint>

/// Loops over the rows of a series, for time warping and the convolutions of MiniROCKET.

namespace fastweights::kernels {

/// costs[j] = sum over channels c of (x[c x_stride] - y[c y_stride + j])^2 for first <= j < last.
void squared_differences(const float* x, int64_t x_stride, const float* y, int64_t y_stride, int64_t channels,
                         int64_t first, int64_t last, float* costs) noexcept;

/// to[t] += x[t]
template <typename T>
void add_rows(const T* x, int64_t length, T* to) noexcept;

/// to[t] += 3 (x[t] + y[t] + z[t]) - sum[t]
template <typename T>
void add_convolution(const T* x, const T* y, const T* z, const T* sum, int64_t length, T* to) noexcept;

/// Number of values that are larger than the threshold.
template <typename T>
int64_t count_above(const T* values, int64_t length, T threshold) noexcept;

}  // namespace fastweights::kernels

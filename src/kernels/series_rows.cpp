#include "kernels/series_rows.h"

namespace fastweights::kernels {

void squared_differences(const float* x, int64_t x_stride, const float* y, int64_t y_stride, int64_t channels,
                         int64_t first, int64_t last, float* costs) noexcept {
  for (int64_t j = first; j < last; ++j) costs[j] = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const float own = x[c * x_stride];
    const float* other = y + c * y_stride;
    for (int64_t j = first; j < last; ++j) costs[j] += (own - other[j]) * (own - other[j]);
  }
}

template <typename T>
void add_rows(const T* x, int64_t length, T* to) noexcept {
  for (int64_t t = 0; t < length; ++t) to[t] += x[t];
}

template <typename T>
void add_convolution(const T* x, const T* y, const T* z, const T* sum, int64_t length, T* to) noexcept {
  for (int64_t t = 0; t < length; ++t) to[t] += 3 * (x[t] + y[t] + z[t]) - sum[t];
}

template <typename T>
int64_t count_above(const T* values, int64_t length, T threshold) noexcept {
  int32_t count = 0;
  for (int64_t t = 0; t < length; ++t) count += values[t] > threshold ? 1 : 0;
  return count;
}

template void add_rows(const float*, int64_t, float*) noexcept;
template void add_rows(const double*, int64_t, double*) noexcept;
template void add_convolution(const float*, const float*, const float*, const float*, int64_t,
                              float*) noexcept;
template void add_convolution(const double*, const double*, const double*, const double*, int64_t,
                              double*) noexcept;
template int64_t count_above(const float*, int64_t, float) noexcept;
template int64_t count_above(const double*, int64_t, double) noexcept;

}  // namespace fastweights::kernels

#pragma once

#include "ops/scan/lanes_impl.h"
#include "ops/scan/normalise.h"

/// Rows one after another; here the lanes of a pack are channels.

namespace fastweights::kernels::FW_ISA {

inline float root(float x) noexcept { return __builtin_sqrtf(x); }
inline double root(double x) noexcept { return __builtin_sqrt(x); }

template <typename T>
inline T sum_of(Pack<T> x) noexcept {
  T sum = number<T>(&x, 0, 0);
  for (int64_t l = 1; l < kLanes<T>; ++l) sum += number<T>(&x, 0, l);
  return sum;
}

template <typename T>
inline constexpr int64_t kNormalisePacks = (kNormaliseChannels + 1) / kLanes<T>;

// one row: x~, R x~ and r
template <typename T>
struct NormalisedRow {
  Pack<T> x[kNormalisePacks<T>], moved[kNormalisePacks<T>];
  T r;
};

template <typename T>
inline void normalise_row(const NormaliseTask<T>& task, int64_t n, NormalisedRow<T>& row) noexcept {
  const int64_t channels = task.channels, packs = channels / kLanes<T> + 1;
  row.x[packs - 1] = Pack<T>{};
  const T* x = task.x + n * channels;
  T* to = reinterpret_cast<T*>(row.x);
  for (int64_t c = 0; c < channels; ++c) to[c] = x[c];
  to[channels] = T{1};
  const Pack<T>* metric = reinterpret_cast<const Pack<T>*>(task.metric);
  for (int64_t k = 0; k < packs; ++k) row.moved[k] = metric[channels * packs + k];
  for (int64_t c = 0; c < channels; ++c) {
    const Pack<T> here = all<T>(x[c]);
    for (int64_t k = 0; k < packs; ++k) row.moved[k] += here * metric[c * packs + k];
  }
  Pack<T> square = row.moved[0] * row.moved[0];
  for (int64_t k = 1; k < packs; ++k) square += row.moved[k] * row.moved[k];
  row.r = T{1} / root(sum_of<T>(square) + static_cast<T>(task.epsilon));
}

template <typename T>
void normalise(const NormaliseTask<T>& task, T* out) noexcept {
  NormalisedRow<T> row;
  for (int64_t n = 0; n < task.rows; ++n) {
    normalise_row(task, n, row);
    const T* x = reinterpret_cast<const T*>(row.x);
    T* to = out + n * task.out_row;
    for (int64_t c = 0; c <= task.channels; ++c) to[c] = x[c] * row.r;
  }
}

template <typename T>
void normalise_backward(const NormaliseTask<T>& task, const T* grad, T* grad_x, T* grad_gram) noexcept {
  const int64_t channels = task.channels, packs = channels / kLanes<T> + 1;
  const Pack<T>* metric = reinterpret_cast<const Pack<T>*>(task.metric);
  Pack<T>* gram = reinterpret_cast<Pack<T>*>(grad_gram);
  NormalisedRow<T> row;
  for (int64_t n = 0; n < task.rows; ++n) {
    normalise_row(task, n, row);
    const T *from = grad + n * task.out_row, *x = reinterpret_cast<const T*>(row.x);
    T grad_r = T{0};
    for (int64_t c = 0; c <= channels; ++c) grad_r += from[c] * x[c];
    // r = (x~^T G x~ + eps)^(-1/2)
    const T grad_square = T(-0.5) * row.r * row.r * row.r * grad_r;
    for (int64_t c = 0; c <= channels; ++c) {
      const Pack<T> weight = all<T>(grad_square * x[c]);
      for (int64_t k = 0; k < packs; ++k) gram[c * packs + k] += weight * row.x[k];
    }
    if (!grad_x) continue;
    for (int64_t c = 0; c < channels; ++c) {
      // row c of R^T times R x~ is element c of G x~
      Pack<T> product = metric[c * packs] * row.moved[0];
      for (int64_t k = 1; k < packs; ++k) product += metric[c * packs + k] * row.moved[k];
      grad_x[n * channels + c] = from[c] * row.r + T{2} * grad_square * sum_of<T>(product);
    }
  }
}

template void normalise<float>(const NormaliseTask<float>&, float*) noexcept;
template void normalise<double>(const NormaliseTask<double>&, double*) noexcept;
template void normalise_backward<float>(const NormaliseTask<float>&, const float*, float*, float*) noexcept;
template void normalise_backward<double>(const NormaliseTask<double>&, const double*, double*,
                                         double*) noexcept;

}  // namespace fastweights::kernels::FW_ISA

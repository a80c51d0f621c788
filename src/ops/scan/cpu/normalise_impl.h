#pragma once

#include "ops/scan/cpu/lanes_impl.h"
#include "ops/scan/cpu/normalise.h"

/// Rows one after another; here the lanes of a pack are channels.

namespace fastweights::kernels::FW_ISA {

inline float root(float x) noexcept { return __builtin_sqrtf(x); }
inline double root(double x) noexcept { return __builtin_sqrt(x); }

template <typename T>
inline T sum_of(Pack<T> x) noexcept {
  T sum = element<T>(&x, 0, 0);
  for (int64_t l = 1; l < kLanes<T>; ++l) sum += element<T>(&x, 0, l);
  return sum;
}

template <typename T>
inline constexpr int64_t kNormalisePacks = (kNormaliseChannels + 1) / kLanes<T>;

// rows that share the loads of the metric
inline constexpr int64_t kNormaliseRows = 4;

// x~, R x~ and r of some rows; of those beyond the last one zeros
template <typename T>
struct NormalisedRows {
  Pack<T> x[kNormaliseRows][kNormalisePacks<T>], moved[kNormaliseRows][kNormalisePacks<T>];
  T r[kNormaliseRows];
};

template <typename T>
inline void normalise_rows(const NormaliseTask<T>& task, int64_t first, NormalisedRows<T>& rows) noexcept {
  const int64_t channels = task.channels, packs = channels / kLanes<T> + 1;
  for (int64_t i = 0; i < kNormaliseRows; ++i) {
    for (int64_t k = 0; k < packs; ++k) rows.x[i][k] = rows.moved[i][k] = Pack<T>{};
    if (first + i >= task.rows) continue;
    const T* x = task.x + (first + i) * channels;
    T* to = reinterpret_cast<T*>(rows.x[i]);
    for (int64_t c = 0; c < channels; ++c) to[c] = x[c];
    to[channels] = T{1};
  }
  const Pack<T>* metric = reinterpret_cast<const Pack<T>*>(task.metric);
  for (int64_t c = 0; c <= channels; ++c) {
    Pack<T> here[kNormaliseRows];
    for (int64_t i = 0; i < kNormaliseRows; ++i) here[i] = all<T>(element<T>(rows.x[i], 0, c));
    for (int64_t k = 0; k < packs; ++k) {
      const Pack<T> column = metric[c * packs + k];
      for (int64_t i = 0; i < kNormaliseRows; ++i) rows.moved[i][k] += here[i] * column;
    }
  }
  for (int64_t i = 0; i < kNormaliseRows; ++i) {
    Pack<T> square = rows.moved[i][0] * rows.moved[i][0];
    for (int64_t k = 1; k < packs; ++k) square += rows.moved[i][k] * rows.moved[i][k];
    rows.r[i] = T{1} / root(sum_of<T>(square) + static_cast<T>(task.epsilon));
  }
}

template <typename T>
void normalise(const NormaliseTask<T>& task, T* out) noexcept {
  NormalisedRows<T> rows;
  for (int64_t first = 0; first < task.rows; first += kNormaliseRows) {
    normalise_rows(task, first, rows);
    for (int64_t i = 0; i < kNormaliseRows && first + i < task.rows; ++i) {
      const T* x = reinterpret_cast<const T*>(rows.x[i]);
      T* to = out + (first + i) * task.out_row;
      for (int64_t c = 0; c <= task.channels; ++c) to[c] = x[c] * rows.r[i];
    }
  }
}

// gradient of x~^T G x~ for each of these rows, from that of x~ r
template <typename T>
inline void square_gradients(const NormaliseTask<T>& task, int64_t first, const NormalisedRows<T>& rows,
                             const T* grad, T* out) noexcept {
  for (int64_t i = 0; i < kNormaliseRows; ++i) {
    out[i] = T{0};
    if (first + i >= task.rows) continue;
    const T *from = grad + (first + i) * task.out_row, *x = reinterpret_cast<const T*>(rows.x[i]);
    T grad_r = T{0};
    for (int64_t c = 0; c <= task.channels; ++c) grad_r += from[c] * x[c];
    // r = (x~^T G x~ + eps)^(-1/2)
    out[i] = T(-0.5) * rows.r[i] * rows.r[i] * rows.r[i] * grad_r;
  }
}

template <typename T>
void normalise_backward(const NormaliseTask<T>& task, const T* grad, T* grad_x, T* grad_gram) noexcept {
  const int64_t channels = task.channels, packs = channels / kLanes<T> + 1;
  const Pack<T>* metric = reinterpret_cast<const Pack<T>*>(task.metric);
  Pack<T>* gram = reinterpret_cast<Pack<T>*>(grad_gram);
  NormalisedRows<T> rows;
  T grad_square[kNormaliseRows];
  for (int64_t first = 0; first < task.rows; first += kNormaliseRows) {
    normalise_rows(task, first, rows);
    square_gradients(task, first, rows, grad, grad_square);
    for (int64_t c = 0; c <= channels; ++c) {
      Pack<T> weight[kNormaliseRows];
      for (int64_t i = 0; i < kNormaliseRows; ++i)
        weight[i] = all<T>(grad_square[i] * element<T>(rows.x[i], 0, c));
      for (int64_t k = 0; k < packs; ++k) {
        Pack<T> sum = gram[c * packs + k];
        for (int64_t i = 0; i < kNormaliseRows; ++i) sum += weight[i] * rows.x[i][k];
        gram[c * packs + k] = sum;
      }
    }
    for (int64_t i = 0; grad_x && i < kNormaliseRows && first + i < task.rows; ++i) {
      const T* from = grad + (first + i) * task.out_row;
      for (int64_t c = 0; c < channels; ++c) {
        // row c of R^T times R x~ is element c of G x~
        Pack<T> product = metric[c * packs] * rows.moved[i][0];
        for (int64_t k = 1; k < packs; ++k) product += metric[c * packs + k] * rows.moved[i][k];
        grad_x[(first + i) * channels + c] = from[c] * rows.r[i] + T{2} * grad_square[i] * sum_of<T>(product);
      }
    }
  }
}

template void normalise<float>(const NormaliseTask<float>&, float*) noexcept;
template void normalise<double>(const NormaliseTask<double>&, double*) noexcept;
template void normalise_backward<float>(const NormaliseTask<float>&, const float*, float*, float*) noexcept;
template void normalise_backward<double>(const NormaliseTask<double>&, const double*, double*,
                                         double*) noexcept;

}  // namespace fastweights::kernels::FW_ISA

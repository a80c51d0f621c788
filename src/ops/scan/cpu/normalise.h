#pragma once

#include <cstdint>

/// A signal divided by its length in a metric: x~ r with x~ = [x; 1] and r = 1 / sqrt(|R x~|^2 + eps). This
/// is all that is left of a linear map and a LayerNorm before another linear map (README.md, section 5).

namespace fastweights::kernels {

inline constexpr int64_t kNormaliseChannels = 511;

/// Elements of a row of `metric` and `grad_gram`: C + 1, padded to whole vectors.
int64_t normalise_row(int64_t channels, int64_t bytes) noexcept;

template <typename T>
struct NormaliseTask {
  const T* x;  // [rows, C]
  int64_t rows, channels;
  const T* metric;  // [C + 1, row]: R^T, filled up with zeros
  double epsilon;
  int64_t out_row;  // stride of the result's rows, at least C + 1
};

template <typename T>
void normalise(const NormaliseTask<T>& task, T* out) noexcept;

/// `grad` is laid out as the result. grad_x [rows, C] is set unless null; grad_gram [C + 1, row], the
/// gradient of G = R^T R, is added to.
template <typename T>
void normalise_backward(const NormaliseTask<T>& task, const T* grad, T* grad_x, T* grad_gram) noexcept;

}  // namespace fastweights::kernels

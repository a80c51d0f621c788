#pragma once

#include "ops/scan/plan.h"

/// Tensors of a GPU as its kernels take them.

namespace fastweights {

/// Null if there is none.
inline float* pointer(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

/// One number after another in memory.
inline Tensor plain(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

/// For results beside `like`.
inline Tensor buffer(at::IntArrayRef shape, const Tensor& like) {
  return scan_buffer(shape, like.options().requires_grad(false));
}

/// A gradient of what nobody used is zero.
inline Tensor or_zeros(const Tensor& grad, const Tensor& like) {
  return grad.defined() ? grad.contiguous() : at::zeros_like(like);
}

}  // namespace fastweights

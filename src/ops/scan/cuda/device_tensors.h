#pragma once

#include "ops/scan/plan.h"

/// Tensors of a GPU as its kernels take them.

namespace fastweights {

/// Null if undefined.
inline float* pointer(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr<float>() : nullptr; }

/// Contiguous; undefined stays undefined.
inline Tensor plain(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

/// For results on the device of `like`.
inline Tensor buffer(at::IntArrayRef shape, const Tensor& like) {
  return scan_buffer(shape, like.options().requires_grad(false));
}

/// The gradient of an unused output is zero.
inline Tensor or_zeros(const Tensor& grad, const Tensor& like) {
  return grad.defined() ? grad.contiguous() : at::zeros_like(like);
}

}  // namespace fastweights

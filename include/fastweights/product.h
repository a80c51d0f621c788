#pragma once

#include "fastweights/tensor.h"

/// Batch-invariant versions of LibTorch operations whose bits for a row otherwise depend on the rest of the
/// batch.
///
/// On the CPU, for float32 and float64, a row's value and gradient then have the same bits alone and in any
/// batch, with any number of threads. On other devices LibTorch's operations are used. at::exp, tanh, relu
/// and layer_norm are batch-invariant already; at::sigmoid, silu, softplus, elu and gelu are not, because the
/// last elements of a vectorised loop take another code path, nor is the gradient of at::softmax in
/// LibTorch 2. Second derivatives are rejected with Products::FixedOrder.

namespace fastweights {

/// LibTorch's BLAS, or our own sums in an order that depends only on the size of the summed dimension.
enum class Products { Fast, FixedOrder };

/// x [..., I], weight [O, I], bias [O] or undefined -> [..., O]. In a fixed order the gradients of weight and
/// bias are sums over the rows of x, one after another.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Products products);

/// W k for each matrix: w [..., M, K], k [..., K] -> [..., M], always in a fixed order.
Tensor matvec(const Tensor& w, const Tensor& k);

/// W^T v for each matrix: w [..., M, K], v [..., M] -> [..., K], always in a fixed order.
Tensor matvec_transposed(const Tensor& w, const Tensor& v);

/// 1 / (1 + exp(-x)), element by element.
Tensor sigmoid(const Tensor& x, Products products);

/// Over the last dimension.
Tensor softmax(const Tensor& x, Products products);

}  // namespace fastweights

#pragma once

#include "fastweights/tensor.h"

/// Linear maps, and what else of LibTorch would let a row's bits depend on the rows beside it.
///
/// A fixed order is promised for the CPU, for float32 and float64: a row's value and the gradient of a row
/// have the same bits alone and in any batch, with any number of threads. Elsewhere LibTorch's operations are
/// used. at::exp, tanh, relu and layer_norm keep that promise by themselves, at::sigmoid does not (nor do
/// silu, softplus, elu and gelu): the last elements of a loop over vectors get other code than those before;
/// nor does the gradient of at::softmax in LibTorch 2. Gradients of gradients are refused where a fixed order
/// is in force.

namespace fastweights {

/// Who computes a product: LibTorch's BLAS, or sums of our own in an order that depends on nothing but the
/// dimension that is summed over.
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

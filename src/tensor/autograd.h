#pragma once

#include <functional>
#include <vector>

#include "fastweights/tensor.h"

/// The few pieces of LibTorch's autograd that the library needs, so that one source file includes its
/// headers.

namespace fastweights {

/// Gradients of the outputs and the saved tensors to gradients of the inputs; an output that nobody used has
/// an undefined gradient, and an input that needs none may get one.
using Backward =
    std::function<std::vector<Tensor>(const std::vector<Tensor>& grads, const std::vector<Tensor>& saved)>;

/// Whether autograd would follow an operation on these tensors now.
bool needs_gradient(const std::vector<Tensor>& inputs);

/// Makes freshly computed outputs differentiable. `name` stands in error messages: gradients of gradients are
/// refused, and so is a saved tensor that was changed in place. Outputs must not be captured by `backward`.
std::vector<Tensor> differentiable(const char* name, std::vector<Tensor> outputs,
                                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& saved,
                                   Backward backward);

/// base + sum_j weights[j] terms[j] in one pass over memory; base may be undefined (zero). Differentiable,
/// twice too. Terms with weight zero are not read. Tensors have one shape and type.
Tensor weighted_sum(const Tensor& base, const std::vector<Tensor>& terms, const std::vector<double>& weights);

/// Vector-Jacobian products; an output without gradient is left out, an input that was not used gets zeros.
std::vector<Tensor> vector_jacobian(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& grad_outputs);

}  // namespace fastweights

#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/tensor.h"

/// Learning rules: how the fast weight matrix W(t) changes. A rule is one function of the key, the value, the
/// learning rate and W. All functions work on batches of heads: tensors have the same leading dimensions.

namespace fastweights {

/// a b^T: [..., V] and [..., K] to [..., V, K]
Tensor outer_product(const Tensor& a, const Tensor& b);

/// How a key enters the rule: through a softmax, or as the slow net projects it.
enum class KeyForm { Softmax, Raw };
/// How a value enters the rule: through a tanh, or as the slow net projects it.
enum class ValueForm { Tanh, Raw };

/// The fused kernel that computes a slope.
enum class RuleKernel { None, Hebb, Oja, OjaSoftmax, DeltaPre, DeltaPost };

/// dW/dt from k [..., K], v [..., V], beta [..., 1] and W [..., V, K], of the shape of W. Any function of
/// these four tensors converts to a slope without a kernel, which runs as written; the rules below have
/// kernels.
struct RuleSlope {
  RuleSlope() = default;
  template <std::invocable<const Tensor&, const Tensor&, const Tensor&, const Tensor&> F>
  RuleSlope(F f, RuleKernel kernel_of = RuleKernel::None) : function(std::move(f)), kernel(kernel_of) {}

  Tensor operator()(const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) const {
    return function(k, v, beta, w);
  }
  explicit operator bool() const { return static_cast<bool>(function); }

  std::function<Tensor(const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w)> function;
  RuleKernel kernel = RuleKernel::None;
};

/// Configurations and messages use the name; only the slope determines the computation.
struct Rule {
  std::string name;
  KeyForm key = KeyForm::Softmax;
  ValueForm value = ValueForm::Tanh;
  RuleSlope slope = {};
};

Rule hebb();         ///< beta v (x) k
Rule oja();          ///< beta v (x) (k - W^T v), the paper's equation
Rule oja_softmax();  ///< beta v (x) softmax(k - W^T v), as published
Rule delta_pre();    ///< beta (v - W k) (x) k with v = tanh(.)
Rule delta_post();   ///< beta tanh(v - W k) (x) k

/// The rules above.
const std::vector<Rule>& all_rules();

/// The signals that keys and values are projected from. The query uses the signal of the keys.
enum class Drive {
  X,                 ///< both from x (direct NODE), by one slow net
  DerivativeKeys,    ///< keys and rates from x', values from x
  DerivativeValues,  ///< keys and rates from x, values from x'
  Derivative         ///< both from x'
};

/// The learning rate: sigmoid(b), or b itself as in the published Hebb-CDE.
enum class LearningRate { Sigmoid, Raw };

/// Whether the rule's tanh of the value is applied; the published Hebb-CDE omits it.
enum class ValueActivation { Tanh, None };

/// How W is read: y = W q, or y = W^T q as in the published Hebb- and Oja-CDE.
enum class Read { Plain, Transposed };

}  // namespace fastweights

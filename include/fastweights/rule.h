#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/solve.h"
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

// The classical learning rules of a linear layer y = W x, as updates and as differential equations. The
// output of the layer is the value of the rule.
//
//     Hebb   W += eta y (x) x              W'(t) = eta y (x) x
//     Oja    W += eta y (x) (x - W^T y)    W'(t) = eta y (x) (x - W^T y)
//
// With one unit (V = 1) Oja's W converges to the first principal component of the inputs; with several, its
// rows span the first V of them. The rules are hebb() and oja() above, or a custom one: x is the
// key, y the value and eta the rate, without activations. Since y depends on W, `scan` does not apply.

/// One update of w [..., V, K] by x [..., K], with y = W x before the update.
Tensor classical_update(const Rule& rule, const Tensor& w, const Tensor& x, double eta);
Tensor hebb_update(const Tensor& w, const Tensor& x, double eta);
Tensor oja_update(const Tensor& w, const Tensor& x, double eta);

/// Training inputs xs [N, ..., K] in order, each with its own rate, or all with the same.
struct ClassicalInputs {
  Tensor xs;                 // [N, ..., K]
  std::vector<double> etas;  // N, or one for all
};

/// W before the first update and after each of them: [N + 1, ..., V, K].
Tensor classical_run(const Rule& rule, const Tensor& w0, const ClassicalInputs& inputs);

/// The same as a differential equation: x(t) = xs[n] and eta(t) = etas[n] for n < t < n + 1, solved with one
/// step of the method per input. ys [N + 1, ..., V, K] are W at the times 0 .. N. Euler's method gives the
/// same bits as classical_run().
Solution classical_flow(const Rule& rule, const Tensor& w0, const ClassicalInputs& inputs,
                        const Method& method = rk4());

/// The equation for any signal x(t) [..., K] and a constant rate, for `solve`. (The paper's equation contains
/// W(t - 1), which its discretisation reads as W before a step; this one uses W(t).)
Field classical_field(const Rule& rule, std::function<Tensor(const Time&)> x, double eta);

}  // namespace fastweights

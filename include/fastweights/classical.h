#pragma once

#include <functional>
#include <vector>

#include "fastweights/rule.h"
#include "fastweights/solve.h"

/// The classical learning rules of a linear layer y = W x, as updates and as differential equations. The
/// output of the layer is the value of the rule.
///
///     Hebb   W += eta y (x) x              W'(t) = eta y (x) x
///     Oja    W += eta y (x) (x - W^T y)    W'(t) = eta y (x) (x - W^T y)
///
/// With one unit (V = 1) Oja's W converges to the first principal component of the inputs; with several, its
/// rows span the first V of them. The rules are those of rule.h, hebb() and oja(), or a custom one: x is the
/// key, y the value and eta the rate, without activations. Since y depends on W, `scan` does not apply.

namespace fastweights {

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

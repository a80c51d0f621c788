#include "fastweights/rule.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "fastweights/tensor.h"

namespace fastweights {
namespace {

Tensor slope(const Rule& rule, const Tensor& w, const Tensor& x, double eta) {
  return rule.slope(x, matvec(w, x), at::full({1}, eta, w.options()), w);
}

void check_weights(const Tensor& w, at::IntArrayRef x_shape) {
  FW_CHECK(w.defined() && w.dim() >= 2, "[classical] W must be [..., V, K]");
  std::vector<int64_t> expected = w.sizes().vec();
  expected.erase(expected.end() - 2);
  FW_CHECK(x_shape == at::IntArrayRef(expected), "[classical] for W ", w.sizes(), " an input must be ",
           at::IntArrayRef(expected), ", got ", x_shape);
}

void check_inputs(const Tensor& w0, const ClassicalInputs& inputs) {
  FW_CHECK(inputs.xs.defined() && inputs.xs.dim() >= 2 && inputs.xs.size(0) > 0,
           "[classical] xs must be [N, ..., K] with at least one input");
  check_weights(w0, inputs.xs.sizes().slice(1));
  const int64_t count = inputs.xs.size(0), rates = static_cast<int64_t>(inputs.etas.size());
  FW_CHECK(rates == 1 || rates == count, "[classical] ", count, " inputs need ", count,
           " rates, or one for all, got ", rates);
}

double rate(const ClassicalInputs& inputs, int64_t n) {
  return inputs.etas[inputs.etas.size() == 1 ? 0 : static_cast<size_t>(n)];
}

}  // namespace

Tensor classical_update(const Rule& rule, const Tensor& w, const Tensor& x, double eta) {
  FW_CHECK(x.defined(), "[classical] x must be [..., K]");
  check_weights(w, x.sizes());
  return w + slope(rule, w, x, eta);
}

Tensor hebb_update(const Tensor& w, const Tensor& x, double eta) {
  return classical_update(hebb(), w, x, eta);
}

Tensor oja_update(const Tensor& w, const Tensor& x, double eta) { return classical_update(oja(), w, x, eta); }

Tensor classical_run(const Rule& rule, const Tensor& w0, const ClassicalInputs& inputs) {
  check_inputs(w0, inputs);
  std::vector<Tensor> w = {w0};
  for (int64_t n = 0; n < inputs.xs.size(0); ++n)
    w.push_back(w.back() + slope(rule, w.back(), inputs.xs[n], rate(inputs, n)));
  return at::stack(w);
}

Solution classical_flow(const Rule& rule, const Tensor& w0, const ClassicalInputs& inputs,
                        const Method& method) {
  check_inputs(w0, inputs);
  const int64_t count = inputs.xs.size(0);
  const Field field = [rule, inputs, count](const Time& t, const Tensor& w) {
    const auto n = std::clamp(static_cast<int64_t>(std::floor(t.value())), int64_t{0}, count - 1);
    return slope(rule, w, inputs.xs[n], rate(inputs, n));
  };
  const Tensor times = at::arange(count + 1, at::kDouble);  // [N + 1]
  // inputs jump where steps meet
  return solve(field, w0, times, {.method = method, .steps = GivenSteps{times, StageEdges::Inside}});
}

Field classical_field(const Rule& rule, std::function<Tensor(const Time&)> x, double eta) {
  return [rule, x = std::move(x), eta](const Time& t, const Tensor& w) { return slope(rule, w, x(t), eta); };
}

}  // namespace fastweights

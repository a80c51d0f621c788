#include "fastweights/rule.h"

#include "fastweights/tensor.h"

namespace fastweights {

Tensor outer_product(const Tensor& a, const Tensor& b) { return a.unsqueeze(-1) * b.unsqueeze(-2); }

Rule hebb() {
  const auto slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor&) {
    return outer_product(beta * v, k);
  };
  return {.name = "hebb", .slope = {slope, RuleKernel::Hebb}};
}

Rule oja() {
  const auto slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
    return outer_product(beta * v, k - matvec_transposed(w, v));
  };
  return {.name = "oja", .slope = {slope, RuleKernel::Oja}};
}

Rule oja_softmax() {
  const auto slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
    return outer_product(beta * v, softmax(k - matvec_transposed(w, v), Products::FixedOrder));
  };
  return {.name = "oja_softmax", .key = KeyForm::Raw, .slope = {slope, RuleKernel::OjaSoftmax}};
}

Rule delta_pre() {
  const auto slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
    return outer_product(beta * (v - matvec(w, k)), k);
  };
  return {.name = "delta_pre", .slope = {slope, RuleKernel::DeltaPre}};
}

Rule delta_post() {
  const auto slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
    return outer_product(beta * at::tanh(v - matvec(w, k)), k);
  };
  return {.name = "delta_post", .value = ValueForm::Raw, .slope = {slope, RuleKernel::DeltaPost}};
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> kRules = {hebb(), oja(), oja_softmax(), delta_pre(), delta_post()};
  return kRules;
}

}  // namespace fastweights

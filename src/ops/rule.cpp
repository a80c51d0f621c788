#include "fastweights/rule.h"

#include "fastweights/product.h"

namespace fastweights {

Tensor outer_product(const Tensor& a, const Tensor& b) { return a.unsqueeze(-1) * b.unsqueeze(-2); }

Rule hebb() {
  return {.name = "hebb", .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor&) {
            return outer_product(beta * v, k);
          }};
}

Rule oja() {
  return {.name = "oja", .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * v, k - matvec_transposed(w, v));
          }};
}

Rule oja_softmax() {
  return {.name = "oja_softmax",
          .key = KeyForm::Raw,
          .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * v, softmax(k - matvec_transposed(w, v), Products::FixedOrder));
          }};
}

Rule delta_pre() {
  return {.name = "delta_pre",
          .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * (v - matvec(w, k)), k);
          }};
}

Rule delta_post() {
  return {.name = "delta_post",
          .value = ValueForm::Raw,
          .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * at::tanh(v - matvec(w, k)), k);
          }};
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> kRules = {hebb(), oja(), oja_softmax(), delta_pre(), delta_post()};
  return kRules;
}

}  // namespace fastweights

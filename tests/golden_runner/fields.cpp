#include "fields.h"

namespace fastweights::golden {

std::vector<Tensor> CountedField::parameter_list() const {
  std::vector<Tensor> result;
  for (const auto& [name, parameter] : parameters) result.push_back(parameter);
  return result;
}

CountedField mlp_field(GoldenFile& file) {
  CountedField result;
  for (const char* name : {"l1.weight", "l1.bias", "l2.weight", "l2.bias"}) {
    result.parameters[name] = file.tensor(std::string("param.") + name).clone().set_requires_grad(true);
  }
  result.field = [calls = result.calls, w1 = result.parameters["l1.weight"],
                  b1 = result.parameters["l1.bias"], w2 = result.parameters["l2.weight"],
                  b2 = result.parameters["l2.bias"]](const Time& t, const Tensor& y) {
    ++*calls;
    const Tensor time = t.like(y).expand({y.size(0), 1});
    const Tensor hidden = at::tanh(at::linear(at::cat({y, time}, 1), w1, b1));
    return at::linear(hidden, w2, b2);
  };
  return result;
}

double noise_of_solutions(const Method& method) {
  const Tableau* tableau = std::get_if<Tableau>(&method);
  return tableau && tableau->adaptive() && tableau->order >= 8 ? 8e-7 : kRounding;
}

double noise_of_gradients(const Method& method) {
  return noise_of_solutions(method) > kRounding ? 8e-6 : kRounding;
}

Method torchdiffeq_method(const std::string& name, const GoldenFile& file) {
  Method result = method(name == "tsit5" ? "tsit5_torchdiffeq" : name);
  if (Adams* adams = std::get_if<Adams>(&result)) {
    if (file.has_text("max_order")) adams->max_order = static_cast<int>(file.number("max_order"));
  }
  return result;
}

}  // namespace fastweights::golden

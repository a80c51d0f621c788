#include "train/tensor_adam.h"

#include <cmath>

#include "train/checkpoint.h"
#include "train/device_adam.h"
#include "train/step.h"

namespace fastweights {
namespace {

class TensorAdam final : public Optimiser {
 public:
  TensorAdam(const NamedParameters& parameters, const AdamOptions& options)
      : parameters_(parameters), adam_(tensors_of(parameters), options) {}

  void begin_step(double learning_rate) override { adam_.set_learning_rate(learning_rate); }

  void apply(const StepGradient& gradient, double clip) override {
    const double norm = gradient.norm.item<double>();
    if (!std::isfinite(norm)) return;
    std::vector<Tensor> grads = gradient.by_parameter;
    if (clip > 0 && norm > clip) {
      for (Tensor& grad : grads) grad = grad * (clip / norm);
    }
    adam_.step(grads);
  }

  std::map<std::string, Tensor> state() const override { return adam_tensors(parameters_, adam_.state()); }
  void set_state(const std::map<std::string, Tensor>& tensors) override {
    adam_.set_state(adam_state(parameters_, tensors));
  }

 private:
  NamedParameters parameters_;
  Adam adam_;
};

}  // namespace

std::unique_ptr<Optimiser> make_adam(const Network& network, const AdamOptions& options) {
  // the device's kernel is float32
  if (network.device().is_cpu() || network.flat_parameters().scalar_type() != at::kFloat)
    return std::make_unique<TensorAdam>(network.parameters(), options);
  return std::make_unique<DeviceAdam>(network, options);
}

std::map<std::string, Tensor> adam_tensors(const NamedParameters& parameters, const AdamState& state) {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors["adam.first." + parameters[i].first] = state.first[i];
    tensors["adam.second." + parameters[i].first] = state.second[i];
  }
  tensors["adam.steps"] = at::tensor(state.steps, at::kLong);
  return tensors;
}

AdamState adam_state(const NamedParameters& parameters, const std::map<std::string, Tensor>& tensors) {
  AdamState state;
  const Tensor steps = saved_list(tensors, "adam.steps", parameters.size(), at::kLong);
  for (const auto& [name, tensor] : parameters) {
    state.first.push_back(saved_like(tensors, "adam.first." + name, tensor));
    state.second.push_back(saved_like(tensors, "adam.second." + name, tensor));
  }
  state.steps.assign(steps.data_ptr<int64_t>(), steps.data_ptr<int64_t>() + steps.size(0));
  return state;
}

}  // namespace fastweights

#include "train/device_adam.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/adam.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "train/tensor_adam.h"

namespace fastweights {

DeviceAdam::DeviceAdam(const Network& network, const AdamOptions& options)
    : options_(options),
      parameters_(network.parameters()),
      flat_(network.flat_parameters()),
      first_(at::zeros_like(flat_)),
      second_(at::zeros_like(flat_)),
      scalars_(at::zeros({3}, flat_.options().requires_grad(false).dtype(at::kDouble))) {
  const auto& given = options.rate_factors;
  if (std::all_of(given.begin(), given.end(), [](double factor) { return factor == 1; })) return;
  std::vector<Tensor> factors;
  for (size_t i = 0; i < parameters_.size(); ++i)
    factors.push_back(at::full({parameters_[i].second.numel()}, given[i], flat_.options()));
  factors_ = at::cat(factors, 0);
}

void DeviceAdam::begin_step(double learning_rate) {
  options_.learning_rate = learning_rate;
  const auto t = static_cast<double>(++steps_);
  const double correction1 = 1 - std::pow(options_.beta1, t),
               correction2 = std::sqrt(1 - std::pow(options_.beta2, t));
  copy_to_device(at::tensor({learning_rate, correction1, correction2}, at::kDouble), scalars_);
}

void DeviceAdam::apply(const StepGradient& gradient, double clip) {
  const kernels::CudaAdam step = {.count = flat_.numel(),
                                  .parameters = flat_.data_ptr<float>(),
                                  .gradients = gradient.flat.data_ptr<float>(),
                                  .first = first_.data_ptr<float>(),
                                  .second = second_.data_ptr<float>(),
                                  .factors = factors_.defined() ? factors_.data_ptr<float>() : nullptr,
                                  .norm = gradient.norm.data_ptr<float>(),
                                  .clip = clip,
                                  .beta1 = options_.beta1,
                                  .beta2 = options_.beta2,
                                  .epsilon = options_.epsilon,
                                  .weight_decay = options_.weight_decay,
                                  .rates = scalars_.data_ptr<double>()};
  kernels::cuda_adam(step, cuda_stream(flat_));
}

std::vector<Tensor> DeviceAdam::by_parameter(const Tensor& flat) const {
  const Tensor here = flat.cpu();
  std::vector<Tensor> result;
  int64_t first = 0;
  for (const auto& [name, parameter] : parameters_) {
    result.push_back(here.slice(0, first, first + parameter.numel()).view(parameter.sizes()).clone());
    first += parameter.numel();
  }
  return result;
}

std::map<std::string, Tensor> DeviceAdam::state() const {
  return adam_tensors(parameters_, {by_parameter(first_), by_parameter(second_),
                                    std::vector<int64_t>(parameters_.size(), steps_)});
}

void DeviceAdam::set_state(const std::map<std::string, Tensor>& tensors) {
  const AdamState state = adam_state(parameters_, tensors);
  const auto flat = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> parts;
    for (const Tensor& tensor : list) parts.push_back(tensor.reshape({-1}));
    return at::cat(parts, 0);
  };
  const at::NoGradGuard no_grad;
  first_.copy_(flat(state.first));
  second_.copy_(flat(state.second));
  steps_ = state.steps.empty() ? 0 : *std::max_element(state.steps.begin(), state.steps.end());
}

}  // namespace fastweights

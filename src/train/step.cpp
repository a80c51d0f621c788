#include "train/step.h"

#include <cmath>

namespace fastweights {
namespace {

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}));
  return at::cat(parts, 0);
}

// in float64, one parameter after another
double norm_of(const std::vector<Tensor>& tensors) {
  double squares = 0;
  for (const Tensor& tensor : tensors) squares += std::pow(tensor.norm().item<double>(), 2);
  return std::sqrt(squares);
}

}  // namespace

std::vector<Tensor> tensors_of(const NamedParameters& parameters) {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters) result.push_back(tensor);
  return result;
}

ComputedStep compute_gradient(const StepWork& work, const PreparedBatch& input, const Batch& truth,
                              const PassOptions& options) {
  const std::vector<Tensor> parameters = tensors_of(work.network->parameters());
  const ModelOutput output = work.network->forward(input, options);
  const Tensor task_loss = work.loss(output.outputs, truth);
  Tensor loss = task_loss;
  if (output.auxiliary_loss.defined()) loss = loss + output.auxiliary_loss;
  if (work.penalty > 0) loss = loss + norm_penalty(parameters, work.penalty);
  ComputedStep result;
  StepGradient& gradient = result.gradient;
  gradient.by_parameter = gradients(loss, parameters);
  const at::NoGradGuard no_grad;
  const Tensor value = task_loss.detach();
  if (!work.network->device().is_cpu()) {
    gradient.flat = flat(gradient.by_parameter);
    gradient.norm = gradient.flat.norm() + 0 * value;
    result.summary = at::stack({value, gradient.norm}, 0);
    return result;
  }
  const double norm = norm_of(gradient.by_parameter) + 0 * value.item<double>();
  gradient.norm = at::scalar_tensor(norm, at::kDouble);
  result.summary = at::tensor({value.item<double>(), norm}, at::kDouble);
  if (!std::isfinite(norm)) result.status = output.status ? finite_status(output) : output.status;
  return result;
}

ComputedStep PlainSteps::run(const ReadyBatch& batch, double learning_rate) {
  PassOptions options;
  options.mode = Mode::Train;
  options.seed = batch.seed;
  ComputedStep result = compute_gradient(work_, batch.input, batch.truth, options);
  const at::NoGradGuard no_grad;
  // from here on a step is not tried again
  work_.optimiser->begin_step(learning_rate);
  work_.optimiser->apply(result.gradient, work_.clip);
  return result;
}

}  // namespace fastweights

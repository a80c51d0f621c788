#include "fastweights/optimise.h"

#include <cmath>
#include <utility>

#include "fastweights/error.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

void check_rate(double learning_rate) {
  FW_CHECK(std::isfinite(learning_rate) && learning_rate >= 0,
           "[adam] learning_rate must be finite and not negative, got ", learning_rate);
}

void check(const AdamOptions& options) {
  check_rate(options.learning_rate);
  FW_CHECK(options.beta1 >= 0 && options.beta1 < 1, "[adam] beta1 must be in [0, 1), got ", options.beta1);
  FW_CHECK(options.beta2 >= 0 && options.beta2 < 1, "[adam] beta2 must be in [0, 1), got ", options.beta2);
  FW_CHECK(std::isfinite(options.epsilon) && options.epsilon >= 0,
           "[adam] epsilon must be finite and not negative, got ", options.epsilon);
  FW_CHECK(std::isfinite(options.weight_decay) && options.weight_decay >= 0,
           "[adam] weight_decay must be finite and not negative, got ", options.weight_decay);
}

}  // namespace

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : options_(options), parameters_(std::move(parameters)) {
  check(options_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    FW_CHECK(parameter.defined(), "[adam] parameter ", i, " is undefined");
    FW_CHECK(parameter.is_floating_point(), "[adam] parameter ", i, " must be of floating point, got ",
             parameter.scalar_type());
    state_.first.push_back(at::zeros_like(parameter));
    state_.second.push_back(at::zeros_like(parameter));
    state_.steps.push_back(0);
  }
  FW_CHECK(options_.rate_factors.empty() || options_.rate_factors.size() == parameters_.size(),
           "[adam] there are ", parameters_.size(), " parameters, got ", options_.rate_factors.size(),
           " rate_factors");
}

AdamState Adam::state() const {
  AdamState copy = state_;
  for (std::vector<Tensor>* means : {&copy.first, &copy.second}) {
    for (Tensor& mean : *means) mean = mean.clone();
  }
  return copy;
}

void Adam::set_state(const AdamState& state) {
  const size_t count = parameters_.size();
  FW_CHECK(state.first.size() == count && state.second.size() == count && state.steps.size() == count,
           "[adam] there are ", count, " parameters, the state is of ", state.first.size());
  for (size_t i = 0; i < count; ++i) {
    FW_CHECK(
        state.first[i].sizes() == parameters_[i].sizes() && state.second[i].sizes() == parameters_[i].sizes(),
        "[adam] the state of parameter ", i, " must be ", parameters_[i].sizes(), ", got ",
        state.first[i].sizes(), " and ", state.second[i].sizes());
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < count; ++i) {
    state_.first[i].copy_(state.first[i]);
    state_.second[i].copy_(state.second[i]);
  }
  state_.steps = state.steps;
}

void Adam::set_learning_rate(double learning_rate) {
  check_rate(learning_rate);
  options_.learning_rate = learning_rate;
}

void Adam::step(const std::vector<Tensor>& gradients) {
  FW_CHECK(gradients.size() == parameters_.size(), "[adam] there are ", parameters_.size(),
           " parameters, got ", gradients.size(), " gradients");
  // before anything is changed
  for (size_t i = 0; i < gradients.size(); ++i) {
    FW_CHECK(!gradients[i].defined() || gradients[i].sizes() == parameters_[i].sizes(), "[adam] gradient ", i,
             " must be ", parameters_[i].sizes(), " like its parameter, got ", gradients[i].sizes());
  }
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& gradient = gradients[i];
    if (!gradient.defined()) continue;
    Tensor &first = state_.first[i], &second = state_.second[i];
    const auto t = static_cast<double>(++state_.steps[i]);
    const double rate =
        options_.learning_rate * (options_.rate_factors.empty() ? 1 : options_.rate_factors[i]);
    if (options_.weight_decay > 0) parameters_[i].mul_(1 - rate * options_.weight_decay);
    first.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    // both means start at zero, which these corrections undo
    const double correction1 = 1 - std::pow(options_.beta1, t);
    const double correction2 = std::sqrt(1 - std::pow(options_.beta2, t));
    const Tensor denominator = at::sqrt(second).div_(correction2).add_(options_.epsilon);
    parameters_[i].addcdiv_(first, denominator, -rate / correction1);
  }
}

Tensor norm_penalty(const std::vector<Tensor>& tensors, double weight) {
  FW_CHECK(!tensors.empty(), "[norm_penalty] there must be at least one tensor, got none");
  FW_CHECK(std::isfinite(weight) && weight >= 0,
           "[norm_penalty] weight must be finite and not negative, got ", weight);
  Tensor sum;  // []
  for (size_t i = 0; i < tensors.size(); ++i) {
    FW_CHECK(tensors[i].defined(), "[norm_penalty] tensor ", i, " is undefined");
    sum = i == 0 ? tensors[i].norm() : sum + tensors[i].norm();
  }
  return weight * sum;
}

std::vector<Tensor> gradients(const Tensor& loss, const std::vector<Tensor>& parameters) {
  FW_CHECK(loss.defined(), "[gradients] the loss is undefined");
  FW_CHECK(loss.numel() == 1, "[gradients] the loss must have one element, got ", loss.sizes());
  for (size_t i = 0; i < parameters.size(); ++i)
    FW_CHECK(parameters[i].defined(), "[gradients] parameter ", i, " is undefined");
  return vector_jacobian({loss}, parameters, {at::ones_like(loss)});
}

}  // namespace fastweights

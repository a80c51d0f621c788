#include "train/recorded_step.h"

#include "tensor/autograd.h"

namespace fastweights {
namespace {

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}));
  return at::cat(parts, 0);
}

}  // namespace

StepGradient step_gradient(const StepWork& work, const PreparedInput& input, const Batch& truth,
                           const ForwardOptions& options) {
  const std::vector<Tensor> parameters = work.model.parameter_tensors();
  const ModelOutput output = work.model.forward(input, options);
  const Tensor plain_loss = task_loss(output.outputs, truth, work.class_weights);
  const Tensor loss = work.penalty > 0 ? plain_loss + norm_penalty(parameters, work.penalty) : plain_loss;
  StepGradient result;
  result.pieces = gradients(loss, parameters);
  const at::NoGradGuard no_grad;
  result.flat = flat(result.pieces);
  result.norm = result.flat.norm() + 0 * plain_loss.detach();
  result.numbers = at::stack({plain_loss.detach(), result.norm}, 0);
  return result;
}

RecordedStep::RecordedStep(const StepWork& work, const DeviceAdam& adam, const PreparedInput& first,
                           const Batch& truth, int64_t rows)
    : work_(work), place_(with_room(first.resident(), rows)), graph_(work.model.device()) {
  const at::Device device = work.model.device();
  truth_.classes = on_device(truth.classes, device);
  seed_ = at::zeros({1}, at::TensorOptions(at::kLong).device(device));
  const PreparedInput input(place_);
  // the seed is all in the device's number
  const ForwardOptions options = {.mode = Mode::Train, .seed = 0, .more_seed = seed_};
  const auto gradient = [&] { result_ = step_gradient(work_, input, truth_, options); };
  graph_.record(gradient, [&] {
    gradient();
    const at::NoGradGuard no_grad;
    adam.apply(result_.flat, result_.norm, work_.clip);
  });
}

bool RecordedStep::possible(const FastWeightProgrammer& model, const PreparedInput& input,
                            const Batch& truth) {
  if (!truth.classes.defined() || truth.classes.lt(0).any().item<bool>()) return false;
  return model.can_record(input);
}

bool RecordedStep::takes(const PreparedInput& input, const Batch& truth) const {
  if (!possible(work_.model, input, truth) || truth.classes.sizes() != truth_.classes.sizes()) return false;
  const Resident& batch = input.resident();
  // reads of layers below take every row for one that is there
  const bool exact = work_.model.config().layers > 1;
  return has_room(*place_, batch) && (!exact || place_->steps.dt.size(0) == batch.steps.dt.size(0));
}

const StepGradient& RecordedStep::run(const PreparedInput& input, const Batch& truth, uint64_t seed) {
  const at::NoGradGuard no_grad;
  refill(*place_, input.resident());
  copy_to_device(truth.classes, truth_.classes);
  copy_to_device(at::full({1}, static_cast<int64_t>(seed), at::kLong), seed_);
  graph_.replay();
  return result_;
}

}  // namespace fastweights

#include "train/device_training.h"

#include <cmath>
#include <numeric>

#include "fastweights/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// of the memory that is free, for data that stay
constexpr double kDataShare = 0.25;
// series that say how large all of them are
constexpr int64_t kSome = 64;

std::vector<int64_t> first_samples(int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  return samples;
}

// what the model sees of a series is the same in every epoch, whatever its neighbours are
bool stays(const FastWeightProgrammer& model, const TaskConfig& task) {
  const ModelConfig& config = model.config();
  return task.kind != TaskKind::Imputation && config.query != QueryTime::LastOfBatch &&
         config.solver.steps != StepRule::SharedGrid;
}

std::optional<PreparedInput> whole_set(const FastWeightProgrammer& model, const TrainData& data) {
  if (!stays(model, data.task)) return {};
  const int64_t samples = data.train.samples(), some = std::min(kSome, samples);
  const auto prepared = [&](int64_t count) {
    return model.prepare(
        make_batch(data.train, data.preparation, data.task, first_samples(count), /*seed=*/1).input);
  };
  const RecordGradients off(false);
  const double each = static_cast<double>(prepared(some).bytes()) / static_cast<double>(some);
  const auto free = static_cast<double>(device_memory(model.device()).free);
  if (each * static_cast<double>(samples) > kDataShare * free) return {};
  return prepared(samples);
}

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) parts.push_back(tensor.reshape({-1}));
  return at::cat(parts, 0);
}

}  // namespace

DeviceTraining::DeviceTraining(const FastWeightProgrammer& model, const TrainData& data,
                               const AdamOptions& options)
    : data_(data), adam_(model, options), all_(whole_set(model, data)) {}

DeviceTraining::Ready DeviceTraining::make_ready(const FastWeightProgrammer& model,
                                                 const Place& place) const {
  const RecordGradients off(false);
  if (all_)
    return {place, all_->select(place.samples),
            truth_of(data_.train, data_.preparation, data_.task, place.samples)};
  Batch batch = make_batch(data_.train, data_.preparation, data_.task, place.samples, place.seed);
  return {place, model.prepare(batch.input), std::move(batch)};
}

DeviceStep DeviceTraining::try_step(const FastWeightProgrammer& model, const TrainConfig& config,
                                    const Tensor& class_weights, const std::optional<Place>& next,
                                    double rate) {
  const Ready& here = *ready_;
  const std::vector<Tensor> parameters = model.parameter_tensors();
  const ModelOutput output = model.forward(here.input, {.mode = Mode::Train, .seed = here.place.seed});
  const Tensor plain_loss = task_loss(output.outputs, here.truth, class_weights);
  const Tensor loss = config.penalty > 0 ? plain_loss + norm_penalty(parameters, config.penalty) : plain_loss;
  const std::vector<Tensor> grads = gradients(loss, parameters);
  const RecordGradients off(false);
  const Tensor gradient = flat(grads), norm = gradient.norm();
  adam_.step(gradient, norm, rate, config.clip);
  const Tensor numbers = at::stack({plain_loss.detach(), norm}, 0);
  if (next) {
    // while the device works
    Ready coming = make_ready(model, *next);
    const Tensor known = numbers.cpu();
    ready_ = std::move(coming);
    return {known[0].item<double>(), known[1].item<double>(), grads};
  }
  const Tensor known = numbers.cpu();
  ready_.reset();
  return {known[0].item<double>(), known[1].item<double>(), grads};
}

DeviceStep DeviceTraining::step(FastWeightProgrammer& model, const TrainConfig& config,
                                const Tensor& class_weights, const Place& here,
                                const std::optional<Place>& next, double rate) {
  while (true) {
    try {
      if (!ready_ || ready_->place.samples != here.samples || ready_->place.seed != here.seed)
        ready_ = make_ready(model, here);
      return try_step(model, config, class_weights, next, rate);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
    // half of what it tried, in shorter blocks of time
    ready_.reset();
    release_device_memory();
    SolverConfig solver = model.config().solver;
    const int64_t free = device_memory(model.device()).free;
    solver.memory_limit = (solver.memory_limit > 0 ? std::min(solver.memory_limit, free) : free) / 2;
    if (solver.memory_limit < (int64_t{16} << 20))
      throw std::runtime_error(message("[train] the GPU has too little memory for a batch of ",
                                       here.samples.size(), " series, ", free >> 20,
                                       " MB; take a smaller --batch-size"));
    model.set_solver(solver);
  }
}

Predictions DeviceTraining::validate(const FastWeightProgrammer& model) {
  if (!validation_) validation_ = prepare_set(model, data_.validation, data_.preparation, data_.task, {});
  return predict(model, *validation_);
}

}  // namespace fastweights

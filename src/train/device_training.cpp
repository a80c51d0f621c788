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
constexpr double kValidationShare = 0.1;
// of a limit for steps
constexpr int64_t kLeast = int64_t{16} << 20;
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

PreparedInput prepared(const FastWeightProgrammer& model, const TrainData& data, const PreparedData& set,
                       int64_t samples) {
  return model.prepare(
      make_batch(set, data.preparation, data.task, first_samples(samples), /*seed=*/1).input);
}

// whether a set takes no more than this share of the memory that is free, judged by its first series
bool fits_device(const FastWeightProgrammer& model, const TrainData& data, const PreparedData& set,
                 double share) {
  const RecordGradients off(false);
  const int64_t some = std::min(kSome, set.samples());
  const int64_t* o = set.offsets.data_ptr<int64_t>();
  const auto rows = static_cast<double>(std::max<int64_t>(o[some], 1));
  const double each = static_cast<double>(prepared(model, data, set, some).bytes()) / rows;
  return each * static_cast<double>(o[set.samples()]) <=
         share * static_cast<double>(device_memory(model.device()).free);
}

std::optional<PreparedInput> whole_set(const FastWeightProgrammer& model, const TrainData& data) {
  if (!stays(model, data.task) || !fits_device(model, data, data.train, kDataShare)) return {};
  const RecordGradients off(false);
  try {
    return prepared(model, data, data.train, data.train.samples());
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  release_device_memory();
  return {};
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
  // a loss that is not finite makes the norm so, and then nothing is changed
  const Tensor gradient = flat(grads), norm = gradient.norm() + 0 * plain_loss.detach();
  const Tensor numbers = at::stack({plain_loss.detach(), norm}, 0);
  // from here on nothing is tried again
  adam_.step(gradient, norm, rate, config.clip);
  ready_.reset();
  if (next) prepare_next(model, *next);
  const Tensor known = numbers.cpu();
  const DeviceStep result = {known[0].item<double>(), known[1].item<double>(), grads};
  if (!std::isfinite(result.gradient_norm)) adam_.take_back();
  return result;
}

void DeviceTraining::prepare_next(const FastWeightProgrammer& model, const Place& next) {
  try {
    ready_ = make_ready(model, next);
  } catch (const std::exception& error) {
    // it will be made when its turn comes
    if (!is_out_of_memory(error)) throw;
  }
}

DeviceStep DeviceTraining::step(const FastWeightProgrammer& model, const TrainConfig& config,
                                const Tensor& class_weights, const Place& here,
                                const std::optional<Place>& next, double rate) {
  while (true) {
    const FastWeightProgrammer& used = limited_ ? *limited_ : model;
    try {
      if (!ready_ || ready_->place.samples != here.samples || ready_->place.seed != here.seed)
        ready_ = make_ready(used, here);
      return try_step(used, config, class_weights, next, rate);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
    // half of what it tried, in shorter blocks of time
    ready_.reset();
    release_device_memory();
    SolverConfig solver = used.config().solver;
    const int64_t free = device_memory(model.device()).free;
    solver.memory_limit = (solver.memory_limit > 0 ? std::min(solver.memory_limit, free) : free) / 2;
    if (solver.memory_limit < kLeast)
      throw std::runtime_error(message("[train] the GPU has too little memory for a batch of ",
                                       here.samples.size(), " series, ", free >> 20,
                                       " MB; take a smaller --batch-size"));
    FastWeightProgrammer limited = model;
    limited.set_solver(solver);
    limited_ = limited;
  }
}

Predictions DeviceTraining::validate(const FastWeightProgrammer& model) {
  const FastWeightProgrammer& used = limited_ ? *limited_ : model;
  if (validation_kept_ == Kept::Unknown) {
    const bool fits = fits_device(used, data_, data_.validation, kValidationShare);
    if (fits) validation_ = prepare_set(used, data_.validation, data_.preparation, data_.task, {});
    validation_kept_ = fits ? Kept::Yes : Kept::No;
  }
  return validation_kept_ == Kept::Yes ? predict(used, validation_)
                                       : predict(used, data_.validation, data_.preparation, data_.task);
}

}  // namespace fastweights

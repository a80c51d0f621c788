#include "train/training_steps.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "model/prepared.h"
#include "tensor/device.h"
#include "train/model_time.h"

namespace fastweights {
namespace {

// shares of the memory that is free, for data that are kept
constexpr double kTrainingShare = 0.25, kValidationShare = 0.1;
// of a limit for steps
constexpr int64_t kLeastLimit = int64_t{16} << 20;
// number of series from which the size of all is estimated
constexpr int64_t kProbe = 64;
// of the machine's memory, for data that are kept on the CPU
constexpr double kHostShare = 0.5;

std::vector<int64_t> first_samples(int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  return samples;
}

double free_memory(const at::Device& device) {
  if (!device.is_cpu()) return static_cast<double>(device_memory(device).free);
  return kHostShare * static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

PreparedBatch prepared(const Model& model, const TrainData& data, const PreparedData& set, int64_t samples) {
  return model.prepare(
      make_batch(set, data.preparation, data.task, first_samples(samples), /*seed=*/1).input);
}

// what a set takes when it is prepared, judged by its first series; nothing if it is not worth keeping
std::optional<double> prepared_bytes(const Model& model, const TrainData& data, const PreparedData& set) {
  const at::NoGradGuard no_grad;
  const int64_t some = std::min(kProbe, set.samples());
  const int64_t* o = set.offsets.data_ptr<int64_t>();
  const auto rows = static_cast<double>(std::max<int64_t>(o[some], 1));
  const PreparedBatch probe = prepared(model, data, set, some);
  // on the CPU a signal that is not sampled is better made from the data again
  if (model.device().is_cpu() && !probe.contents().separable()) return {};
  return static_cast<double>(probe.bytes()) / rows * static_cast<double>(o[set.samples()]);
}

int64_t memory_limit(const ModelConfig& config) {
  const SolverConfig* solver = solver_of(config);
  return solver ? solver->memory_limit : 0;
}

// what the model sees of a series is the same in every epoch, whatever its neighbours are
bool is_constant(const Model& model, const TaskConfig& task) {
  const ModelConfig& config = model.config();
  const auto* fast = config.architecture.get_if<FastWeights>();
  const auto* map = config.architecture.get_if<TensorMap>();
  const bool last =
      (fast && fast->query == QueryTime::LastOfBatch) || (map && map->query == QueryTime::LastOfBatch);
  const SolverConfig* solver = solver_of(config);
  return task.kind != TaskKind::Imputation && !last &&
         (!solver || !std::holds_alternative<FixedSteps>(solver->steps));
}

std::optional<PreparedBatch> whole_set(const Model& model, const TrainData& data) {
  if (!is_constant(model, data.task)) return {};
  const std::optional<double> bytes = prepared_bytes(model, data, data.train);
  if (!bytes || *bytes > kTrainingShare * free_memory(model.device())) return {};
  // as one batch it would not be sampled
  if (model.device().is_cpu() && *bytes > static_cast<double>(kSampledLimit)) return {};
  const at::NoGradGuard no_grad;
  try {
    PreparedBatch all = prepared(model, data, data.train, data.train.samples());
    if (all.contents().separable()) return all;
  } catch (const std::exception& error) {
    if (model.device().is_cpu() || !is_out_of_memory(error)) throw;
    release_device_memory();
  }
  return {};
}

LossFunction loss_of_task(const Model& model, const Tensor& class_weights) {
  const at::Device device = model.device();
  const Tensor weights = class_weights.defined() && !device.is_cpu()
                             ? on_device(class_weights.to(at::kFloat), device)
                             : class_weights;
  return [weights](const Tensor& outputs, const Batch& batch) { return task_loss(outputs, batch, weights); };
}

// which gradients are not finite
std::string not_finite(const NamedParameters& parameters, const std::vector<Tensor>& gradients) {
  std::string text;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (std::isfinite(gradients[i].sum().item<double>())) continue;
    text += message(text.empty() ? "the gradient of " : ", ", parameters[i].first, " (|parameter| ",
                    parameters[i].second.norm().item<double>(), ")");
  }
  return text;
}

}  // namespace

TrainingSteps::TrainingSteps(const Model& model, const TrainData& data, const TrainConfig& config,
                             std::shared_ptr<Optimiser> optimiser, LossFunction loss,
                             const Tensor& class_weights)
    : model_(model),
      data_(data),
      config_(config),
      optimiser_(std::move(optimiser)),
      recording_(loss ? Recording::Impossible : Recording::Possible),
      loss_(loss ? std::move(loss) : loss_of_task(model, class_weights)),
      all_(whole_set(model, data)) {
  make_runner();
}

void TrainingSteps::make_runner() {
  const StepWork work = {.network = model().network(),
                         .optimiser = optimiser_,
                         .loss = loss_,
                         .clip = config_.clip,
                         .penalty = config_.penalty,
                         .memory_limit = memory_limit(model().config())};
  const bool record = all_ && recording_ == Recording::Possible && !model_.device().is_cpu();
  runner_.reset();
  if (record) {
    runner_ = std::make_unique<ReplayedSteps>(work, *all_);
  } else {
    runner_ = std::make_unique<PlainSteps>(work);
  }
}

ReadyBatch TrainingSteps::make_ready(const BatchId& batch) const {
  const at::NoGradGuard no_grad;
  if (all_)
    return {batch.samples, batch.seed, all_->select(batch.samples),
            truth_of(data_.train, data_.preparation, data_.task, batch.samples)};
  Batch truth = make_batch(data_.train, data_.preparation, data_.task, batch.samples, batch.seed);
  return {batch.samples, batch.seed, model().prepare(truth.input, Reuse::Once), truth};
}

void TrainingSteps::prepare_next(const BatchId& next) {
  try {
    ready_ = make_ready(next);
  } catch (const std::exception& error) {
    // it will be prepared when its turn comes
    if (!is_out_of_memory(error)) throw;
  }
}

// what people read has the time of the data
Status TrainingSteps::in_data_time(Status status, const BatchId& batch) const {
  // a solver that fails within a step names the time of its own clock
  if (status.outcome != Outcome::NotFinite || status.step != 0 || status.sample < 0) return status;
  const int64_t sample = batch.samples[static_cast<size_t>(status.sample)];
  const TaskRows series = task_rows(data_.train, data_.task, {sample}, batch.seed, Targets::HeldOut);
  const Tensor time = at::tensor({status.time}, at::kDouble);
  status.time = data_times(time, series, data_.preparation.usual_gap).item<double>();
  return status;
}

StepOutcome TrainingSteps::try_step(const std::optional<BatchId>& next, double learning_rate) {
  const ComputedStep result = runner_->run(*ready_, learning_rate);
  const at::NoGradGuard no_grad;
  const BatchId batch = {ready_->samples, ready_->seed};
  ready_.reset();
  if (next && !model_.device().is_cpu()) prepare_next(*next);
  const Tensor summary = result.summary.cpu();
  StepOutcome outcome = {summary[0].item<double>(), summary[1].item<double>(), result.replayed, result.note};
  if (std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm)) return outcome;
  optimiser_->discard_step();
  outcome.not_finite = result.status ? not_finite(model_.parameters(), result.gradient.by_parameter)
                                     : in_data_time(result.status, batch).message();
  if (outcome.not_finite.empty()) outcome.not_finite = message("the loss is ", outcome.loss);
  return outcome;
}

void TrainingSteps::halve_memory(size_t samples) {
  runner_.reset();
  ready_.reset();
  release_device_memory();
  const int64_t free = device_memory(model_.device()).free;
  SolverConfig solver;
  if (model().has_solver()) {
    solver = *solver_of(model().config());
    solver.memory_limit = (solver.memory_limit > 0 ? std::min(solver.memory_limit, free) : free) / 2;
  }
  // a model without a solver cannot take shorter blocks
  if (solver.memory_limit < kLeastLimit)
    throw std::runtime_error(message("[train] the GPU has too little memory for a batch of ", samples,
                                     " series, ", free >> 20, " MB; take a smaller --batch-size"));
  Model limited = model_;
  limited.set_solver(solver);
  limited_ = limited;
  make_runner();
}

StepOutcome TrainingSteps::step(const BatchId& batch, const std::optional<BatchId>& next,
                                double learning_rate) {
  while (true) {
    try {
      if (!ready_ || ready_->samples != batch.samples || ready_->seed != batch.seed)
        ready_ = make_ready(batch);
      return try_step(next, learning_rate);
    } catch (const std::exception& error) {
      if (model_.device().is_cpu() || !is_out_of_memory(error)) throw;
    }
    // half of what it tried, in shorter blocks of time
    halve_memory(batch.samples.size());
  }
}

Predictions TrainingSteps::predict_training() const {
  return all_ ? predict(model(), *all_, data_.train, data_.preparation, data_.task)
              : predict(model(), data_.train, data_.preparation, data_.task);
}

Predictions TrainingSteps::predict_validation() {
  if (validation_kept_ == Kept::Unknown) {
    const std::optional<double> bytes = prepared_bytes(model(), data_, data_.validation);
    const bool keep = bytes && *bytes <= kValidationShare * free_memory(model_.device());
    if (keep) validation_ = prepare_set(model(), data_.validation, data_.preparation, data_.task, {});
    validation_kept_ = keep ? Kept::Yes : Kept::No;
  }
  return validation_kept_ == Kept::Yes ? predict(model(), validation_)
                                       : predict(model(), data_.validation, data_.preparation, data_.task);
}

}  // namespace fastweights

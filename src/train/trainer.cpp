#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/nearest.h"
#include "base/random.h"
#include "fastweights/trainer.h"
#include "tensor/runtime.h"
#include "train/checkpoint.h"
#include "train/fit.h"
#include "train/settings.h"
#include "train/tensor_adam.h"
#include "train/training_steps.h"

namespace fastweights {
namespace {

using Clock = std::chrono::steady_clock;

// values for what was left open
TrainConfig completed(TrainConfig config, const TrainData& data, const Model& model) {
  const int64_t samples = data.train.samples();
  FW_CHECK(samples > 0, "[train] there are no series to train on");
  FW_CHECK(config.epochs >= 0, "[train] epochs must not be negative, got ", config.epochs);
  FW_CHECK(config.batch_size >= 0, "[train] batch_size must not be negative, got ", config.batch_size);
  if (config.batch_size == 0) config.batch_size = std::clamp<int64_t>(samples / 16, 16, 256);
  config.batch_size = std::min(config.batch_size, samples);
  // a single step over everything
  if (is_fitted(model.config())) {
    config.epochs = 1;
    config.batch_size = samples;
  }
  const int64_t steps = (samples + config.batch_size - 1) / config.batch_size;
  if (config.epochs == 0) config.epochs = std::clamp<int64_t>(2000 / steps, 20, 150);
  if (config.metric.empty())
    config.metric = default_metric(data.task.kind, output_count(data.task.kind, data.preparation));
  return config;
}

void check_name(const char* key, const std::string& name, const std::vector<std::string>& known) {
  FW_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "[train] ", key, " cannot be '", name,
           "'", suggestion(name, known));
}

// now, and not when hours of training have passed
void check_names(const TrainConfig& config, const TrainData& data) {
  const bool classes = is_classification(data.task.kind);
  using Names = std::vector<std::string>;
  check_name("metric", config.metric,
             classes ? Names{"accuracy", "balanced_accuracy", "auroc", "average_precision", "f1", "log_loss",
                             "brier", "loss"}
             : data.task.kind == TaskKind::Regression ? Names{"mse", "mae", "r2", "loss"}
                                                      : Names{"mse", "mae", "r2", "smape", "mase", "loss"});
  check_name("threshold_for", config.threshold_for, {"accuracy", "balanced_accuracy", "f1", "none"});
  FW_CHECK(!classes || config.positive_weight == 0 || data.preparation.classes.size() == 2,
           "[train] positive_weight is for two classes, there are ", data.preparation.classes.size());
}

void check(const TrainConfig& config) {
  FW_CHECK(config.learning_rate > 0 && std::isfinite(config.learning_rate),
           "[train] learning_rate must be positive, got ", config.learning_rate);
  FW_CHECK(config.clip >= 0, "[train] clip must not be negative, got ", config.clip);
  FW_CHECK(config.warm_up >= 0 && config.warm_up < 1, "[train] warm_up must be in [0, 1), got ",
           config.warm_up);
  FW_CHECK(config.bucket_batches > 0, "[train] bucket_batches must be positive, got ", config.bucket_batches);
  FW_CHECK(config.patience >= 0 && config.plateau_patience > 0, "[train] patience must not be negative");
  FW_CHECK(config.interval >= 0 && config.interval < 1, "[train] interval must be in [0, 1), got ",
           config.interval);
  FW_CHECK(config.penalty >= 0 && config.head_rate > 0 && config.positive_weight >= 0,
           "[train] penalty, head_rate and positive_weight must not be negative");
}

AdamOptions adam_options(const TrainConfig& config, const Model& model) {
  AdamOptions options = {.learning_rate = config.learning_rate, .weight_decay = config.weight_decay};
  for (const auto& [name, tensor] : model.parameters())
    options.rate_factors.push_back(name.rfind("head.", 0) == 0 ? config.head_rate : 1);
  return options;
}

Tensor weights_of(const TrainConfig& config, const TrainData& data) {
  if (config.positive_weight > 0) return at::tensor({1.0, config.positive_weight}, at::kDouble);
  if (config.class_weights == ClassWeights::None) return {};
  const Tensor& labels =
      data.task.kind == TaskKind::StepClassification ? data.train.step_labels : data.train.labels;
  if (!labels.defined()) return {};
  return balanced_weights(labels, static_cast<int64_t>(data.preparation.classes.size()));
}

uint64_t mixed(int64_t seed, int64_t a, int64_t b) {
  Random random(static_cast<uint64_t>(seed));
  return Random(random.next() ^ (static_cast<uint64_t>(a) << 32) ^ static_cast<uint64_t>(b)).next();
}

template <typename T>
void shuffle(std::vector<T>& list, Random& random) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.next() % i]);
}

}  // namespace

std::vector<std::vector<int64_t>> random_batches(const Tensor& offsets, int64_t size, int64_t bucket_batches,
                                                 uint64_t seed) {
  FW_CHECK(size > 0 && bucket_batches > 0, "[batches] size and bucket_batches must be positive, got ", size,
           " and ", bucket_batches);
  const int64_t samples = offsets.size(0) - 1;
  // no more than there are
  const int64_t together = size * std::min(bucket_batches, samples / size + 1);
  const int64_t* o = offsets.data_ptr<int64_t>();
  Random random(seed);
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle(order, random);
  if (bucket_batches > 1) {
    for (int64_t first = 0; first < samples; first += together)
      std::stable_sort(order.begin() + first, order.begin() + std::min(samples, first + together),
                       [&](int64_t a, int64_t b) { return o[a + 1] - o[a] < o[b + 1] - o[b]; });
  }
  std::vector<std::vector<int64_t>> batches;
  for (int64_t first = 0; first < samples; first += size)
    batches.emplace_back(order.begin() + first, order.begin() + std::min(samples, first + size));
  if (bucket_batches > 1) shuffle(batches, random);
  return batches;
}

struct Trainer::Impl {
  Impl(Model given, TrainData all, const TrainConfig& train, TrainerOptions parts)
      : model(std::move(given)),
        data(std::move(all)),
        config(completed(train, data, model)),
        options(std::move(parts)),
        best_value(larger_is_better(config.metric) ? -INFINITY : INFINITY) {}

  int64_t steps_per_epoch() const;
  double rate() const;
  const std::vector<std::vector<int64_t>>& batches();
  TrainingSteps::BatchId batch_id(int64_t step);
  void take_step(TrainStep& record);
  TrainEpoch end_epoch();
  bool few_validation_series() const;
  bool is_preferred(double value, double log_loss) const;
  void choose(TrainEpoch& record, double loss);

  Model model;
  TrainData data;
  TrainConfig config;
  TrainerOptions options;
  std::unique_ptr<TrainingSteps> pipeline;
  int64_t epoch = 0, step_in_epoch = 0, steps = 0, replayed_in_epoch = 0;
  double loss_sum = 0, seconds = 0, last_rate = 0;
  double best_value;             // of all epochs
  double chosen_log_loss = NAN;  // of the best epoch
  int64_t best_epoch = 0, epochs_waited = 0;
  double plateau_factor = 1;
  std::vector<Tensor> best;  // parameters
  std::vector<std::vector<int64_t>> epoch_batches;
  int64_t batches_of = -1;  // the epoch they belong to
};

Trainer::Trainer(Model model, TrainData data, const TrainConfig& config, TrainerOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(data), config, std::move(options))) {
  Impl& t = *impl_;
  check(t.config);
  check_names(t.config, t.data);
  const Tf32Scope precision(t.options.tf32);
  std::shared_ptr<Optimiser> optimiser = is_fitted(t.model.config()) ? no_optimiser()
                                         : t.options.optimiser
                                             ? t.options.optimiser(t.model)
                                             : make_adam(*t.model.network(), adam_options(t.config, t.model));
  FW_CHECK(optimiser, "[train] TrainerOptions::optimiser returned no optimiser");
  t.pipeline = std::make_unique<TrainingSteps>(t.model, t.data, t.config, std::move(optimiser),
                                               t.options.loss, weights_of(t.config, t.data));
  t.last_rate = t.config.learning_rate;
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

const TrainConfig& Trainer::config() const { return impl_->config; }
const Model& Trainer::model() const { return impl_->model; }
int64_t Trainer::steps_per_epoch() const { return impl_->steps_per_epoch(); }
int64_t Trainer::steps_done() const { return impl_->steps; }
int64_t Trainer::epochs_done() const { return impl_->epoch; }
double Trainer::best_value() const { return impl_->best_value; }
int64_t Trainer::best_epoch() const { return impl_->best_epoch; }

int64_t Trainer::Impl::steps_per_epoch() const {
  return (data.train.samples() + config.batch_size - 1) / config.batch_size;
}

bool Trainer::finished() const {
  const Impl& t = *impl_;
  return t.epoch >= t.config.epochs || (t.config.patience > 0 && t.epochs_waited >= t.config.patience);
}

double Trainer::Impl::rate() const {
  if (is_fitted(model.config())) return 0;
  const auto total = static_cast<double>(config.epochs * steps_per_epoch());
  const double warm = config.warm_up * total, now = static_cast<double>(steps);
  if (now + 1 < warm) return config.learning_rate * (now + 1) / warm;
  if (config.schedule == RateSchedule::Constant) return config.learning_rate;
  if (config.schedule == RateSchedule::Plateau) return config.learning_rate * plateau_factor;
  const double share = std::max(now - warm, 0.0) / std::max(total - warm, 1.0);
  return config.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

const std::vector<std::vector<int64_t>>& Trainer::Impl::batches() {
  if (batches_of != epoch)
    epoch_batches = random_batches(data.train.offsets, config.batch_size, config.bucket_batches,
                                   mixed(config.seed, epoch, -1));
  batches_of = epoch;
  return epoch_batches;
}

TrainingSteps::BatchId Trainer::Impl::batch_id(int64_t step) {
  return {batches()[static_cast<size_t>(step)], mixed(config.seed, epoch, step)};
}

TrainStep Trainer::step() {
  FW_CHECK(!finished(), "[train] there is nothing left to do");
  Impl& t = *impl_;
  const Clock::time_point start = Clock::now();
  TrainStep record = {.epoch = t.epoch + 1, .step = t.step_in_epoch + 1, .steps = t.steps_per_epoch()};
  record.learning_rate = t.rate();
  const Tf32Scope precision(t.options.tf32);
  t.take_step(record);
  if (record.not_finite.empty()) {
    t.loss_sum += record.loss * static_cast<double>(record.samples);
    t.last_rate = record.learning_rate;
    ++t.steps;
    ++t.step_in_epoch;
    if (record.replayed) ++t.replayed_in_epoch;
    t.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    if (t.step_in_epoch == record.steps) record.epoch_record = t.end_epoch();
  }
  if (t.options.on_step) t.options.on_step(record);
  if (t.options.on_epoch && record.epoch_record) t.options.on_epoch(*record.epoch_record);
  return record;
}

void Trainer::Impl::take_step(TrainStep& record) {
  if (is_fitted(model.config())) {
    record.samples = data.train.samples();
    record.note = fit_model(model, data, config.seed);
    record.loss = loss_of(pipeline->predict_training());
    return;
  }
  const TrainingSteps::BatchId batch = batch_id(step_in_epoch);
  record.samples = static_cast<int64_t>(batch.samples.size());
  std::optional<TrainingSteps::BatchId> next;
  if (step_in_epoch + 1 < record.steps) next = batch_id(step_in_epoch + 1);
  const StepOutcome outcome = pipeline->step(batch, next, record.learning_rate);
  record.loss = outcome.loss;
  record.gradient_norm = outcome.gradient_norm;
  record.replayed = outcome.replayed;
  record.note = outcome.note;
  record.not_finite = outcome.not_finite;
  if (!record.not_finite.empty()) record.batch = batch.samples;
}

TrainEpoch Trainer::Impl::end_epoch() {
  const Clock::time_point start = Clock::now();
  TrainEpoch record = {.epoch = ++epoch,
                       .steps = step_in_epoch,
                       .replayed_steps = replayed_in_epoch,
                       .loss = loss_sum / static_cast<double>(data.train.samples()),
                       .learning_rate = last_rate};
  bool finite = true;
  double loss = record.loss;
  if (data.validation.samples() > 0) {
    const Predictions p = pipeline->predict_validation();
    record.validation = evaluate(p, data.task, data.preparation);
    finite = p.outputs.isfinite().all().item<bool>();
    // of classes the log loss; without any known class or target there is only the loss of training
    const double log_loss = metric(record.validation, "log_loss");
    loss = std::isfinite(metric(record.validation, "mse")) ? loss_of(p)
           : std::isnan(log_loss)                          ? loss
                                                           : log_loss;
  }
  // a model that predicts nothing cannot be the best, whatever its training loss is
  if (finite) {
    choose(record, loss);
  } else {
    ++epochs_waited;
  }
  record.seconds = seconds + std::chrono::duration<double>(Clock::now() - start).count();
  step_in_epoch = replayed_in_epoch = 0;
  loss_sum = seconds = 0;
  return record;
}

bool Trainer::Impl::few_validation_series() const {
  constexpr int64_t kFew = 100;
  const int64_t series = data.validation.samples();
  return series > 0 && series < kFew;
}

// over an earlier epoch with the best value so far
bool Trainer::Impl::is_preferred(double value, double log_loss) const {
  if (few_validation_series()) {
    // A mistake more or less says nothing, and the log loss of few series says little: later epochs are
    // better ones, and calibration corrects their confidence (docs/probabilities.md).
    const double slack =
        config.metric == "accuracy" ? 1.001 / static_cast<double>(data.validation.samples()) : 0;
    return value == best_value || std::abs(value - best_value) <= slack;
  }
  // also true where a log loss is unknown
  return value == best_value && !(log_loss > chosen_log_loss);
}

void Trainer::Impl::choose(TrainEpoch& record, double loss) {
  double value = metric(record.validation, config.metric);
  const double log_loss = metric(record.validation, "log_loss");
  // undefined, such as AUROC of one class
  if (std::isnan(value)) value = larger_is_better(config.metric) ? -loss : loss;
  const bool better = larger_is_better(config.metric) ? value > best_value : value < best_value;
  record.best = better || is_preferred(value, log_loss);
  if (better) best_value = value;
  if (record.best) {
    chosen_log_loss = log_loss;
    best_epoch = record.epoch;
    best.clear();
    for (const Tensor& parameter : model.parameter_tensors()) best.push_back(parameter.detach().clone());
  }
  epochs_waited = better ? 0 : epochs_waited + 1;
  if (epochs_waited > 0 && epochs_waited % config.plateau_patience == 0) plateau_factor *= 0.1;
}

void Trainer::restore_best() {
  if (impl_->best.empty()) return;
  const at::NoGradGuard no_grad;
  const std::vector<Tensor> parameters = impl_->model.parameter_tensors();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(impl_->best[i]);
}

Predictions Trainer::predict_training() { return impl_->pipeline->predict_training(); }

Predictions Trainer::predict_validation() { return impl_->pipeline->predict_validation(); }

NamedTensors Trainer::state() const {
  const Impl& t = *impl_;
  NamedTensors out;
  out.tensors = t.pipeline->optimiser().state();
  for (size_t i = 0; i < t.model.parameters().size(); ++i) {
    const auto& [name, tensor] = t.model.parameters()[i];
    out.tensors["parameter." + name] = tensor.detach().cpu().clone();
    if (!t.best.empty()) out.tensors["best." + name] = t.best[i].cpu().clone();
  }
  // bits of values that may be infinite
  out.tensors["numbers"] = at::tensor({t.loss_sum, t.seconds, t.best_value, t.plateau_factor}, at::kDouble);
  out.tensors["counts"] =
      at::tensor({t.epoch, t.step_in_epoch, t.steps, t.best_epoch, t.epochs_waited}, at::kLong);
  out.tensors["replayed_steps"] = at::full({1}, t.replayed_in_epoch, at::kLong);
  out.tensors["best_log_loss"] = at::full({1}, t.chosen_log_loss, at::kDouble);
  out.metadata = {{"format", "fastweights checkpoint 1"}, {"config", to_json(t.model.config())}};
  return out;
}

void Trainer::set_state(const NamedTensors& state) {
  Impl& t = *impl_;
  const NamedParameters& all = t.model.parameters();
  const Tensor counts = saved_list(state.tensors, "counts", 5, at::kLong),
               values = saved_list(state.tensors, "numbers", 4, at::kDouble);
  // absent from checkpoints of an earlier version
  const bool knows_replayed = state.tensors.contains("replayed_steps");
  const Tensor replayed =
      knows_replayed ? saved_list(state.tensors, "replayed_steps", 1, at::kLong) : at::zeros({1}, at::kLong);
  const bool knows_loss = state.tensors.contains("best_log_loss");
  const Tensor log_loss = knows_loss ? saved_list(state.tensors, "best_log_loss", 1, at::kDouble)
                                     : at::full({1}, NAN, at::kDouble);
  const int64_t* c = counts.data_ptr<int64_t>();
  const double* v = values.data_ptr<double>();
  if (c[1] < 0 || c[1] >= steps_per_epoch())
    throw std::runtime_error(message("the checkpoint is at step ", c[1], " of an epoch, and there are ",
                                     steps_per_epoch(), "; was the batch size another?"));
  std::vector<Tensor> parameters, best;
  for (const auto& [name, tensor] : all) {
    parameters.push_back(saved_like(state.tensors, "parameter." + name, tensor));
    if (c[3] > 0) best.push_back(saved_like(state.tensors, "best." + name, tensor));
  }
  // the last that can be refused
  t.pipeline->optimiser().set_state(state.tensors);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < all.size(); ++i) all[i].second.copy_(parameters[i]);
  t.best = best;
  t.replayed_in_epoch = replayed.item<int64_t>();
  t.chosen_log_loss = log_loss.item<double>();
  std::tie(t.epoch, t.step_in_epoch, t.steps, t.best_epoch, t.epochs_waited) =
      std::tie(c[0], c[1], c[2], c[3], c[4]);
  std::tie(t.loss_sum, t.seconds, t.best_value, t.plateau_factor) = std::tie(v[0], v[1], v[2], v[3]);
}

}  // namespace fastweights

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/json_fields.h"
#include "base/random.h"
#include "fastweights/error.h"
#include "fastweights/nearest.h"
#include "fastweights/train.h"
#include "tensor/autograd.h"
#include "train/device_training.h"

namespace fastweights {
namespace {

using Clock = std::chrono::steady_clock;

bool is_classification(TaskKind kind) {
  return kind == TaskKind::Classification || kind == TaskKind::StepClassification;
}

// numbers for what was left open
TrainConfig completed(TrainConfig config, const TrainData& data) {
  const int64_t samples = data.train.samples();
  FW_CHECK(samples > 0, "[train] there are no series to train on");
  FW_CHECK(config.epochs >= 0, "[train] epochs must not be negative, got ", config.epochs);
  FW_CHECK(config.batch_size >= 0, "[train] batch_size must not be negative, got ", config.batch_size);
  if (config.batch_size == 0) config.batch_size = std::clamp<int64_t>(samples / 16, 16, 256);
  config.batch_size = std::min(config.batch_size, samples);
  const int64_t steps = (samples + config.batch_size - 1) / config.batch_size;
  if (config.epochs == 0) config.epochs = std::clamp<int64_t>(2000 / steps, 20, 150);
  if (config.metric.empty())
    config.metric = !is_classification(data.task.kind)     ? "mse"
                    : data.preparation.classes.size() == 2 ? "auroc"
                                                           : "accuracy";
  return config;
}

void check_name(const char* key, const std::string& name, const std::vector<std::string>& known) {
  FW_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "[train] ", key, " cannot be '", name,
           "'; the nearest is '", nearest(name, known), "'");
}

// now, and not when hours of training have passed
void check_names(const TrainConfig& config, const TrainData& data) {
  const bool classes = is_classification(data.task.kind);
  using Names = std::vector<std::string>;
  check_name(
      "metric", config.metric,
      classes ? Names{"accuracy", "balanced_accuracy", "auroc", "average_precision", "f1", "log_loss", "loss"}
              : Names{"mse", "mae", "r2", "loss"});
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
  FW_CHECK(config.like_length > 0, "[train] like_length must be positive, got ", config.like_length);
  FW_CHECK(config.patience >= 0 && config.plateau_patience > 0, "[train] patience must not be negative");
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

double norm_of(const std::vector<Tensor>& tensors) {
  double squares = 0;
  for (const Tensor& tensor : tensors) squares += std::pow(tensor.norm().item<double>(), 2);
  return std::sqrt(squares);
}

// which parameter or gradient is not finite
std::string not_finite(const NamedParameters& parameters, const std::vector<Tensor>& gradients) {
  std::string text;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (std::isfinite(gradients[i].sum().item<double>())) continue;
    text += message(text.empty() ? "the gradient of " : ", ", parameters[i].first, " (|parameter| ",
                    parameters[i].second.norm().item<double>(), ")");
  }
  return text;
}

const Tensor& saved(const NamedTensors& state, const std::string& name) {
  const auto found = state.tensors.find(name);
  if (found == state.tensors.end()) throw std::runtime_error("the checkpoint has no '" + name + "'");
  return found->second;
}

Tensor saved_list(const NamedTensors& state, const std::string& name, size_t count, at::ScalarType type) {
  const Tensor& list = saved(state, name);
  if (list.dim() != 1 || list.size(0) != static_cast<int64_t>(count) || list.scalar_type() != type)
    throw std::runtime_error(message("the checkpoint's ", name, " must be ", count, " of ", type, ", got ",
                                     list.sizes(), " of ", list.scalar_type()));
  return list.contiguous();
}

Tensor saved_like(const NamedTensors& state, const std::string& name, const Tensor& like) {
  const Tensor& tensor = saved(state, name);
  if (tensor.sizes() != like.sizes())
    throw std::runtime_error(
        message("the checkpoint's ", name, " is ", tensor.sizes(), ", the model's ", like.sizes()));
  return tensor.clone();
}

}  // namespace

std::vector<std::vector<int64_t>> random_batches(const Tensor& offsets, int64_t size, int64_t like_length,
                                                 uint64_t seed) {
  FW_CHECK(size > 0 && like_length > 0, "[batches] size and like_length must be positive, got ", size,
           " and ", like_length);
  const int64_t samples = offsets.size(0) - 1;
  // no more than there are
  const int64_t together = size * std::min(like_length, samples / size + 1);
  const int64_t* o = offsets.data_ptr<int64_t>();
  Random random(seed);
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle(order, random);
  if (like_length > 1) {
    for (int64_t first = 0; first < samples; first += together)
      std::stable_sort(order.begin() + first, order.begin() + std::min(samples, first + together),
                       [&](int64_t a, int64_t b) { return o[a + 1] - o[a] < o[b + 1] - o[b]; });
  }
  std::vector<std::vector<int64_t>> batches;
  for (int64_t first = 0; first < samples; first += size)
    batches.emplace_back(order.begin() + first, order.begin() + std::min(samples, first + size));
  if (like_length > 1) shuffle(batches, random);
  return batches;
}

Trainer::Trainer(Model model, TrainData data, const TrainConfig& config)
    : model_(std::move(model)),
      data_(std::move(data)),
      config_(completed(config, data_)),
      adam_(model_.parameter_tensors(), adam_options(config_, model_)),
      class_weights_(weights_of(config_, data_)),
      best_value_(larger_is_better(config_.metric) ? -INFINITY : INFINITY) {
  check(config_);
  check_names(config_, data_);
  if (!model_.device().is_cpu())
    device_ = std::make_shared<DeviceTraining>(*model_.programmer(), data_, adam_options(config_, model_));
}

int64_t Trainer::steps_per_epoch() const {
  return (data_.train.samples() + config_.batch_size - 1) / config_.batch_size;
}

bool Trainer::finished() const {
  return epoch_ >= config_.epochs || (config_.patience > 0 && waited_ >= config_.patience);
}

double Trainer::rate() const {
  const auto total = static_cast<double>(config_.epochs * steps_per_epoch());
  const double warm = config_.warm_up * total, now = static_cast<double>(steps_);
  if (now + 1 < warm) return config_.learning_rate * (now + 1) / warm;
  if (config_.schedule == RateSchedule::Constant) return config_.learning_rate;
  if (config_.schedule == RateSchedule::Plateau) return config_.learning_rate * plateau_factor_;
  const double share = std::max(now - warm, 0.0) / std::max(total - warm, 1.0);
  return config_.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * share));
}

const std::vector<std::vector<int64_t>>& Trainer::batches() {
  if (batches_of_ != epoch_)
    batches_ = random_batches(data_.train.offsets, config_.batch_size, config_.like_length,
                              mixed(config_.seed, epoch_, -1));
  batches_of_ = epoch_;
  return batches_;
}

TrainStep Trainer::step() {
  FW_CHECK(!finished(), "[train] there is nothing left to do");
  const Clock::time_point start = Clock::now();
  const std::vector<int64_t>& samples = batches()[static_cast<size_t>(step_in_epoch_)];
  TrainStep record = {.epoch = epoch_ + 1,
                      .step = step_in_epoch_ + 1,
                      .steps = steps_per_epoch(),
                      .samples = static_cast<int64_t>(samples.size())};
  record.learning_rate = rate();
  const uint64_t seed = mixed(config_.seed, epoch_, step_in_epoch_);
  if (device_) {
    take_device_step(record, samples, seed);
  } else {
    take_step(record, samples, seed);
  }
  if (!record.trouble.empty()) {
    record.batch = samples;
    return record;
  }
  loss_sum_ += record.loss * static_cast<double>(record.samples);
  ++steps_;
  ++step_in_epoch_;
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  if (step_in_epoch_ == record.steps) record.epoch_record = end_epoch();
  return record;
}

void Trainer::take_device_step(TrainStep& record, const std::vector<int64_t>& samples, uint64_t seed) {
  std::optional<DeviceTraining::Place> next;
  if (step_in_epoch_ + 1 < record.steps)
    next = {batches_[static_cast<size_t>(step_in_epoch_) + 1],
            mixed(config_.seed, epoch_, step_in_epoch_ + 1)};
  const DeviceStep step = device_->step(*model_.programmer(), config_, class_weights_, {samples, seed}, next,
                                        record.learning_rate);
  record.loss = step.loss;
  record.gradient_norm = step.gradient_norm;
  if (std::isfinite(step.loss) && std::isfinite(step.gradient_norm)) return;
  record.trouble = not_finite(model_.parameters(), step.gradients);
  if (record.trouble.empty()) record.trouble = message("the loss is ", record.loss);
}

void Trainer::take_step(TrainStep& record, const std::vector<int64_t>& samples, uint64_t seed) {
  const Batch batch = make_batch(data_.train, data_.preparation, data_.task, samples, seed);
  const ModelOutput output = model_.forward(batch.input, {.mode = Mode::Train, .seed = seed});
  Tensor loss = task_loss(output.outputs, batch, class_weights_);
  record.loss = loss.item<double>();
  if (output.further_loss.defined()) loss = loss + output.further_loss;
  if (config_.penalty > 0) loss = loss + norm_penalty(model_.parameter_tensors(), config_.penalty);
  std::vector<Tensor> grads = gradients(loss, model_.parameter_tensors());
  record.gradient_norm = norm_of(grads);
  if (!std::isfinite(record.loss) || !std::isfinite(record.gradient_norm)) {
    record.trouble = output.status ? not_finite(model_.parameters(), grads) : output.status.message();
    if (record.trouble.empty()) record.trouble = message("the loss is ", record.loss);
    return;
  }
  if (config_.clip > 0 && record.gradient_norm > config_.clip) {
    for (Tensor& grad : grads) grad = grad * (config_.clip / record.gradient_norm);
  }
  adam_.set_learning_rate(record.learning_rate);
  adam_.step(grads);
}

double Trainer::last_rate() const {
  return device_ ? device_->adam().learning_rate() : adam_.options().learning_rate;
}

AdamState Trainer::adam_state() const { return device_ ? device_->adam().state() : adam_.state(); }

TrainEpoch Trainer::end_epoch() {
  const Clock::time_point start = Clock::now();
  TrainEpoch record = {.epoch = ++epoch_,
                       .loss = loss_sum_ / static_cast<double>(data_.train.samples()),
                       .learning_rate = last_rate()};
  bool finite = true;
  if (data_.validation.samples() > 0) {
    const Predictions p = device_ ? device_->validate(*model_.programmer())
                                  : predict(model_, data_.validation, data_.preparation, data_.task);
    record.validation = evaluate(p, data_.task, data_.preparation);
    finite = p.outputs.isfinite().all().item<bool>();
  }
  // a model that predicts nothing cannot be the best, whatever its training loss is
  if (finite) {
    choose(record);
  } else {
    ++waited_;
  }
  record.seconds = seconds_ + std::chrono::duration<double>(Clock::now() - start).count();
  step_in_epoch_ = 0;
  loss_sum_ = seconds_ = 0;
  return record;
}

double Trainer::slack() const {
  constexpr int64_t kFew = 100;
  const int64_t samples = data_.validation.samples();
  return config_.metric == "accuracy" && samples > 0 && samples < kFew ? 1.001 / static_cast<double>(samples)
                                                                       : 0;
}

void Trainer::choose(TrainEpoch& record) {
  double value = metric(record.validation, config_.metric);
  // nothing to choose by but training itself
  if (std::isnan(value)) value = larger_is_better(config_.metric) ? -record.loss : record.loss;
  const bool better = larger_is_better(config_.metric) ? value > best_value_ : value < best_value_;
  // among few series a mistake more or less says nothing: the epoch that learned longest is taken
  record.best = better || value == best_value_ || std::abs(value - best_value_) <= slack();
  if (better) best_value_ = value;
  if (record.best) {
    best_epoch_ = record.epoch;
    best_.clear();
    for (const Tensor& parameter : model_.parameter_tensors()) best_.push_back(parameter.detach().clone());
  }
  waited_ = better ? 0 : waited_ + 1;
  if (waited_ > 0 && waited_ % config_.plateau_patience == 0) plateau_factor_ *= 0.1;
}

void Trainer::take_best() {
  if (best_.empty()) return;
  const at::NoGradGuard no_grad;
  const std::vector<Tensor> parameters = model_.parameter_tensors();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(best_[i]);
}

NamedTensors Trainer::state() const {
  NamedTensors out;
  const AdamState adam = adam_state();
  for (size_t i = 0; i < model_.parameters().size(); ++i) {
    const auto& [name, tensor] = model_.parameters()[i];
    out.tensors["parameter." + name] = tensor.detach().cpu().clone();
    out.tensors["adam.first." + name] = adam.first[i];
    out.tensors["adam.second." + name] = adam.second[i];
    if (!best_.empty()) out.tensors["best." + name] = best_[i].cpu().clone();
  }
  out.tensors["adam.steps"] = at::tensor(adam.steps, at::kLong);
  // bits of numbers that may be infinite
  out.tensors["numbers"] = at::tensor({loss_sum_, seconds_, best_value_, plateau_factor_}, at::kDouble);
  out.tensors["counts"] = at::tensor({epoch_, step_in_epoch_, steps_, best_epoch_, waited_}, at::kLong);
  out.metadata = {{"format", "fastweights checkpoint 1"}, {"config", to_json(model_.config())}};
  return out;
}

void Trainer::set_state(const NamedTensors& state) {
  const NamedParameters& all = model_.parameters();
  const Tensor counts = saved_list(state, "counts", 5, at::kLong),
               numbers = saved_list(state, "numbers", 4, at::kDouble),
               adam_steps = saved_list(state, "adam.steps", all.size(), at::kLong);
  const int64_t* c = counts.data_ptr<int64_t>();
  const double* n = numbers.data_ptr<double>();
  if (c[1] < 0 || c[1] >= steps_per_epoch())
    throw std::runtime_error(message("the checkpoint is at step ", c[1], " of an epoch, and there are ",
                                     steps_per_epoch(), "; was the batch size another?"));
  AdamState adam;
  std::vector<Tensor> parameters, best;
  for (const auto& [name, tensor] : all) {
    parameters.push_back(saved_like(state, "parameter." + name, tensor));
    adam.first.push_back(saved_like(state, "adam.first." + name, tensor));
    adam.second.push_back(saved_like(state, "adam.second." + name, tensor));
    if (c[3] > 0) best.push_back(saved_like(state, "best." + name, tensor));
  }
  adam.steps.assign(adam_steps.data_ptr<int64_t>(), adam_steps.data_ptr<int64_t>() + adam_steps.size(0));
  // all of it is there: from here on nothing is refused
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < all.size(); ++i) all[i].second.copy_(parameters[i]);
  if (device_) {
    device_->adam().set_state(adam);
  } else {
    adam_.set_state(adam);
  }
  best_ = best;
  std::tie(epoch_, step_in_epoch_, steps_, best_epoch_, waited_) = std::tie(c[0], c[1], c[2], c[3], c[4]);
  std::tie(loss_sum_, seconds_, best_value_, plateau_factor_) = std::tie(n[0], n[1], n[2], n[3]);
}

}  // namespace fastweights

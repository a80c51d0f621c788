#include "train/train_cases.h"

#include "model/programmer_config.h"

#include <cmath>

#include "base/random.h"

namespace fastweights {

DataSet two_classes(int64_t samples, uint64_t seed) {
  Random random(seed);
  std::vector<Series> all;
  for (int64_t b = 0; b < samples; ++b) {
    const bool up = b % 2 == 0;
    Series s = {.id = "s" + std::to_string(b), .label = up ? "up" : "down"};
    const auto length = static_cast<int>(4 + random.next() % 5);
    double t = 0;
    for (int i = 0; i < length; ++i) {
      t += random.uniform(0.5, 1.5);
      s.times.push_back(t);
      s.values.push_back((up ? 1 : -1) * t + random.uniform(-0.5, 0.5));
      s.values.push_back(random.uniform() < 0.3 ? std::nan("") : random.uniform(-1, 1));
    }
    s.targets.push_back(up ? t : -t);
    all.push_back(std::move(s));
  }
  return collect_series({.name = "two classes", .channels = {"x", "noise"}, .targets = {"end"}}, all);
}

TrainData train_data(const DataSet& data, const TaskConfig& task, const PrepareConfig& prepare_config) {
  std::vector<int64_t> train, validation;
  for (int64_t b = 0; b < data.samples(); ++b) (4 * b < 3 * data.samples() ? train : validation).push_back(b);
  TrainData out;
  out.preparation = fit_preparation(data, train, prepare_config, task);
  out.train = prepare(data, train, out.preparation);
  out.validation = prepare(data, validation, out.preparation);
  out.task = task;
  out.task.kind = task_kind(data, task);
  return out;
}

ProgrammerConfig small_model(const TrainData& data) {
  ProgrammerConfig config;
  config.channels = data.preparation.model_channels();
  config.outputs = output_count(data.task.kind, data.preparation);
  config.hidden_size = 8;
  config.heads = 2;
  config.feed_forward_size = 8;
  config.dropout = 0.1;
  config.time_unit = data.preparation.median_gap;
  return config;
}

RunsOptions small_runs(const std::string& folder, int64_t folds, std::vector<int64_t> seeds) {
  const Settings tiny = {{"model.hidden_size", "8"}, {"training.epochs", "2"}, {"training.batch_size", "8"}};
  return {.folder = folder,
          .folds = folds,
          .seeds = std::move(seeds),
          .setup = {.model = "gru", .settings = tiny}};
}

bool equal_with_nan(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, 0, 0, true);
}

bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  if (a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const auto found = b.tensors.find(name);
    if (found == b.tensors.end() || !at::equal(tensor, found->second)) return false;
  }
  return true;
}

bool same_bits(const Model& a, const Model& b) {
  NamedTensors left, right;
  for (const auto& [name, tensor] : a.parameters()) left.tensors[name] = tensor.detach();
  for (const auto& [name, tensor] : b.parameters()) right.tensors[name] = tensor.detach();
  return same_bits(left, right);
}

}  // namespace fastweights

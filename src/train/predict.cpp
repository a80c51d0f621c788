#include <algorithm>
#include <numeric>

#include "fastweights/error.h"
#include "fastweights/train.h"
#include "tensor/autograd.h"

namespace fastweights {

Predictions predict(const FastWeightProgrammer& model, const PreparedData& data,
                    const Preparation& preparation, const TaskConfig& task, const PredictOptions& options) {
  const int64_t batch_size = options.batch_size;
  FW_CHECK(batch_size > 0, "[predict] batch_size must be positive, got ", batch_size);
  const RecordGradients off(false);
  std::vector<Tensor> outputs, times, samples, classes, targets;
  for (int64_t first = 0; first < data.samples(); first += batch_size) {
    std::vector<int64_t> here(static_cast<size_t>(std::min(batch_size, data.samples() - first)));
    std::iota(here.begin(), here.end(), first);
    // what imputation hides is the same whenever this set is looked at
    const Batch batch = make_batch(data, preparation, task, here, /*seed=*/1, options.wanted);
    const ModelOutput out = model.forward(batch.input);
    outputs.push_back(out.outputs);
    times.push_back(out.times);
    const Tensor counts = out.offsets.slice(0, 1) - out.offsets.slice(0, 0, -1);
    samples.push_back(at::repeat_interleave(at::tensor(here, at::kLong), counts));
    if (batch.classes.defined()) classes.push_back(batch.classes);
    if (batch.targets.defined()) targets.push_back(batch.targets);
  }
  const auto joined = [](const std::vector<Tensor>& parts) {
    return parts.empty() ? Tensor() : at::cat(parts, 0);
  };
  return {joined(outputs), joined(times), joined(samples), joined(classes), joined(targets)};
}

Tensor in_own_units(const Tensor& scaled, const TaskConfig& task, const Preparation& preparation) {
  const std::vector<Scale>& scales =
      task.kind == TaskKind::Regression ? preparation.target_scales : preparation.channel_scales;
  std::vector<double> means, deviations;
  for (const Scale& scale : scales) {
    means.push_back(scale.mean);
    deviations.push_back(scale.deviation);
  }
  return scaled.detach().to(at::kDouble) * at::tensor(deviations, at::kDouble) +
         at::tensor(means, at::kDouble);
}

Metrics evaluate(const Predictions& predictions, const TaskConfig& task, const Preparation& preparation,
                 double threshold) {
  if (!predictions.outputs.defined()) return {};
  if (predictions.targets.defined()) {
    // channels have all kinds of units, and are compared as the model sees them
    const bool channels = task.kind != TaskKind::Regression;
    return channels ? regression_metrics(predictions.outputs, predictions.targets)
                    : regression_metrics(in_own_units(predictions.outputs, task, preparation),
                                         in_own_units(predictions.targets, task, preparation));
  }
  if (!predictions.classes.defined()) return {};
  return classification_metrics(class_probabilities(predictions.outputs), predictions.classes, threshold);
}

Tensor balanced_weights(const Tensor& classes, int64_t count) {
  const Tensor known = classes.masked_select(classes.ge(0));
  const Tensor counts = at::bincount(known, {}, count).to(at::kDouble);
  const double present = counts.gt(0).sum().item<double>();
  return at::where(counts.gt(0), static_cast<double>(known.size(0)) / (present * counts.clamp_min(1)),
                   at::zeros_like(counts));
}

}  // namespace fastweights

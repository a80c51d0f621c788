#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "fastweights/trainer.h"
#include "tensor/autograd.h"
#include "train/metric_sums.h"
#include "train/prepared_set.h"

namespace fastweights {
namespace {

// samples of one batch after another
template <typename Use>
void for_batches(int64_t samples, int64_t batch_size, const Use& use) {
  FW_CHECK(batch_size > 0, "[predict] batch_size must be positive, got ", batch_size);
  for (int64_t first = 0; first < samples; first += batch_size) {
    std::vector<int64_t> batch(static_cast<size_t>(std::min(batch_size, samples - first)));
    std::iota(batch.begin(), batch.end(), first);
    use(batch);
  }
}

// what imputation hides is the same whenever a set is looked at
constexpr uint64_t kSeed = 1;

// predictions of batches, one after another
class Collected {
 public:
  void add(const ModelOutput& out, const Batch& batch, const std::vector<int64_t>& samples) {
    outputs_.push_back(out.outputs);
    if (batch.guess.defined()) guesses_.push_back(batch.guess);
    times_.push_back(batch.times);
    const Tensor counts = out.offsets.slice(0, 1) - out.offsets.slice(0, 0, -1);
    samples_.push_back(at::repeat_interleave(at::tensor(samples, at::kLong), counts));
    if (batch.classes.defined()) classes_.push_back(batch.classes);
    if (batch.targets.defined()) targets_.push_back(batch.targets);
  }
  Predictions all() const {
    const auto joined = [](const std::vector<Tensor>& parts) {
      return parts.empty() ? Tensor() : at::cat(parts, 0);
    };
    const Tensor guess = joined(guesses_);
    const auto whole = [&](const Tensor& x) { return x.defined() && guess.defined() ? x + guess : x; };
    // a GPU is waited for once
    const Tensor outputs = joined(outputs_);
    return {whole(outputs.defined() ? outputs.cpu() : outputs), joined(times_), joined(samples_),
            joined(classes_), whole(joined(targets_))};
  }

 private:
  std::vector<Tensor> outputs_, guesses_, times_, samples_, classes_, targets_;
};

}  // namespace

Predictions predict(const Model& model, const PreparedData& data, const Preparation& preparation,
                    const TaskConfig& task, const PredictOptions& options) {
  const at::NoGradGuard no_grad;
  Collected collected;
  for_batches(data.samples(), options.batch_size, [&](const std::vector<int64_t>& samples) {
    const Batch batch = make_batch(data, preparation, task, samples, kSeed, options.targets);
    collected.add(model.forward(batch.input), batch, samples);
  });
  return collected.all();
}

Predictions predict(const Model& model, const PreparedBatch& all, const PreparedData& data,
                    const Preparation& preparation, const TaskConfig& task) {
  const at::NoGradGuard no_grad;
  Collected collected;
  for_batches(data.samples(), PredictOptions().batch_size, [&](const std::vector<int64_t>& samples) {
    collected.add(model.forward(all.select(samples)), truth_of(data, preparation, task, samples), samples);
  });
  return collected.all();
}

std::vector<ReadyBatch> prepare_set(const Model& model, const PreparedData& data,
                                    const Preparation& preparation, const TaskConfig& task,
                                    const PredictOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<ReadyBatch> set;
  for_batches(data.samples(), options.batch_size, [&](const std::vector<int64_t>& samples) {
    Batch batch = make_batch(data, preparation, task, samples, kSeed, options.targets);
    const PreparedBatch input = model.prepare(batch.input);
    batch.input = {};
    set.push_back({samples, kSeed, input, std::move(batch)});
  });
  return set;
}

Predictions predict(const Model& model, const std::vector<ReadyBatch>& set) {
  const at::NoGradGuard no_grad;
  Collected collected;
  for (const ReadyBatch& batch : set) collected.add(model.forward(batch.input), batch.truth, batch.samples);
  return collected.all();
}

namespace {

struct ScaleTensors {
  Tensor means, deviations;  // [O] float64
};

ScaleTensors scales_of(const TaskConfig& task, const Preparation& preparation) {
  const std::vector<Scale>& scales =
      task.kind == TaskKind::Regression ? preparation.target_scales : preparation.channel_scales;
  std::vector<double> means, deviations;
  for (const Scale& scale : scales) {
    means.push_back(scale.mean);
    deviations.push_back(scale.deviation);
  }
  return {at::tensor(means, at::kDouble), at::tensor(deviations, at::kDouble)};
}

}  // namespace

Tensor in_own_units(const Tensor& scaled, const TaskConfig& task, const Preparation& preparation) {
  const ScaleTensors scales = scales_of(task, preparation);
  return scaled.detach().to(at::kDouble) * scales.deviations + scales.means;
}

Tensor widths_in_own_units(const Tensor& scaled, const TaskConfig& task, const Preparation& preparation) {
  return scaled.to(at::kDouble) * scales_of(task, preparation).deviations.abs();
}

RegressionSums regression_sums(const Predictions& predictions, const TaskConfig& task,
                               const Preparation& preparation, const Tensor& groups, int64_t count) {
  const Predictions& p = predictions;
  if (task.kind != TaskKind::Regression)
    return RegressionSums(p.outputs, p.targets, p.half_widths, groups, count,
                          {preparation.channel_scales, preparation.naive_errors});
  const auto own = [&](const Tensor& x) { return in_own_units(x, task, preparation); };
  const Tensor widths =
      p.half_widths.defined() ? widths_in_own_units(p.half_widths, task, preparation) : Tensor();
  return RegressionSums(own(p.outputs), own(p.targets), widths, groups, count);
}

Metrics evaluate(const Predictions& predictions, const TaskConfig& task, const Preparation& preparation,
                 double threshold) {
  const Predictions& p = predictions;
  if (!p.outputs.defined()) return {};
  if (p.targets.defined())
    return regression_sums(p, task, preparation, at::zeros_like(p.samples), 1).metrics({1});
  if (!p.classes.defined()) return {};
  return classification_metrics(class_probabilities(p.outputs), p.classes, threshold);
}

namespace {

// the metrics of some rows, or of all
Metrics metrics_of_rows(const Predictions& p, const Preparation& preparation, const Tensor& rows) {
  const auto some = [&](const Tensor& x) { return x.defined() ? x.index_select(0, rows) : x; };
  return RegressionSums(some(p.outputs), some(p.targets), some(p.half_widths), at::zeros_like(rows), 1,
                        {preparation.channel_scales, preparation.naive_errors})
      .metrics({1});
}

// in the units of the channel
Metrics metrics_of_channel(const Predictions& p, const Preparation& preparation, size_t channel) {
  const Scale& scale = preparation.channel_scales[channel];
  const auto c = static_cast<int64_t>(channel);
  const auto own = [&](const Tensor& x) {
    return x.detach().slice(1, c, c + 1).to(at::kDouble) * scale.deviation + scale.mean;
  };
  const Tensor widths =
      p.half_widths.defined() ? p.half_widths.slice(1, c, c + 1) * scale.deviation : Tensor();
  ChannelUnits units = {.scales = {Scale{}}};
  if (!preparation.naive_errors.empty())
    units.naive_errors = {preparation.naive_errors[channel] * scale.deviation};
  return RegressionSums(own(p.outputs), own(p.targets), widths, at::zeros_like(p.samples), 1, units)
      .metrics({1});
}

}  // namespace

std::vector<MetricsGroup> metrics_by_group(const Predictions& predictions, const TaskConfig& task,
                                           const Preparation& preparation) {
  const Predictions& p = predictions;
  const bool forecast = task.kind == TaskKind::Forecast;
  std::vector<MetricsGroup> groups;
  if (!(forecast || task.kind == TaskKind::Imputation) || !p.outputs.defined() || !p.targets.defined())
    return groups;
  for (size_t c = 0; c < preparation.channels.size(); ++c)
    groups.push_back({"channels", preparation.channels[c], metrics_of_channel(p, preparation, c)});
  const Tensor ahead = at::tensor(positions_of(p.samples), at::kLong) + 1;
  const int64_t last = forecast && ahead.size(0) > 0 ? ahead.max().item<int64_t>() : 0;
  // 1, 2, 3 to 4, 5 to 8, ...
  for (int64_t first = 1, to = 1; first <= last; first = to + 1, to *= 2) {
    const int64_t end = std::min(to, last);
    const std::string name = first == end ? message(first) : message(first, " to ", end);
    const Tensor rows = (ahead.ge(first) * ahead.le(end)).nonzero().squeeze(1);
    groups.push_back({"rows_ahead", name, metrics_of_rows(p, preparation, rows)});
  }
  return groups;
}

Tensor balanced_weights(const Tensor& classes, int64_t count) {
  const Tensor known = classes.masked_select(classes.ge(0));
  const Tensor counts = at::bincount(known, {}, count).to(at::kDouble);
  const double present = counts.gt(0).sum().item<double>();
  return at::where(counts.gt(0), static_cast<double>(known.size(0)) / (present * counts.clamp_min(1)),
                   at::zeros_like(counts));
}

}  // namespace fastweights

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "train/importance.h"
#include "train/report_data.h"
#include "train/report_values.h"

namespace fastweights {
namespace {

const std::vector<std::string>& output_names(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  if (trained.task.kind == TaskKind::Regression) return p.targets;
  return is_classification(trained.task.kind) ? p.classes : p.channels;
}

int64_t values_per_row(const TrainedModel& trained) {
  return std::max<int64_t>(static_cast<int64_t>(trained.preparation.channels.size()), 1);
}

// the observations in their own units, at most some thousands of them; the importance of those in between is
// added to the one before
void add_observations(report::WeightView& view, const TrainedModel& trained, const PreparedData& data,
                      int64_t sample, const ViewLimits& limits) {
  const int64_t rows_shown = std::clamp<int64_t>(limits.observations / values_per_row(trained), 2, 2000);
  const int64_t first = data.offsets[sample].item<int64_t>(), last = data.offsets[sample + 1].item<int64_t>();
  const Tensor values = in_own_units(data.values.slice(0, first, last), {.kind = TaskKind::Forecast},
                                     trained.preparation);  // [L, C]
  const int64_t every = (last - first) / rows_shown + 1;
  const std::optional<Importance> importance =
      last - first <= limits.rows_explained ? importance_of(trained, data, sample) : std::nullopt;
  if (importance)
    view.importance = {.of = importance->of, .output = importance->output, .baseline = importance->baseline};
  for (int64_t i = 0; i < last - first; i += every) {
    view.times.push_back(data.times[first + i].item<double>());
    view.values.push_back(rounded(values[i]));
    if (importance)
      view.importance->values.push_back(rounded(importance->values.slice(0, i, i + every).sum(0)));
  }
}

// fewer times, if fast weights are large
void thin_out(SeriesOutput& series, int64_t limit) {
  int64_t numbers = 1;
  for (const Tensor& w : series.output.w) numbers += w[0].numel();
  const int64_t most = std::max<int64_t>(2, limit / numbers), times = series.times.size(0);
  if (times <= most) return;
  const Tensor kept =
      at::linspace(0, static_cast<double>(times - 1), most, at::kDouble).round().to(at::kLong);
  series.times = series.times.index_select(0, kept);
  series.output.outputs = series.output.outputs.index_select(0, kept);
  for (Tensor& w : series.output.w) w = w.index_select(0, kept);
}

void add_frames(report::WeightView& view, const SeriesOutput& series) {
  view.frames.times = values_of(series.times);
  const std::vector<Tensor>& w = series.output.w;  // per layer [T, H, V, K]
  for (size_t l = 0; l < w.size(); ++l) {
    report::LayerFrames layer = {.heads = w[l].size(1), .rows = w[l].size(2), .columns = w[l].size(3)};
    for (int64_t t = 0; t < w[l].size(0); ++t) layer.w.push_back(rounded(w[l][t]));
    view.frames.layers.push_back(std::move(layer));
    for (int64_t h = 0; h < w[l].size(1); ++h)
      view.norms.names.push_back(message("layer ", l + 1, " head ", h + 1));
  }
  for (int64_t t = 0; t < series.times.size(0); ++t) {
    std::vector<double> row;
    for (const Tensor& layer : w) {
      const std::vector<double> norms = rounded(layer[t].flatten(1).norm(2, 1));
      row.insert(row.end(), norms.begin(), norms.end());
    }
    view.norms.values.push_back(std::move(row));
  }
}

void add_outputs(report::WeightView& view, const TrainedModel& trained, const SeriesOutput& series,
                 const PreparedData& data, int64_t sample) {
  const bool classes = is_classification(trained.task.kind);
  const Tensor values = classes ? class_probabilities(series.output.outputs)
                                : in_own_units(series.output.outputs, trained.task, trained.preparation);
  // of many outputs those with the largest values
  const int64_t count = std::min(values.size(1), kMostClasses);
  const Tensor largest = std::get<0>(std::get<1>(values.amax(0).topk(count)).sort());  // [count]
  const Tensor shown = values.index_select(1, largest);
  view.outputs = {.label = classes ? "probability" : "in units of the data",
                  .names = {},
                  .times = values_of(series.times)};
  for (int64_t k = 0; k < count; ++k)
    view.outputs.names.push_back(output_names(trained)[static_cast<size_t>(largest[k].item<int64_t>())]);
  for (int64_t t = 0; t < values.size(0); ++t) view.outputs.values.push_back(rounded(shown[t]));
  if (!classes || !data.labels.defined()) return;
  const std::vector<std::string>& names = trained.preparation.classes;
  const int64_t label = data.labels[sample].item<int64_t>(),
                guess = predicted_classes(values, trained.threshold)[-1].item<int64_t>();
  if (label >= 0) view.label = names[static_cast<size_t>(label)];
  view.predicted = names[static_cast<size_t>(guess)];
}

}  // namespace

std::vector<double> values_of(const Tensor& x) {
  const Tensor flat = x.to(at::kDouble).contiguous().view(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

std::vector<double> rounded(const Tensor& x) {
  std::vector<double> values = values_of(x);
  for (double& value : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    value = std::strtod(text, nullptr);
  }
  return values;
}

report::WeightView weight_view(const TrainedModel& trained, const PreparedData& data, int64_t sample,
                               const ViewLimits& limits) {
  const int64_t rows = data.offsets[sample + 1].item<int64_t>() - data.offsets[sample].item<int64_t>();
  SeriesOutput series = follow_series(trained, data, sample, std::clamp<int64_t>(rows, 2, limits.frames));
  thin_out(series, limits.weights);
  const std::vector<Tensor>& w = series.output.w;
  report::WeightView view = {.id = data.ids[static_cast<size_t>(sample)],
                             .of = w.empty() || w[0].size(2) > 1 ? "weights" : "state",
                             .channels = trained.preparation.channels,
                             .time_unit = trained.preparation.time_unit};
  add_observations(view, trained, data, sample, limits);
  add_frames(view, series);
  add_outputs(view, trained, series, data, sample);
  return view;
}

}  // namespace fastweights

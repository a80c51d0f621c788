#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "train/report_data.h"
#include "train/report_values.h"

namespace fastweights {
namespace {

const std::vector<std::string>& output_names(const TrainedModel& trained) {
  const Preparation& p = trained.preparation;
  if (trained.task.kind == TaskKind::Regression) return p.targets;
  return is_classification(trained.task.kind) ? p.classes : p.channels;
}

// the observations in their own units, at most some thousands of them
void add_observations(report::WeightView& view, const TrainedModel& trained, const PreparedData& data,
                      int64_t sample) {
  constexpr int64_t kRows = 2000;
  const int64_t first = data.offsets[sample].item<int64_t>(), last = data.offsets[sample + 1].item<int64_t>();
  const Tensor values = in_own_units(data.values.slice(0, first, last), {.kind = TaskKind::Forecast},
                                     trained.preparation);  // [L, C]
  const int64_t every = (last - first) / kRows + 1;
  for (int64_t i = 0; i < last - first; i += every) {
    view.times.push_back(data.times[first + i].item<double>());
    view.values.push_back(rounded(values[i]));
  }
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
  view.outputs = {.names = output_names(trained), .times = values_of(series.times)};
  for (int64_t t = 0; t < values.size(0); ++t) view.outputs.values.push_back(rounded(values[t]));
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

report::WeightView weight_view(const TrainedModel& trained, const PreparedData& data, int64_t sample) {
  constexpr int64_t kFrames = 60;
  const int64_t rows = data.offsets[sample + 1].item<int64_t>() - data.offsets[sample].item<int64_t>();
  const SeriesOutput series = follow_series(trained, data, sample, std::clamp<int64_t>(rows, 2, kFrames));
  const std::vector<Tensor>& w = series.output.w;
  report::WeightView view = {.id = data.ids[static_cast<size_t>(sample)],
                             .of = w.empty() || w[0].size(2) > 1 ? "weights" : "state",
                             .channels = trained.preparation.channels,
                             .time_unit = trained.preparation.time_unit};
  add_observations(view, trained, data, sample);
  add_frames(view, series);
  add_outputs(view, trained, series, data, sample);
  return view;
}

}  // namespace fastweights

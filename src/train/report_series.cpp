#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/report_data.h"
#include "train/report_values.h"
#include "train/task_rows.h"

/// The series that a report opens.

namespace fastweights {
namespace {

using report::ReportData;

// further ones than the first, and the observations that they may have together
constexpr size_t kMostSeries = 16;
constexpr int64_t kMostRows = 40'000;
constexpr ViewLimits kFurther = {
    .frames = 20, .observations = 6'000, .weights = 24'000, .rows_explained = 1'000};

int64_t rows_of_sample(const PreparedData& data, int64_t sample) {
  return data.offsets[sample + 1].item<int64_t>() - data.offsets[sample].item<int64_t>();
}

int64_t sample_of(const PreparedData& data, const std::string& id, const std::string& part) {
  const auto found = std::find(data.ids.begin(), data.ids.end(), id);
  if (found == data.ids.end())
    throw std::runtime_error(
        message("there is no series '", id, "' in the part that the report shows, ", part));
  return found - data.ids.begin();
}

// requested ones, the first, those of mistakes, and some in between
std::vector<int64_t> series_to_show(const ReportData& report, const Shown& shown,
                                    const std::vector<std::string>& requested) {
  const PreparedData& data = shown.data;
  std::vector<int64_t> out;
  const auto add = [&](int64_t sample) {
    if (std::find(out.begin(), out.end(), sample) == out.end()) out.push_back(sample);
  };
  for (const std::string& id : requested) add(sample_of(data, id, shown.result.name));
  add(0);
  if (report.mistakes) {
    for (const report::Mistake& mistake : *report.mistakes)
      add(sample_of(data, mistake.id, shown.result.name));
  }
  constexpr int64_t kBetween = 4;
  for (int64_t i = 1; i <= kBetween; ++i) add(i * (data.samples() - 1) / kBetween);
  const size_t most = std::max(requested.size() + 1, kMostSeries);
  if (out.size() > most) out.resize(most);
  return out;
}

// the time of the last output shows the whole series
report::Forecast forecast_of(const TrainedModel& trained, const Shown& shown, int64_t sample,
                             int64_t channel) {
  constexpr int64_t kMostPoints = 1'000;
  const Predictions& p = *shown.result.predictions;
  const Preparation& preparation = trained.preparation;
  const auto own = [&](const Tensor& scaled) {
    return in_own_units(scaled, trained.task, preparation).select(1, channel);
  };
  const Tensor rows = p.samples.eq(sample).nonzero().squeeze(1).slice(0, 0, kMostPoints);  // [m]
  const TaskRows input = task_rows(shown.data, trained.task, {sample}, /*seed=*/1, Targets::HeldOut);
  const Tensor seen = input.values.select(1, channel).isnan().logical_not().nonzero().squeeze(1);
  // the latest ones, next to a forecast
  const Tensor kept = seen.slice(0, std::max<int64_t>(0, seen.size(0) - kMostPoints));
  const Tensor predicted = own(p.outputs.index_select(0, rows));  // [m]
  report::Forecast out = {.id = shown.data.ids[static_cast<size_t>(sample)],
                          .channel = preparation.channels[static_cast<size_t>(channel)],
                          .time_unit = preparation.time_unit,
                          .history_times = values_of(input.times.index_select(0, kept)),
                          .history = rounded(own(input.values).index_select(0, kept)),
                          .times = values_of(p.times.index_select(0, rows)),
                          .truth = rounded(own(p.targets.index_select(0, rows))),
                          .predicted = rounded(predicted)};
  if (p.half_widths.defined()) {
    const Tensor half = widths_in_own_units(p.half_widths.index_select(0, rows), trained.task, preparation)
                            .select(1, channel);
    out.low = rounded(predicted - half);
    out.high = rounded(predicted + half);
  }
  return out;
}

}  // namespace

void add_series(ReportData& report, const TrainedModel& trained, const Shown& shown,
                const std::vector<std::string>& requested) {
  int64_t rows = 0;
  for (const int64_t sample : series_to_show(report, shown, requested)) {
    if (!report.fast_weights) {
      report.fast_weights = weight_view(trained, shown.data, sample, {});
      continue;
    }
    rows += rows_of_sample(shown.data, sample);
    const bool asked_for = report.series.size() + 1 < requested.size();
    if (rows > kMostRows && !asked_for) return;
    report.series.push_back(weight_view(trained, shown.data, sample, kFurther));
  }
}

void add_forecasts(ReportData& report, const TrainedModel& trained, const Shown& shown) {
  constexpr int64_t kMostForecasts = 4, kMostChannels = 3;
  const int64_t series = std::min(shown.data.samples(), kMostForecasts),
                channels = std::min<int64_t>(shown.data.values.size(1), kMostChannels);
  std::vector<report::Forecast> out;
  for (int64_t i = 0; i < series; ++i) {
    const int64_t sample = series == 1 ? 0 : i * (shown.data.samples() - 1) / (series - 1);
    for (int64_t channel = 0; channel < channels; ++channel) {
      report::Forecast forecast = forecast_of(trained, shown, sample, channel);
      if (!forecast.times.empty()) out.push_back(std::move(forecast));
    }
  }
  if (!out.empty()) report.forecasts = std::move(out);
}

}  // namespace fastweights

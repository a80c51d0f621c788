#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "fastweights/predictions.h"
#include "train/metric_sums.h"

namespace fastweights {
namespace {

// of rows: their series, numbered from 0
struct Series {
  Tensor index;  // [M] int64
  int64_t count = 0;
};

Series series_of(const Tensor& samples) {
  Series out = {.index = at::empty_like(samples)};
  std::map<int64_t, int64_t> known;
  for (int64_t i = 0; i < samples.size(0); ++i)
    out.index.data_ptr<int64_t>()[i] =
        known.emplace(samples.data_ptr<int64_t>()[i], known.size()).first->second;
  out.count = static_cast<int64_t>(known.size());
  return out;
}

// how often each series is drawn
std::vector<double> draw(int64_t series, Random& random) {
  std::vector<double> counts(static_cast<size_t>(series), 0);
  for (int64_t i = 0; i < series; ++i) counts[random.next() % static_cast<uint64_t>(series)] += 1;
  return counts;
}

// between neighbours
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Of a proportion of 0 or 1, after Clopper and Pearson: the proportions for which as many equal answers have
// at least half of 1 - level as their probability. A proportion of rows is bounded by that of series in which
// all rows are right, or wrong.
ConfidenceInterval exact_interval(double share, int64_t series, double level) {
  const double least = std::pow((1 - level) / 2, 1 / static_cast<double>(series));
  return share == 1 ? ConfidenceInterval{least, 1} : ConfidenceInterval{0, 1 - least};
}

// values of a metric in the resamples
ConfidenceInterval percentiles(std::vector<double> values, double value, double level) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  if (std::isnan(value) || values.empty()) return {NAN, NAN};
  std::sort(values.begin(), values.end());
  // resamples are biased for some metrics: a calibration error is larger in all of them
  return {std::min(value, quantile(values, (1 - level) / 2)),
          std::max(value, quantile(values, (1 + level) / 2))};
}

ConfidenceInterval metric_interval(const std::pair<std::string, double>& metric, std::vector<double> values,
                                   int64_t series, double level) {
  const auto& [name, value] = metric;
  const ConfidenceInterval found = percentiles(std::move(values), value, level);
  if (!(found.low == found.high)) return found;
  const bool proportion = name == "accuracy" || name == "coverage";
  if (proportion && (value == 0 || value == 1)) return exact_interval(value, series, level);
  return {NAN, NAN};
}

// `metrics` of the counts of the series
template <typename Function>
ConfidenceIntervals intervals_of(const Function& metrics, int64_t series, double work,
                                 const BootstrapOptions& options) {
  constexpr double kMostWork = 1e8, kFewest = 100;
  const auto most = static_cast<double>(options.resamples);
  const auto resamples =
      static_cast<int64_t>(std::clamp(kMostWork / std::max(work, 1.0), std::min(kFewest, most), most));
  const Metrics own = metrics(std::vector<double>(static_cast<size_t>(series), 1));
  std::vector<std::vector<double>> values(own.size());
  Random random(options.seed);
  for (int64_t i = 0; i < resamples; ++i) {
    const Metrics of = metrics(draw(series, random));
    for (size_t m = 0; m < own.size(); ++m) values[m].push_back(of[m].second);
  }
  ConfidenceIntervals out;
  for (size_t m = 0; m < own.size(); ++m)
    out.emplace_back(own[m].first, metric_interval(own[m], std::move(values[m]), series, options.level));
  return out;
}

ConfidenceIntervals of_numbers(const Predictions& p, const TaskConfig& task, const Preparation& preparation,
                               const BootstrapOptions& options) {
  const Series series = series_of(p.samples);
  const RegressionSums sums = regression_sums(p, task, preparation, series.index, series.count);
  const double work = static_cast<double>(series.count * p.targets.size(1));
  return intervals_of([&](const std::vector<double>& counts) { return sums.metrics(counts); }, series.count,
                      work, options);
}

ConfidenceIntervals of_classes(const Predictions& p, const BootstrapOptions& options) {
  const Tensor known = p.classes.ge(0).nonzero().squeeze(1);
  if (known.size(0) == 0) return {};
  const Tensor probabilities = class_probabilities(p.outputs.index_select(0, known));
  const ClassSums sums(probabilities, p.classes.index_select(0, known), options.threshold);
  const Series series = series_of(p.samples.index_select(0, known));
  const int64_t* of_row = series.index.data_ptr<int64_t>();
  std::vector<double> weights(sums.rows());
  const auto metrics = [&](const std::vector<double>& counts) {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = counts[static_cast<size_t>(of_row[i])];
    return sums.metrics(weights);
  };
  return intervals_of(metrics, series.count, static_cast<double>(probabilities.numel()), options);
}

}  // namespace

ConfidenceIntervals bootstrap(const Predictions& predictions, const TaskConfig& task,
                              const Preparation& preparation, const BootstrapOptions& options) {
  FW_CHECK(options.level > 0 && options.level < 1 && options.resamples > 0,
           "[bootstrap] the level must be between 0 and 1, and the number of resamples positive, got ",
           options.level, " and ", options.resamples);
  if (!predictions.outputs.defined() || predictions.outputs.size(0) == 0) return {};
  if (predictions.targets.defined()) return of_numbers(predictions, task, preparation, options);
  return predictions.classes.defined() ? of_classes(predictions, options) : ConfidenceIntervals{};
}

ConfidenceInterval interval_of(const ConfidenceIntervals& intervals, const std::string& name) {
  for (const auto& [known, interval] : intervals) {
    if (known == name) return interval;
  }
  return {NAN, NAN};
}

}  // namespace fastweights

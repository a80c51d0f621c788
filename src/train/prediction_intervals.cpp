#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "fastweights/calibration.h"
#include "train/metric_sums.h"

namespace fastweights {
namespace {

// steps of a forecast need this many series for widths of their own: a quantile of fewer is hardly known
constexpr int64_t kSeriesPerStep = 30;

struct Residual {
  double size = 0;
  int64_t sample = 0, step = 0;  // step: position of the row in its series, from 0
};

// of one output, where its target is known
std::vector<Residual> residuals_of(const Predictions& p, const std::vector<int64_t>& steps, int64_t output) {
  const Tensor sizes =
      (p.outputs.select(1, output).to(at::kDouble) - p.targets.select(1, output).to(at::kDouble))
          .abs()
          .contiguous();
  std::vector<Residual> found;
  for (int64_t row = 0; row < sizes.size(0); ++row) {
    const double size = sizes.data_ptr<double>()[row];
    if (std::isfinite(size))
      found.push_back({size, p.samples.data_ptr<int64_t>()[row], steps[static_cast<size_t>(row)]});
  }
  return found;
}

// The smallest size that is not exceeded with probability `level` in the next series. The weights of n series
// are 1 / (n + 1) each, divided among their rows; the rest belongs to the next series, whose residuals are
// unknown. With one row per series this is the ceil((n + 1) level)-th smallest residual. Too few series have
// no such size: the plain quantile.
double conformal_quantile(std::vector<Residual> residuals, double level) {
  std::map<int64_t, double> rows;
  for (const Residual& r : residuals) rows[r.sample] += 1;
  const auto series = static_cast<double>(rows.size());
  const bool enough = static_cast<int64_t>(rows.size()) >= fewest_for_level(level);
  std::sort(residuals.begin(), residuals.end(),
            [](const Residual& a, const Residual& b) { return a.size < b.size; });
  const double target = level * (enough ? series + 1 : series);
  double sum = 0;
  for (const Residual& r : residuals) {
    sum += 1 / rows[r.sample];
    // sums of 1 / rows are rounded
    if (sum >= target - 1e-9) return r.size;
  }
  return residuals.back().size;
}

// residuals of the first rows ahead, as far as enough series reach
std::vector<std::vector<double>> widths_ahead(const std::vector<std::vector<Residual>>& residuals,
                                              double level) {
  std::vector<std::vector<double>> widths;
  for (int64_t step = 0;; ++step) {
    std::vector<double> row;
    for (const std::vector<Residual>& all : residuals) {
      std::vector<Residual> here;
      for (const Residual& r : all) {
        if (r.step == step) here.push_back(r);
      }
      if (static_cast<int64_t>(here.size()) < std::max(kSeriesPerStep, fewest_for_level(level)))
        return widths;
      row.push_back(conformal_quantile(std::move(here), level));
    }
    widths.push_back(std::move(row));
  }
}

}  // namespace

int64_t fewest_for_level(double level) { return static_cast<int64_t>(std::ceil(level / (1 - level) - 1e-9)); }

PredictionIntervals fit_intervals(const Predictions& validation, const TaskConfig& task, double level) {
  FW_CHECK(level >= 0 && level < 1, "[intervals] the level must be in [0, 1), got ", level);
  if (level == 0 || !validation.targets.defined() || !validation.outputs.defined()) return {};
  const std::vector<int64_t> steps = positions_of(validation.samples);
  std::vector<std::vector<Residual>> residuals;
  PredictionIntervals out = {.level = level};
  for (int64_t o = 0; o < validation.targets.size(1); ++o) {
    residuals.push_back(residuals_of(validation, steps, o));
    // an output without residuals has no interval: any width is a guess
    out.pooled.push_back(residuals.back().empty() ? NAN : conformal_quantile(residuals.back(), level));
  }
  if (std::all_of(out.pooled.begin(), out.pooled.end(), [](double width) { return std::isnan(width); }))
    return {};
  if (task.kind == TaskKind::Forecast) out.ahead = widths_ahead(residuals, level);
  return out;
}

Tensor half_widths(const PredictionIntervals& intervals, const Tensor& samples) {
  const std::vector<int64_t> steps = positions_of(samples);
  const size_t outputs = intervals.pooled.size(), own = intervals.ahead.size();
  std::vector<double> beyond = intervals.pooled;
  // errors grow with the distance: rows further ahead than any are no more certain than the last
  if (own > 0) {
    for (size_t o = 0; o < outputs; ++o) beyond[o] = std::max(beyond[o], intervals.ahead.back()[o]);
  }
  Tensor out = at::empty({samples.size(0), static_cast<int64_t>(outputs)}, at::kDouble);
  double* to = out.data_ptr<double>();
  for (const int64_t step : steps) {
    const std::vector<double>& row =
        step < static_cast<int64_t>(own) ? intervals.ahead[static_cast<size_t>(step)] : beyond;
    to = std::copy(row.begin(), row.end(), to);
  }
  return out;
}

}  // namespace fastweights

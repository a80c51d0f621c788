#include "architectures/filled.h"

#include <algorithm>
#include <cmath>

namespace fastweights {
namespace {

// gaps that differ by less are equal
constexpr double kRegular = 0.01;

std::vector<double> grid(double first, double last, int64_t length) {
  std::vector<double> times(static_cast<size_t>(length), first);
  const double gap = length > 1 ? (last - first) / static_cast<double>(length - 1) : 0;
  for (int64_t i = 1; i < length; ++i)
    times[static_cast<size_t>(i)] = i + 1 < length ? first + gap * static_cast<double>(i) : last;
  return times;
}

bool has_gaps_of(const std::vector<double>& times, double gap) {
  for (size_t i = 1; i < times.size(); ++i) {
    if (std::abs(times[i] - times[i - 1] - gap) > kRegular * gap) return false;
  }
  return true;
}

FilledSeries at_times(const FilledSeries& series, std::vector<double> times) {
  FilledSeries out = {.times = std::move(times), .values = {}};
  for (int64_t c = 0; c < series.channels(); ++c) {
    const double* x = series.channel(c);
    const Observed all = {series.times, {x, x + series.length()}};
    for (const double t : out.times) out.values.push_back(all.line(t));
  }
  return out;
}

}  // namespace

double Observed::line(double position) const {
  if (at.empty()) return 0;
  const auto next = std::upper_bound(at.begin(), at.end(), position) - at.begin();
  if (next == 0) return values.front();
  const auto i = static_cast<size_t>(next);
  if (i == at.size()) return values.back();
  const double share = (position - at[i - 1]) / (at[i] - at[i - 1]);
  return values[i - 1] + share * (values[i] - values[i - 1]);
}

double Observed::held(double position) const {
  if (at.empty()) return 0;
  const auto next = std::upper_bound(at.begin(), at.end(), position) - at.begin();
  return values[static_cast<size_t>(std::max<std::ptrdiff_t>(next - 1, 0))];
}

Observed observed(const double* values, int64_t channels, int64_t c, const std::vector<double>& positions) {
  Observed out;
  for (size_t i = 0; i < positions.size(); ++i) {
    const double x = values[static_cast<int64_t>(i) * channels + c];
    if (std::isnan(x)) continue;
    out.at.push_back(positions[i]);
    out.values.push_back(x);
  }
  return out;
}

FilledSeries fill_series(const RaggedSeries& series, int64_t sample, int64_t known_channels) {
  const int64_t* offsets = series.offsets.data_ptr<int64_t>();
  const int64_t first = offsets[sample], last = offsets[sample + 1];
  const Tensor values = series.values.slice(0, first, last).to(at::kDouble).contiguous();
  const double *x = values.data_ptr<double>(), *t = series.times.data_ptr<double>();
  FilledSeries out = {.times = {t + first, t + last}, .values = {}};
  for (int64_t c = known_channels; c < series.channels(); ++c) {
    const Observed known = observed(x, series.channels(), c, out.times);
    for (const double time : out.times) out.values.push_back(known.line(time));
  }
  return out;
}

FilledSeries on_regular_grid(FilledSeries series, double gap) {
  if (has_gaps_of(series.times, gap)) return series;
  const double first = series.times.front(), last = series.times.back();
  const double points = std::min((last - first) / gap, 10.0 * static_cast<double>(series.length()));
  return at_times(series, grid(first, last, std::max<int64_t>(std::llround(points), 1) + 1));
}

FilledSeries resampled(FilledSeries series, int64_t length) {
  const double first = series.times.front(), last = series.times.back();
  const double gap = (last - first) / static_cast<double>(std::max<int64_t>(length - 1, 1));
  if (series.length() == length && has_gaps_of(series.times, gap)) return series;
  return at_times(series, grid(first, last, length));
}

}  // namespace fastweights

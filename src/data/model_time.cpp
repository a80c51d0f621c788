#include "data/model_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/quantile.h"
#include "data/text.h"

namespace fastweights::data {

double saturated(double gap, double usual_gap) {
  return usual_gap == 0 || gap <= usual_gap ? gap : usual_gap * (2 - usual_gap / gap);
}

double unsaturated(double gap, double usual_gap) {
  if (usual_gap == 0 || gap <= usual_gap) return gap;
  return gap < 2 * usual_gap ? usual_gap / (2 - gap / usual_gap) : std::numeric_limits<double>::infinity();
}

ModelClock::ModelClock(double first, double usual_gap)
    : usual_gap_(usual_gap), observed_(first), begin_(first), model_begin_(first) {}

// without long gaps so far, model time is time, bit by bit
double ModelClock::running(double t) const {
  return begin_ == model_begin_ ? t : model_begin_ + (t - begin_);
}

double ModelClock::at(double t) const {
  const double gap = since_observed(t);
  if (usual_gap_ == 0 || gap <= usual_gap_) return running(t);
  return running(observed_) + saturated(gap, usual_gap_);
}

double ModelClock::inverse(double model_time) const {
  const double gap = model_time - running(observed_);
  if (usual_gap_ == 0 || gap <= usual_gap_)
    return begin_ == model_begin_ ? model_time : begin_ + (model_time - model_begin_);
  return observed_ + unsaturated(gap, usual_gap_);
}

void ModelClock::observe(double t) {
  if (usual_gap_ > 0 && since_observed(t) > usual_gap_) {
    model_begin_ = at(t);
    begin_ = t;
  }
  observed_ = t;
}

double usual_gap_of(std::vector<double> gaps, double share) {
  return gaps.empty() ? 0 : quantile(gaps, std::max(share, 0.5));
}

namespace {

bool is_observed(const DataSet& data, size_t row) {
  const auto channels = static_cast<size_t>(data.channels());
  const double* x = data.values.data() + row * channels;
  return !std::all_of(x, x + channels, [](double value) { return std::isnan(value); });
}

double median_gap(const DataSet& data, const std::vector<int64_t>& samples) {
  std::vector<double> gaps;
  for (const int64_t sample : samples) {
    const auto b = static_cast<size_t>(sample);
    for (auto i = static_cast<size_t>(data.offsets[b]) + 1; i < static_cast<size_t>(data.offsets[b + 1]); ++i)
      gaps.push_back(data.times[i] - data.times[i - 1]);
  }
  return gaps.empty() ? 1 : quantile(gaps, 0.5);
}

// between neighbouring observed rows
std::vector<double> observed_gaps(const DataSet& data, const std::vector<int64_t>& samples) {
  std::vector<double> gaps;
  for (const int64_t sample : samples) {
    const auto b = static_cast<size_t>(sample);
    auto last = static_cast<size_t>(data.offsets[b]);
    for (size_t i = last + 1; i < static_cast<size_t>(data.offsets[b + 1]); ++i) {
      if (!is_observed(data, i)) continue;
      gaps.push_back(data.times[i] - data.times[last]);
      last = i;
    }
  }
  return gaps;
}

// model time from the first to the last row
double duration(const DataSet& data, size_t b, double usual_gap) {
  const auto first = static_cast<size_t>(data.offsets[b]),
             last = static_cast<size_t>(data.offsets[b + 1]) - 1;
  ModelClock clock(data.times[first], usual_gap);
  for (size_t i = first + 1; usual_gap > 0 && i < last; ++i) {
    if (is_observed(data, i)) clock.observe(data.times[i]);
  }
  return clock.at(data.times[last]) - data.times[first];
}

// the longest series must remain finite in float32
void check_times(const DataSet& data, const Preparation& p) {
  double longest = 0;
  size_t which = 0;
  for (size_t b = 0; b < data.ids.size(); ++b) {
    const double own = duration(data, b, p.usual_gap);
    if (b > 0 && own <= longest) continue;
    which = b;
    longest = own;
  }
  const double unit = p.median_gap * p.time_scale;
  if (std::isfinite(unit) && longest / unit <= std::numeric_limits<float>::max()) return;
  const double first = data.times[static_cast<size_t>(data.offsets[which])],
               last = data.times[static_cast<size_t>(data.offsets[which + 1]) - 1];
  throw std::runtime_error(message("series ", in_quotes(data.ids[which]), ": the times from ", exact(first),
                                   " to ", exact(last), " are too far apart for a median gap of ",
                                   exact(p.median_gap)));
}

}  // namespace

void fit_time(Preparation& p, const DataSet& data, const std::vector<int64_t>& samples, double least) {
  // a single missing row is ordinary: how long a series lasts must not depend on it
  constexpr double kLeastMedians = 2;
  p.median_gap = median_gap(data, samples);
  p.usual_gap = 0;
  if (p.config.usual_gaps > 0)
    p.usual_gap = std::max({usual_gap_of(observed_gaps(data, samples), p.config.usual_gaps),
                            kLeastMedians * p.median_gap, least});
  p.time_scale = 1;
  if (p.config.typical_time > 0) {
    double sum = 0;
    for (const int64_t sample : samples) sum += duration(data, static_cast<size_t>(sample), p.usual_gap);
    // the mean duration of a series, in median gaps
    const double typical = sum / p.median_gap / static_cast<double>(samples.size());
    p.time_scale = std::max(1.0, typical / p.config.typical_time);
  }
  check_times(data, p);
}

}  // namespace fastweights::data

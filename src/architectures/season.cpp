#include "architectures/season.h"

#include <algorithm>

#include "architectures/filled.h"

namespace fastweights {
namespace {

// sums of products of values `lag` rows apart, after subtraction of a line, for each lag: [most + 1]
std::vector<double> autocorrelation(const double* values, int64_t length, int64_t most) {
  const auto n = static_cast<double>(length);
  double mean = 0, slope = 0, squares = 0;
  for (int64_t i = 0; i < length; ++i) mean += values[i] / n;
  for (int64_t i = 0; i < length; ++i) {
    const double centre = static_cast<double>(i) - (n - 1) / 2;
    slope += centre * values[i];
    squares += centre * centre;
  }
  std::vector<double> rest(static_cast<size_t>(length)), sums(static_cast<size_t>(most) + 1);
  for (int64_t i = 0; i < length; ++i)
    rest[static_cast<size_t>(i)] =
        values[i] - mean - (squares > 0 ? slope / squares * (static_cast<double>(i) - (n - 1) / 2) : 0);
  for (int64_t lag = 0; lag <= most; ++lag) {
    for (int64_t i = lag; i < length; ++i)
      sums[static_cast<size_t>(lag)] += rest[static_cast<size_t>(i)] * rest[static_cast<size_t>(i - lag)];
  }
  return sums;
}

// the lag of the highest peak of the mean autocorrelation; 0: no peak
int64_t highest_peak(const std::vector<FilledSeries>& all) {
  // weaker peaks are noise
  constexpr double kLeast = 0.2;
  constexpr int64_t kMostRows = 4000;
  int64_t most = 0;
  for (const FilledSeries& series : all) most = std::max(most, std::min(series.length(), kMostRows) / 2);
  std::vector<double> sums(static_cast<size_t>(most) + 1);
  for (const FilledSeries& series : all) {
    const int64_t length = std::min(series.length(), kMostRows);
    for (int64_t c = 0; c < series.channels(); ++c) {
      const std::vector<double> own = autocorrelation(series.channel(c), length, length / 2);
      if (own[0] <= 1e-12) continue;
      for (size_t lag = 0; lag < own.size(); ++lag) sums[lag] += own[lag] / own[0];
    }
  }
  int64_t best = 0;
  double highest = kLeast * sums[0];
  for (size_t lag = 2; lag + 1 < sums.size(); ++lag) {
    if (sums[lag] <= highest || sums[lag] <= sums[lag - 1] || sums[lag] < sums[lag + 1]) continue;
    highest = sums[lag];
    best = static_cast<int64_t>(lag);
  }
  return best;
}

}  // namespace

int64_t estimated_season(const RaggedSeries& series, int64_t known_channels, double gap) {
  constexpr int64_t kMostSeries = 64;
  std::vector<FilledSeries> some;
  const int64_t every = (series.samples() + kMostSeries - 1) / kMostSeries;
  for (int64_t b = 0; b < series.samples(); b += every) {
    FilledSeries filled = fill_series(series, b, known_channels);
    some.push_back(gap == 0 ? std::move(filled) : on_regular_grid(std::move(filled), gap));
  }
  return highest_peak(some);
}

}  // namespace fastweights

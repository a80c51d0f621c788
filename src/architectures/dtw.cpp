#include "architectures/dtw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/series_rows.h"

namespace fastweights {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Envelope envelope_of(const WarpedSeries& series) {
  Envelope out;
  for (int64_t c = 0; c < series.channels; ++c) {
    const auto [low, high] = std::minmax_element(series.channel(c), series.channel(c) + series.length);
    out.low.push_back(*low);
    out.high.push_back(*high);
  }
  return out;
}

int64_t band_of(const WarpedSeries& a, const WarpedSeries& b, double window) {
  const int64_t longer = std::max(a.length, b.length);
  const auto band = static_cast<int64_t>(std::ceil(window * static_cast<double>(longer)));
  return std::max(band, std::abs(a.length - b.length));
}

std::vector<double> lower_bounds(const WarpedSeries& series, const Envelope& other) {
  const auto length = static_cast<size_t>(series.length);
  std::vector<double> bounds(length + 1, 0.0);
  for (int64_t c = 0; c < series.channels; ++c) {
    const float low = other.low[static_cast<size_t>(c)], high = other.high[static_cast<size_t>(c)];
    const float* x = series.channel(c);
    for (size_t i = 0; i < length; ++i) {
      const float outside = std::max({low - x[i], x[i] - high, 0.0F});
      bounds[i] += static_cast<double>(outside * outside);
    }
  }
  for (size_t i = length; i > 0; --i) bounds[i - 1] += bounds[i];
  return bounds;
}

double warped_distance(const WarpedSeries& a, const WarpedSeries& b, int64_t band,
                       const std::vector<double>& bounds, double best) {
  const auto columns = static_cast<size_t>(b.length);
  std::vector<float> costs(columns);
  // sums[j + 1] ends at row j of b; sums[0] lies before it
  std::vector<double> before(columns + 1, kInfinity), sums(columns + 1, kInfinity);
  before[0] = 0;
  for (int64_t i = 0; i < a.length; ++i) {
    const int64_t first = std::max<int64_t>(i - band, 0), last = std::min(i + band + 1, b.length);
    kernels::squared_differences(a.values.data() + i, a.length, b.values.data(), b.length, a.channels, first,
                                 last, costs.data());
    double least = kInfinity, left = kInfinity;
    sums[static_cast<size_t>(first)] = kInfinity;
    for (auto j = static_cast<size_t>(first); j < static_cast<size_t>(last); ++j) {
      left = static_cast<double>(costs[j]) + std::min({left, before[j], before[j + 1]});
      sums[j + 1] = left;
      least = std::min(least, left);
    }
    // the next row may look one place beyond this one
    if (static_cast<size_t>(last) < columns) sums[static_cast<size_t>(last) + 1] = kInfinity;
    if (least + bounds[static_cast<size_t>(i) + 1] > best) return kInfinity;
    std::swap(before, sums);
  }
  return before[columns];
}

}  // namespace fastweights

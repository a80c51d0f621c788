#pragma once

#include <cstdint>
#include <vector>

#include "fastweights/tensor.h"

/// Series without gaps, for baselines that need a value of every channel at every row.

namespace fastweights {

struct FilledSeries {
  std::vector<double> times;   // [L]
  std::vector<double> values;  // [C][L]: one channel after another

  int64_t length() const { return static_cast<int64_t>(times.size()); }
  int64_t channels() const { return static_cast<int64_t>(values.size() / times.size()); }
  const double* channel(int64_t c) const { return values.data() + c * length(); }
};

/// The observed values of one channel: positions and values, in order.
struct Observed {
  std::vector<double> at, values;

  /// On the line between the neighbouring observations, or the nearest one beyond the ends; 0 if there are
  /// none.
  double line(double position) const;
  /// The last one at or before the position, or the first one; 0 if there are none.
  double held(double position) const;
};

/// Channels c of `values` [L, C] where it is known, at the given positions [L].
Observed observed(const double* values, int64_t channels, int64_t c, const std::vector<double>& positions);

/// One sample without its leading known channels; missing values are interpolated linearly in time. A
/// channel without any observation is 0.
FilledSeries fill_series(const RaggedSeries& series, int64_t sample, int64_t known_channels);

/// The series as it is if its gaps are `gap` within a hundredth; otherwise interpolated to a regular grid
/// with about this gap, with at most ten times as many points as rows.
FilledSeries on_regular_grid(FilledSeries series, double gap);

/// Interpolated to `length` points that are evenly spaced in time; as it is if it has this length and is
/// regular.
FilledSeries resampled(FilledSeries series, int64_t length);

}  // namespace fastweights

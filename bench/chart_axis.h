#pragma once

#include <string>
#include <vector>

#include "chart.h"

/// The part of a chart's axis that is arithmetic: which numbers are on it, and where.

namespace fastweights::bench {

struct Tick {
  double value;
  std::string label;
};

/// Rising ticks of which the first and the last are the ends of the axis.
struct AxisTicks {
  AxisScale scale;
  std::vector<Tick> ticks;

  /// 0 at the first tick, 1 at the last one.
  double position(double value) const;
};

/// Whether a number has a place on such an axis.
bool drawable(double value, AxisScale scale);

/// Steps of 1, 2 or 5 times a power of ten; on a logarithmic axis 1, 2 and 5 of each power of ten, or powers
/// of ten alone where that is too many. Both numbers are drawable, low <= high.
AxisTicks make_ticks(double low, double high, AxisScale scale);

}  // namespace fastweights::bench

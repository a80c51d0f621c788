#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "fastweights/model_config.h"
#include "model/config_fields.h"
#include "model/shared_options.h"

/// Defaults from data that several architectures share.

namespace fastweights {

/// Sizes, clock and dropout that suit many data sets.
template <typename Options>
Options fitted(Options options, const DataShape& shape) {
  options.hidden_size = 64;
  options.time_unit = shape.median_gap;
  options.dropout = shape.dropout;
  if (shape.static_features > 0) options.static_hidden_size = 64;
  return options;
}

inline ArchitectureType also_on_gpus(ArchitectureType type) {
  type.devices = Devices::CpuAndCuda;
  return type;
}

/// Series of more rows than this are read in windows, about kWindows of them, unless every row has an output.
inline constexpr double kLongSeries = 1000, kWindows = 250;

inline bool needs_windows(const DataShape& shape) { return shape.length > kLongSeries && !shape.per_row; }

template <typename Options>
void read_in_windows(Options& options, const DataShape& shape) {
  const PointWindows windows = {.increments = std::max<int64_t>(2, std::llround(shape.length / kWindows)),
                                .tail = WindowTail::Keep};
  options.control.path = LogSignatures{.depth = shape.channels <= 8 ? 2 : 1, .windows = windows};
  options.time_unit = 1;
}

}  // namespace fastweights

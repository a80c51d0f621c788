#pragma once

#include "fastweights/run.h"

namespace fastweights {

/// What defaults depend on.
struct DataShape {
  int64_t channels = 1, static_features = 0, outputs = 1;
  int64_t known_channels = 0;  ///< in front: time and counts
  double median_gap = 1;
  double length = 0;     ///< of a typical series, in rows
  double dropout = 0;    ///< that is good for so much data
  bool per_row = false;  ///< whether something is wanted at every row
};

/// Sizes, clock and dropout that do on data of many kinds; long series are read in windows, where nothing is
/// wanted at every row.
ModelConfig default_model(const std::string& name, const DataShape& shape);

}  // namespace fastweights

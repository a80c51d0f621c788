#pragma once

#include "fastweights/run.h"

namespace fastweights {

/// Properties of data that determine defaults.
struct DataShape {
  int64_t channels = 1, static_features = 0, outputs = 1;
  int64_t known_channels = 0;  ///< in front: time and counts
  double median_gap = 1;
  double length = 0;  ///< of a typical series, in rows
  double dropout = 0;
  bool per_row = false;  ///< whether the task has an output at every row
};

/// Default sizes, clock and dropout. Long series are read in windows, unless there are outputs at every row.
ModelConfig default_model(const std::string& name, const DataShape& shape);

}  // namespace fastweights

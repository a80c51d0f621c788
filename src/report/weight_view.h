#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// One series of a report, and the fast weights or the state of the model on it.

namespace fastweights::report {

using Numbers = std::vector<double>;

struct LayerFrames {
  int64_t heads = 0, rows = 0, columns = 0;
  std::vector<Numbers> w = {};  // [T][heads rows columns]
};
struct Frames {
  Numbers times = {};  // [T]
  std::vector<LayerFrames> layers = {};
};
struct Norms {
  std::vector<std::string> names = {};
  std::vector<Numbers> values = {};  // [T][names]
};
struct Outputs {
  std::string label = {};  ///< of their axis
  std::vector<std::string> names = {};
  Numbers times = {};
  std::vector<Numbers> values = {};  // [times][names]
};
/// Contributions of observations to an output; they sum to its difference from that of the baseline.
struct ImportanceView {
  std::string of = {};               ///< the output
  std::vector<Numbers> values = {};  // [L][channels]
  double output = 0, baseline = 0;
};
/// One series, and the fast weights or the state of the model on it.
struct WeightView {
  std::string id = {}, of = {};  ///< of: weights or state
  std::vector<std::string> channels = {};
  std::string time_unit = {};
  Numbers times = {};                // [L]
  std::vector<Numbers> values = {};  // [L][channels]
  Frames frames = {};
  Norms norms = {};
  Outputs outputs = {};
  std::optional<ImportanceView> importance = {};
  std::optional<std::string> label = {}, predicted = {};
};

}  // namespace fastweights::report

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What the page of a training run shows; README.md describes it as JSON. Lists that belong together have
/// equal lengths; what is not finite becomes null. Parts that are empty or absent leave their sections out.

namespace fastweights::report {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Numbers = std::vector<double>;

struct Headline {
  std::string name = {};
  std::variant<double, int64_t> value = {};
  std::string format = {};
};

struct Line {
  std::string name = {};
  std::vector<int64_t> x = {};
  Numbers y = {};
};
struct Curve {
  std::string title = {}, x_label = {}, y_label = {};
  int64_t best_x = 0;
  std::vector<Line> lines = {};
};

struct MetricsRow {
  std::string name = {}, format = {};
  Numbers values = {};  // one per column
};
struct MetricsTable {
  std::vector<std::string> columns = {};
  std::vector<MetricsRow> rows = {};
};

struct Confusion {
  std::string part = {};
  std::optional<std::string> note = {};  ///< about classes that are left out
  std::vector<std::string> classes = {};
  std::vector<std::vector<int64_t>> counts = {};  // [true][predicted]
};

struct RocPoint {
  double value = 0, false_positive = 0, true_positive = 0;
};
struct RocCurve {
  std::string part = {};
  double auc = 0;
  Numbers false_positive = {}, true_positive = {};
  RocPoint threshold = {};
};

struct Calibration {
  std::string part = {};
  Numbers predicted = {}, observed = {}, count = {};  // one per bin
};

struct Scatter {
  std::string part = {}, target = {};
  Numbers truth = {}, predicted = {};
};

struct Mistake {
  std::string id = {}, truth = {}, predicted = {};
  double probability = 0, loss = 0;
};

/// Written as [name, shape, count].
struct Parameter {
  std::string name = {}, shape = {};
  int64_t count = 0;
};
struct ModelSection {
  Pairs summary = {};
  std::vector<Parameter> parameters = {};
  std::string config = {};
};

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
  std::vector<std::string> names = {};
  Numbers times = {};
  std::vector<Numbers> values = {};  // [times][names]
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
  std::optional<std::string> label = {}, predicted = {};
};

struct ReportData {
  int64_t version = 1;
  std::string title = {}, subtitle = {}, finished = {};
  Pairs facts = {};
  std::vector<Headline> headline = {};
  std::vector<Curve> curves = {};
  MetricsTable metrics = {};
  std::optional<Confusion> confusion = {};
  std::optional<RocCurve> roc = {};
  std::optional<Calibration> calibration = {};
  std::optional<std::vector<Mistake>> mistakes = {};
  std::optional<Scatter> scatter = {};
  ModelSection model = {};
  std::optional<WeightView> fast_weights = {};
  std::optional<std::vector<std::string>> references = {};  ///< what simple baselines reach
  std::optional<std::vector<std::string>> warnings = {};
  std::vector<std::string> commands = {};
};

}  // namespace fastweights::report

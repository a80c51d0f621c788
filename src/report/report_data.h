#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "report/weight_view.h"

/// What the page of a training run shows; README.md describes it as JSON. Lists that belong together have
/// equal lengths; what is not finite becomes null. Parts that are empty or absent leave their sections out.

namespace fastweights::report {

using Pairs = std::vector<std::pair<std::string, std::string>>;

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
  /// [low, high] per column; one without an interval is empty.
  std::optional<std::vector<Numbers>> intervals = {};
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

struct ClassRow {
  std::string name = {};
  double precision = 0, recall = 0, f1 = 0;
  int64_t samples = 0, predicted = 0;
};
struct ClassTable {
  std::string part = {};
  std::optional<std::string> note = {};  ///< about classes that are left out
  std::vector<ClassRow> rows = {};
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

/// Curves of one class against the rest.
struct ClassRoc {
  std::string name = {};
  double auc = 0;
  Numbers false_positive = {}, true_positive = {};
};
struct ClassRocs {
  std::string part = {};
  std::optional<std::string> note = {};  ///< about classes that are left out
  std::vector<ClassRoc> curves = {};
};

struct Calibration {
  std::string part = {}, of = {};                     ///< of: whose probability
  Numbers predicted = {}, observed = {}, count = {};  // one per bin
  Numbers low = {}, high = {};                        // interval of the observed share
};

struct Scatter {
  std::string part = {}, target = {};
  Numbers truth = {}, predicted = {};
};

/// One channel of a series: what the model has seen, what it predicts, and the truth.
struct Forecast {
  std::string id = {}, channel = {}, time_unit = {};
  Numbers history_times = {}, history = {};
  Numbers times = {}, truth = {}, predicted = {};
  std::optional<Numbers> low = {}, high = {};  // interval of the prediction
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
/// A setting that differs from its default.
struct ChangedSetting {
  std::string key = {}, value = {}, usual = {};
};
struct ModelSection {
  Pairs summary = {};
  std::vector<ChangedSetting> changed = {};
  std::vector<Parameter> parameters = {};
  std::string config = {};
};

/// One of several runs: a link to its own report, and its metrics.
struct RunLink {
  std::string name = {}, href = {};
  Numbers values = {};  // one per column
};
struct RunsTable {
  std::string part = {};
  std::vector<std::string> columns = {}, formats = {};
  std::vector<RunLink> runs = {};
};

/// How times are dates: milliseconds since 1970 of time 0, by the clocks of the source, and of a unit of
/// time.
struct Calendar {
  double zero = 0, unit = 1;
};

struct ReportData {
  int64_t version = 1;
  std::string title = {}, subtitle = {}, finished = {};
  Pairs facts = {}, data = {};
  std::optional<Calendar> calendar = {};  ///< absent: times are numbers
  std::vector<Headline> headline = {};
  std::optional<RunsTable> runs = {};  ///< of folds or seeds
  std::vector<Curve> curves = {};
  std::vector<std::string> advice = {};  ///< what the curves say
  MetricsTable metrics = {};
  std::optional<Confusion> confusion = {};
  std::optional<ClassTable> classes = {};
  std::optional<RocCurve> roc = {};
  std::optional<ClassRocs> class_roc = {};
  std::optional<Calibration> calibration = {};
  std::optional<std::vector<Mistake>> mistakes = {};
  std::optional<Scatter> scatter = {};
  std::optional<std::vector<Forecast>> forecasts = {};
  ModelSection model = {};
  std::optional<WeightView> fast_weights = {};
  std::vector<WeightView> series = {};                      ///< further ones
  std::optional<std::vector<std::string>> references = {};  ///< what simple baselines reach
  std::optional<std::vector<std::string>> warnings = {};
  std::vector<std::string> commands = {};
};

}  // namespace fastweights::report

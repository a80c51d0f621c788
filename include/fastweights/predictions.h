#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/model.h"
#include "fastweights/task.h"
#include "fastweights/tensor.h"

/// Predictions of a set, their metrics, and confidence intervals of the metrics.

namespace fastweights {

/// Outputs of a model on a whole set, with true classes and targets.
struct Predictions {
  Tensor outputs;  // [M, O] as the model returns them; calibrated by TrainedModel::predict()
  Tensor times;    // [M] float64, as the data have them
  Tensor samples;  // [M] int64
  Tensor classes;  // [M] int64, -1: unknown; or undefined
  Tensor targets;  // [M, O] scaled; or undefined
  /// TrainedModel::predict(): a sentence about gaps far longer than in training; otherwise empty.
  std::string note = {};
  /// TrainedModel::predict(): prediction intervals are outputs minus and plus these; scaled.
  Tensor half_widths = {};  // [M, O] float64; or undefined
};
struct PredictOptions {
  Targets targets = Targets::HeldOut;
  int64_t batch_size = 256;
  std::vector<int64_t> members = {};  ///< of an ensemble, to predict each series; empty: the mean of all
};
Predictions predict(const Model& model, const PreparedData& data, const Preparation& preparation,
                    const TaskConfig& task, const PredictOptions& options = {});

/// Targets and predictions in their own units: [M, O] float64.
Tensor in_own_units(const Tensor& scaled, const TaskConfig& task, const Preparation& preparation);

/// Half widths of intervals in the units of the targets: [M, O] float64.
Tensor widths_in_own_units(const Tensor& scaled, const TaskConfig& task, const Preparation& preparation);

/// Classification or regression metrics; of forecasts and imputation also `smape` and `mase`; with prediction
/// intervals also their `coverage`, the share of known values inside, and their mean `width`.
Metrics evaluate(const Predictions& predictions, const TaskConfig& task, const Preparation& preparation,
                 double threshold = 0.5);

/// Metrics of some of the values.
struct MetricsGroup {
  std::string kind, name;
  Metrics metrics = {};
};
/// Of forecasts and imputation. Kind `channels`: of each channel, in its own units. Kind `rows_ahead`:
/// forecasts of the first row, the second, 3 to 4, 5 to 8, ..., of all channels as the model sees them.
std::vector<MetricsGroup> metrics_by_group(const Predictions& predictions, const TaskConfig& task,
                                           const Preparation& preparation);

struct ConfidenceInterval {
  double low = 0, high = 0;  ///< NaN where the metric is undefined, or nothing bounds it
};
using ConfidenceIntervals = std::vector<std::pair<std::string, ConfidenceInterval>>;

struct BootstrapOptions {
  double level = 0.95;
  /// Upper limit; sets with many rows and classes use fewer, at least 100.
  int64_t resamples = 1000;
  uint64_t seed = 1;
  double threshold = 0.5;  ///< of two classes
};
/// Percentile intervals of all metrics of evaluate(), by drawing series (not rows) with replacement. Each
/// contains the metric itself. Resamples that are all equal do not bound a metric: accuracy and coverage of
/// 0 or 1 then have the exact interval for the number of series, and other metrics none.
ConfidenceIntervals bootstrap(const Predictions& predictions, const TaskConfig& task,
                              const Preparation& preparation, const BootstrapOptions& options = {});

/// The interval of the metric with this name; NaN if it is absent.
ConfidenceInterval interval_of(const ConfidenceIntervals& intervals, const std::string& name);

}  // namespace fastweights

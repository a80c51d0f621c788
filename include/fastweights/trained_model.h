#pragma once

#include <cstdint>
#include <string>

#include "fastweights/calibration.h"
#include "fastweights/data.h"
#include "fastweights/model.h"
#include "fastweights/predictions.h"
#include "fastweights/task.h"

/// A trained model with everything needed to use it.

namespace fastweights {

struct TrainedModel {
  Model model;
  Preparation preparation;
  TaskConfig task;
  double threshold = 0.5;  ///< for two classes
  Calibration calibration = {};
  PredictionIntervals intervals = {};
  /// An ensemble: it predicts their mean probabilities, or values. Each member has its own calibration and
  /// intervals; `calibration` is that of the mean. Model, preparation and task are those of the first.
  std::vector<TrainedModel> members = {};

  /// Calibrated, with prediction intervals. Channels, static features, targets and classes are matched by
  /// name.
  Predictions predict(const DataSet& data, const PredictOptions& options = {}) const;

  /// What the model itself returns, calibrated and with prediction intervals: the only place where both are
  /// applied.
  Predictions finished(Predictions raw) const;
};

void save_trained(const std::string& path, const TrainedModel& trained);
/// From a run's folder, or from its model.safetensors; from a folder of folds or seeds, an ensemble.
TrainedModel load_trained(const std::string& path);

struct Evaluation {
  Metrics metrics = {};       ///< empty if the data have no labels or targets
  Metrics at_threshold = {};  ///< for two classes, with the threshold of the model
  ConfidenceIntervals intervals = {}, intervals_at_threshold = {};
  std::vector<MetricsGroup> groups = {};
  int64_t rows = 0, known = 0;  ///< predictions, and those with a known label or target
  Predictions predictions = {};
};
Evaluation evaluate(const TrainedModel& trained, const DataSet& data, const PredictOptions& options = {});

/// A model on one series of prepared data: outputs and fast weights at times that are evenly spaced in model
/// time. Of an ensemble, the first model.
struct SeriesOutput {
  Tensor times = {};  // [T] float64, as the data have them
  ModelOutput output = {};
};
SeriesOutput follow_series(const TrainedModel& trained, const PreparedData& data, int64_t sample,
                           int64_t times);

/// Effective number of dimensions of a matrix: (sum of squared singular values)^2 / sum of their fourth
/// powers.
double effective_rank(const Tensor& w);

/// Copies parameters of a run or its model.safetensors whose names and sizes agree (a head for other classes
/// keeps its values), or all of those of a safetensors file with the names of the published code. Returns a
/// sentence about what was copied.
std::string initialise_from(const Model& model, const std::string& path);

}  // namespace fastweights

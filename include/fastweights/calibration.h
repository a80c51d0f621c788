#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastweights/predictions.h"
#include "fastweights/tensor.h"

/// Probabilities and prediction intervals fitted on the validation part, see docs/probabilities.md.

namespace fastweights {

/// Automatic: a temperature that depends on the confidence of the outputs, and a bias per class.
enum class CalibrationRule { Automatic, Temperature, None };

/// Outputs of a classifier become scale * (margin / typical)^power * outputs + bias before they become
/// probabilities. The margin of outputs is the mean over classes of -log probability, before calibration. The
/// scale is one over the temperature of outputs with the typical margin.
struct Calibration {
  double scale = 1;
  double power = 0;               ///< above -1, so that the order of outputs for two classes is kept
  double typical = 1;             ///< median margin of the predictions that it was fitted to
  std::vector<double> bias = {};  ///< one per output, or empty: 0

  bool is_identity() const { return scale == 1 && power == 0 && bias.empty(); }
};

/// Calibrated outputs [M, O] float64; the outputs themselves if the calibration is the identity.
Tensor calibrated(const Tensor& outputs, const Calibration& calibration);

/// Number of series of each class (or rows, for labels of rows): [K] int64.
Tensor class_counts(const Tensor& classes, int64_t count);

struct CalibrationOptions {
  CalibrationRule rule = CalibrationRule::Automatic;
  /// Number of epochs of which the model was the best on these predictions. Outputs whose log likelihood
  /// exceeds that of the class frequencies by less than the logarithm of this number are mixed with them.
  int64_t epochs = 1;
};
/// Fits the outputs [M, O] of validation predictions, which are not calibrated. `counts` [K] are those of the
/// training part. On these predictions the log loss is never larger than that of the outputs themselves or
/// of the class frequencies. The identity if no class is known.
Calibration fit_calibration(const Predictions& validation, const Tensor& counts,
                            const CalibrationOptions& options = {});

/// The threshold of two classes that maximises a metric on calibrated validation predictions; 0.5 for the
/// metric "none", for other numbers of classes, and where a class is absent.
double fit_threshold(const Predictions& validation, const std::string& metric);

/// Half widths of split-conformal prediction intervals, of scaled values.
struct PredictionIntervals {
  double level = 0;                             ///< probability that a value is inside; 0: no intervals
  std::vector<double> pooled = {};              // [O]: from all rows
  std::vector<std::vector<double>> ahead = {};  // [S][O]: of the first rows ahead of a forecast
};

/// Quantiles of absolute residuals of validation predictions. Each series has the same weight.
PredictionIntervals fit_intervals(const Predictions& validation, const TaskConfig& task, double level);

/// Number of series from which the intervals have the level in finite samples; with fewer they are plain
/// quantiles.
int64_t fewest_for_level(double level);

/// Half widths for rows of series, in the order of predictions: [M, O] float64.
Tensor half_widths(const PredictionIntervals& intervals, const Tensor& samples);

}  // namespace fastweights

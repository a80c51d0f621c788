#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fastweights/calibration.h"
#include "train/run_set.h"

/// Calibration of folds, fitted to predictions of series that a model was not trained on.

namespace fastweights {

struct FoldCalibration {
  std::vector<Calibration> members = {};  ///< each fitted to the series that the other folds test
  Calibration mean = {};                  ///< of the mean of the calibrated members
  double threshold = 0.5;                 ///< for two classes, of calibrated probabilities
};

/// `tested`: of each fold, what its model returns for the series that it tests, not calibrated; their samples
/// are those of the data. `threshold_for` is the metric that the threshold maximises.
FoldCalibration fit_fold_calibration(const std::vector<Predictions>& tested, CalibrationRule rule,
                                     const std::string& threshold_for);

/// Writes calibration.json, unless calibration is switched off or the task has no classes.
void calibrate_folds(const RunSet& set, const DataSet& data);

/// calibration.json of a folder; empty if it has none. An error if it is for other numbers of members or
/// outputs.
std::optional<FoldCalibration> read_fold_calibration(const std::string& folder, size_t members,
                                                     int64_t outputs);

}  // namespace fastweights

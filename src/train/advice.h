#pragma once

#include <string>
#include <vector>

#include "fastweights/run.h"

namespace fastweights {

/// Whether a metric is what training minimises.
inline bool is_loss(const std::string& metric) { return metric == "log_loss" || metric == "mse"; }

/// What the curves and parts of a run say about overfitting, with advice, in sentences; the first is the
/// verdict. Each quantity is compared only with itself over the epochs, since the losses of training and
/// validation may differ in units, weights and dropout.
///
/// - Overfitting: after the epoch of its minimum the validation loss rises by more than a tenth of that
///   minimum, and by more than 2 % of its first value, while the training loss falls. The end is the median
///   of the last tenth of the epochs, so that one bad epoch is no verdict.
/// - A gap: a metric between 0 and 1 that selects the model is better on the training part than on validation
///   by more than 0.1, and by more than two standard errors of a share of so many series.
/// - Not finished: the validation loss has its minimum in the last twentieth of the epochs, and still fell by
///   more than 2 % over the last tenth.
///
/// `metric` is the one that selects the model.
std::vector<std::string> training_advice(const RunResult& result, const std::string& metric);

/// Which of two classes is the positive one; otherwise empty.
std::string positive_note(const DataSet& data, TaskKind kind);

}  // namespace fastweights

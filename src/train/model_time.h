#pragma once

#include "fastweights/run.h"
#include "train/task_rows.h"

/// Model time of batches (docs/time_and_gaps.md).

namespace fastweights {

/// [R] float64, strictly increasing within each series. The times themselves, if usual_gap is 0.
Tensor model_times(const TaskRows& input, double usual_gap);

/// Times of the data from model times [T] within one series.
Tensor data_times(const Tensor& times, const TaskRows& series, double usual_gap);

/// A sentence about series with gaps far longer than the usual gap, as the task makes them, and about the
/// accuracy of the model's method there; empty if there are none.
std::string gap_note(const std::vector<const PreparedData*>& parts, const Preparation& preparation,
                     const TaskConfig& task, const ModelConfig& model, Targets targets = Targets::HeldOut);

/// Of all parts of a run.
std::string gap_note(const Run& run);

}  // namespace fastweights

#pragma once

#include "fastweights/train.h"
#include "model/programmer.h"

namespace fastweights {

/// A set in batches, each as the model takes it; for a model on a GPU they stay there, for as many
/// predictions as are wanted.
struct PreparedSet {
  std::vector<std::vector<int64_t>> samples;
  std::vector<Batch> batches;
  std::vector<PreparedInput> on_device;
};
PreparedSet prepare_set(const FastWeightProgrammer& model, const PreparedData& data,
                        const Preparation& preparation, const TaskConfig& task,
                        const PredictOptions& options);
Predictions predict(const FastWeightProgrammer& model, const PreparedSet& set);
/// One batch after another, none of which stays.
Predictions predict(const FastWeightProgrammer& model, const PreparedData& data,
                    const Preparation& preparation, const TaskConfig& task,
                    const PredictOptions& options = {});

}  // namespace fastweights

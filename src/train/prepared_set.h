#pragma once

#include "fastweights/trainer.h"

namespace fastweights {

/// A set in batches on the device of a model, for many predictions.
struct PreparedSet {
  std::vector<std::vector<int64_t>> samples;
  std::vector<PreparedBatch> inputs;
  std::vector<Batch> truths;
};
PreparedSet prepare_set(const Model& model, const PreparedData& data, const Preparation& preparation,
                        const TaskConfig& task, const PredictOptions& options);
Predictions predict(const Model& model, const PreparedSet& set);

/// Of a whole set that was prepared as one batch.
Predictions predict(const Model& model, const PreparedBatch& all, const PreparedData& data,
                    const Preparation& preparation, const TaskConfig& task);

}  // namespace fastweights

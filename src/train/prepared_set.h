#pragma once

#include "fastweights/trainer.h"
#include "train/step.h"

namespace fastweights {

/// A set in batches on the device of a model, for many predictions.
std::vector<ReadyBatch> prepare_set(const Model& model, const PreparedData& data,
                                    const Preparation& preparation, const TaskConfig& task,
                                    const PredictOptions& options);
Predictions predict(const Model& model, const std::vector<ReadyBatch>& set);

/// Of a whole set that was prepared as one batch.
Predictions predict(const Model& model, const PreparedBatch& all, const PreparedData& data,
                    const Preparation& preparation, const TaskConfig& task);

}  // namespace fastweights

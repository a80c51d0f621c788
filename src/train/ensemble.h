#pragma once

#include "fastweights/trained_model.h"

/// Several trained models as one: the mean of their probabilities, or of their values in their own units.

namespace fastweights {

/// The models of a folder of folds or seeds; empty: it is not such a folder.
std::vector<std::string> member_folders(const std::string& folder);

/// An error unless all models have the same task, names and units.
TrainedModel load_ensemble(const std::string& folder, const std::vector<std::string>& members);

Predictions predict_ensemble(const TrainedModel& ensemble, const DataSet& data,
                             const PredictOptions& options);

/// A single model, whatever its members.
Predictions predict_alone(const TrainedModel& trained, const DataSet& data, const PredictOptions& options);

}  // namespace fastweights

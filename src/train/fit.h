#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fastweights/trainer.h"

/// Architectures that are fitted to all training data at once (ArchitectureType::fit).

namespace fastweights {

bool is_fitted(const ModelConfig& config);

/// Whether an architecture with these tasks serves a task, and the names of all models that do.
bool serves(Tasks tasks, TaskKind kind);
std::vector<std::string> models_for(TaskKind kind);

/// The shape of training data, for the default options of models.
DataShape shape_of(const PreparedData& train, const Preparation& preparation, TaskKind kind);

/// Fitted architectures read the times of the data, and predict values themselves: their model time never
/// saturates, and they have no first guess.
void use_plain_data(const ModelConfig& config, Preparation& preparation);

/// Fits the parameters, and returns the note of the architecture.
std::string fit_model(const Model& model, const TrainData& data, int64_t seed);

/// The task's loss of predictions of a whole set.
double loss_of(const Predictions& predictions);

/// For the place of an optimiser that is never used.
std::shared_ptr<Optimiser> no_optimiser();

}  // namespace fastweights

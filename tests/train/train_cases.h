#pragma once

#include <string>

#include "fastweights/train.h"
#include "model/programmer_config.h"

/// Small sets and models that tests of training share.

namespace fastweights {

/// Series of 4 to 8 rows with gaps; "up" rises, "down" falls, one after the other.
DataSet two_classes(int64_t samples, uint64_t seed = 1);

/// The first three quarters to train on, the others for validation.
TrainData train_data(const DataSet& data, const TaskConfig& task = {}, const PrepareConfig& prepare = {});

/// A model for them, of a few hundred parameters.
ProgrammerConfig small_model(const TrainData& data);

/// Folds or seeds of a small GRU, two epochs each.
RunsOptions small_runs(const std::string& folder, int64_t folds, std::vector<int64_t> seeds);

/// The same shapes and values, missing ones included.
bool equal_with_nan(const Tensor& a, const Tensor& b);

/// Equal bit by bit, names included.
bool same_bits(const NamedTensors& a, const NamedTensors& b);
bool same_bits(const Model& a, const Model& b);

}  // namespace fastweights

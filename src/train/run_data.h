#pragma once

#include "fastweights/run.h"

namespace fastweights {

/// Split, scales and tensors of a run. The scales are those of `preparation`, if it is given, otherwise those
/// of the training part.
RunData divide(const RunConfig& config, const DataSet& data, const Preparation* preparation = nullptr);

/// data.json of a run, which identifies its data and its split.
void write_run_data(const std::string& folder, const RunData& data);
/// An error unless the folder's run began with these data and this split.
void check_run_data(const std::string& folder, const Run& run);

/// Of a folder of folds and the data that they were trained on: the test part of each fold; otherwise empty.
std::vector<PartSamples> fold_tests(const std::string& run, const DataSet& data);

/// The run of a folder, with the scales of its model.
Run open_run(const std::string& folder, const DataSet& data, const Preparation& preparation);

}  // namespace fastweights

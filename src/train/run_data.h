#pragma once

#include "fastweights/run.h"

namespace fastweights {

/// data.json of a run, by which data and split are known again.
void write_run_data(const std::string& folder, const DataSet& data, const SplitConfig& config);

}  // namespace fastweights

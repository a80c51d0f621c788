#pragma once

#include <string>
#include <vector>

#include "fastweights/run.h"

namespace fastweights {

/// Sentences for a report: what simple baselines reach on the part that it shows, computed in bounded time. A
/// nearest neighbour for whole series, the last value and lines for channels, the most frequent class for
/// steps.
std::vector<std::string> reference_lines(const Run& run, const PartResult& shown, const PreparedData& data);

}  // namespace fastweights

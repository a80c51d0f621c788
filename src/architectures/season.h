#pragma once

#include <cstdint>

#include "fastweights/tensor.h"

namespace fastweights {

/// The season of series: the lag of the highest peak, at least 0.2, of the mean autocorrelation of at most 64
/// of them after subtraction of a line. In rows, or on regular grids with the given gap, if that is not 0.
/// The leading known channels are left out. 0: there is no such peak.
int64_t estimated_season(const RaggedSeries& series, int64_t known_channels, double gap);

}  // namespace fastweights

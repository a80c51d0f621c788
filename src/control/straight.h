#pragma once

#include "fastweights/control.h"

namespace fastweights {

/// The linear path through a series, made where its values are; on the CPU they are checked.
Control straight_path(const RaggedSeries& series);

/// Checks that every channel of every sample is observed at least once. Values are on the CPU.
void check_observed(const RaggedSeries& series);

}  // namespace fastweights

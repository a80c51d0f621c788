#pragma once

#include <string>

#include "fastweights/tensor.h"

namespace fastweights {

/// "cpu", "cuda", or "auto", which is cuda where it can be used. To ask for one that cannot is an error that
/// says why.
at::Device find_device(const std::string& name);

/// Whether matrix products of a GPU may round their factors to TF32, 11 bits instead of 24, on its tensor
/// cores. Products of the slow net with many channels and of the readout are then faster and less accurate;
/// the recurrence is always float32. bench/results/h200.md has figures.
enum class Tf32 { No, Yes };

}  // namespace fastweights

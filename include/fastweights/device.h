#pragma once

#include <string>

#include "fastweights/tensor.h"

namespace fastweights {

/// Reference: compositions of LibTorch operations, the definition. Cpu, Cuda: fused kernels. Auto takes the
/// fastest one that supports the input; requesting one that does not is an error with the reason.
enum class Backend { Auto, Reference, Cpu, Cuda };

/// "cpu", "cuda", or "auto", which selects cuda if it is usable. Requesting an unusable device is an error
/// with the reason.
at::Device find_device(const std::string& name);

/// Whether matrix products on a GPU may round their factors to TF32, 11 bits instead of 24, and use tensor
/// cores. Products of the readout, and of the slow net with many channels, are then faster and less accurate;
/// the recurrence is always float32. bench/results/h200.md lists measurements.
enum class Tf32 { No, Yes };

}  // namespace fastweights

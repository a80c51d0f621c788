#pragma once

#include "fastweights/tensor.h"

namespace fastweights {

/// Uninitialised memory on the CPU. Results of hundreds of megabytes ask the system for huge pages: otherwise
/// the first touch of every 4 KiB costs more than what is computed into them.
Tensor empty_large(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace fastweights

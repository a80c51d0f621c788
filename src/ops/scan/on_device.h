#pragma once

#include "ops/scan/fused.h"

/// The recurrence by kernels of a GPU, with its gradient.

namespace fastweights {

/// Copies of the index tensors of an input on the device of its numbers.
ScanIndex index_on_device(const ScanInput& input);

FusedOutput device_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes);

/// Why the kernels of a GPU cannot take these tensors, or an empty text.
std::string device_scan_refusal(const Tensor& w0);

/// cuda
std::string device_backend();

}  // namespace fastweights

#pragma once

#include "ops/scan/plan.h"

/// The CUDA backend: kernels with their gradient.

namespace fastweights {

/// Copies of the index tensors of an input on the device of w0.
ScanIndex index_on_device(const ScanInput& input);

KernelOutput device_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes);

/// Why the kernels of a GPU cannot take these tensors, or an empty text.
std::string device_scan_refusal(const Tensor& w0);

/// cuda
std::string device_backend();

}  // namespace fastweights

#pragma once

#include "ops/scan/fused.h"

/// The recurrence by kernels of a GPU, with its gradient.

namespace fastweights {

/// Copies of the index tensors of an input on the device of its numbers.
ScanIndex index_on_device(const ScanInput& input);

FusedOutput device_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes);

/// Keys, values and rates from the slow net's numbers.
struct DeviceProgramme {
  Tensor numbers;       // [N, H, 2 D + 1]: key, value, rate; or [N, H, D + 1] without the values
  Tensor values;        // [N, H, D] then
  Tensor mask = {};     // [B, H, D], or undefined
  Tensor samples = {};  // [N / times] int64 on the device: whose a row is; with a mask
  int64_t times = 1;
};
/// k [N, H, D], v [N, H, D], beta [N, H]
struct ProgrammeTensors {
  Tensor k, v, beta;
};
ProgrammeTensors device_programme(const DeviceProgramme& input, const ProgrammeForms& forms);

/// Signals of many channels would not fit into the kernel.
bool device_normalises(int64_t channels);
/// x~ r with x~ = [x; 1], r = 1 / sqrt(x~^T G x~ + eps), then a one if asked for: x [N, C] float32, gram [C +
/// 1, C + 1] float64 to [N, C + 1 or C + 2]. Differentiable with respect to both.
enum class TrailingOne { No, Yes };
Tensor device_normalise(const Tensor& x, const Tensor& gram, double epsilon, TrailingOne one);

/// Why the kernels of a GPU cannot take these tensors, or an empty text.
std::string device_scan_refusal(const Tensor& w0);

/// cuda
std::string device_backend();

}  // namespace fastweights

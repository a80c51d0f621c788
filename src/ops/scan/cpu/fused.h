#pragma once

#include "ops/scan/plan.h"

/// The CPU backend: kernels with their gradient.

namespace fastweights {

KernelOutput fused_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes);
KernelOutput fused_scan(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options);

/// cpu-avx512, cpu-avx2 or cpu-baseline
std::string cpu_backend();

/// Memory of a call for samples with these numbers of steps: checkpoints held from forward to backward, and
/// scratch.
ScanMemory fused_memory(const std::vector<int64_t>& steps, int64_t heads, int64_t width, int64_t stages,
                        int64_t z_rows, int64_t features, at::ScalarType type);

}  // namespace fastweights

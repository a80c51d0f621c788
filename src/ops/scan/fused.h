#pragma once

#include "ops/scan/features.h"

/// The recurrence by kernels of the CPU, with its gradient.

namespace fastweights {

/// W at the outputs and, if there are queries or slopes are wanted, reads of the stages and their slopes.
struct FusedOutput {
  Tensor w;  // [M, H, D, D]
  Tensor y;  // [R, S, Q, H, D]
  Tensor g;  // [R, S, H, D]: dW/dt is g k^T (Delta), v g^T (Hebb, Oja)
};

enum class StageSlopes { No, Yes };

FusedOutput fused_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes);
FusedOutput fused_scan(const ScanFeatures& input, const ProgrammeForms& forms, const ScanOptions& options);

/// cpu-avx512, cpu-avx2 or cpu-baseline
std::string cpu_backend();

/// What the kernels work with, for samples of so many steps: checkpoints that are held from forward to
/// backward, and scratch.
ScanMemory fused_memory(const std::vector<int64_t>& steps, int64_t heads, int64_t width, int64_t stages,
                        int64_t z_rows, int64_t features, at::ScalarType type);

}  // namespace fastweights

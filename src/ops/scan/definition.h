#pragma once

#include "ops/scan/features.h"

/// What `scan` means, in LibTorch operations: one sample, one step, one stage after another.

namespace fastweights {

ScanOutput scan_definition(const ScanInput& input, const ScanOptions& options);

/// One step of N samples side by side.
struct DefinitionStep {
  Tensor next;                // [N, H, V, K]: W after the step
  std::vector<Tensor> w, dw;  // [N, H, V, K]: W and dW/dt at each stage
};

/// `rows` has k, v, beta and dt of one row per sample, and w [N, H, V, K] is their W.
DefinitionStep definition_step(const ScanInput& rows, const ScanOptions& options, const Tensor& w);

/// W q, or W^T q, at each stage: matrices [N, H, V, K] of the stages and q [N, S, Q, H, K] to [N, S, Q, H,
/// V].
Tensor stage_reads(const std::vector<Tensor>& matrices, const Tensor& q, Read read);

/// Keys, values and rates of every step, as `scan_features` projects them.
ScanInput project_features(const ScanFeatures& input, const ProgramForms& forms);

}  // namespace fastweights

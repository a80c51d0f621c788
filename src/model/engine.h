#pragma once

#include <memory>

#include "model/prepared.h"

/// The fused engine: all steps of all samples through the op scan, in blocks of time.

namespace fastweights {

/// Why the kernels cannot compute this, or an empty text.
std::string engine_refusal(const ModelParts& parts, const ForwardOptions& options);

/// Whether the model's configuration lets the engine compute at least some passes.
bool has_engine(const ModelParts& parts);

/// The backend of the engine where the model is: Cpu or Cuda.
Backend engine_backend(const ModelParts& parts);

struct EngineRun {
  Tensor w;     // [M, L, H, V, K] at the outputs
  Tensor last;  // [B, L, H, V, K] at each sample's last output
  int64_t steps = 0, evaluations = 0;
  Status status;
  MemoryPlan plan;
  std::string backend;
};

/// The steps of a batch as the blocks take them. The model may have another memory limit than the one that
/// prepared the batch.
BlockTask block_task(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch,
                     const Masks& masks, Backend backend);

/// `backend` is Cpu, Cuda, or Reference: then the op's definition does the recurrence.
EngineRun run_engine(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch,
                     const Masks& masks, const Tensor& w0, Backend backend);

/// The plan of such a run with gradients.
MemoryPlan plan_engine(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch);

}  // namespace fastweights

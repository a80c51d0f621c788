#pragma once

#include <memory>

#include "model/parts.h"
#include "model/schedule.h"
#include "model/signal.h"
#include "model/step_rows.h"

/// The fused engine behind a model: all steps of all samples through the op scan, in blocks of time.

namespace fastweights {

/// Why the engine cannot do this, or an empty text.
std::string engine_refusal(const ModelParts& parts, const ForwardOptions& options);

/// How a solve is cut, and what it will hold.
struct EnginePlan {
  int64_t blocks = 1;       ///< of time; more than one are computed again in the backward pass
  int64_t block_steps = 0;  ///< steps in each
  int64_t bytes = 0;        ///< estimated peak beyond the data
};

struct EngineRun {
  Tensor w;     // [M, L, H, V, K] at the outputs
  Tensor last;  // [B, L, H, V, K] at each sample's last output
  int64_t steps = 0, evaluations = 0;
  Status status;
  EnginePlan plan;
  std::string backend;
};

/// With Backend::Reference the recurrence and the slow net are compositions of LibTorch operations, in the
/// same blocks: what the fused ones are measured against.
EngineRun run_engine(std::shared_ptr<const ModelParts> parts, const Signal& signal, const Masks& masks,
                     const Tensor& w0, const Schedule& schedule, Backend backend = Backend::Auto);

}  // namespace fastweights

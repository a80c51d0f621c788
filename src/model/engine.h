#pragma once

#include <memory>

#include "model/block.h"
#include "model/parts.h"
#include "model/schedule.h"
#include "model/signal.h"
#include "model/step_rows.h"

/// The fused engine behind a model: all steps of all samples through the op scan, in blocks of time.

namespace fastweights {

/// Why the kernels cannot do this, or an empty text.
std::string engine_refusal(const ModelParts& parts, const ForwardOptions& options);

struct EngineRun {
  Tensor w;     // [M, L, H, V, K] at the outputs
  Tensor last;  // [B, L, H, V, K] at each sample's last output
  int64_t steps = 0, evaluations = 0;
  Status status;
  MemoryPlan plan;
  std::string backend;
};

/// Steps of a batch before the first one is done, and where they look.
struct EngineSteps {
  int64_t steps = 0;          // of the batch
  std::vector<Place> places;  // of row j of the schedule's ts for sample b at [j * B + b]
  StepRows rows;
  SharedRows shared;
  std::vector<std::vector<int64_t>> wanted;  // per sample: steps after which W is wanted, rising
  ScanMethod method;
};
EngineSteps engine_steps(const ModelParts& parts, const Signal& signal, int64_t samples,
                         const Schedule& schedule);

/// `backend` is Cpu, or Reference: then the op's definition does the recurrence.
EngineRun run_engine(const std::shared_ptr<const ModelParts>& parts, const Signal& signal, const Masks& masks,
                     const Tensor& w0, const Schedule& schedule, Backend backend);

/// The plan of such a run with gradients.
MemoryPlan plan_engine(const std::shared_ptr<const ModelParts>& parts, const Signal& signal, const Tensor& w0,
                       const Schedule& schedule);

}  // namespace fastweights

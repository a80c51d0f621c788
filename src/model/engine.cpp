#include "model/engine.h"

#include <algorithm>

#include "base/error.h"
#include "model/memory.h"
#include "ops/scan/cpu/fused.h"
#include "ops/scan/cuda/device_scan.h"
#include "ops/scan/plan.h"

namespace fastweights {
namespace {

// what of the model itself the kernels cannot compute
std::string model_refusal(const ModelParts& parts) {
  const ProgrammerConfig& config = parts.config;
  if (parts.layers.empty()) return "a tensor map has no rule";
  if (std::holds_alternative<AdaptiveSteps>(config.solver.steps)) return "adaptive steps depend on W";
  return kernel_refusal(parts.wiring.rule, *config.solver.method, parts.wiring.value_width,
                        parts.wiring.key_width);
}

}  // namespace

std::string engine_refusal(const ModelParts& parts, const ForwardOptions& options) {
  const std::string refusal = model_refusal(parts);
  if (!refusal.empty()) return refusal;
  if (parts.config.solver.gradient == Gradient::Adjoint && at::GradMode::is_enabled())
    return "the adjoint solves another equation backwards";
  if (options.observe) return "ForwardOptions::observe is set, and kernels do not report evaluations";
  return "";
}

bool has_engine(const ModelParts& parts) {
  const ProgrammerConfig& config = parts.config;
  if (std::holds_alternative<Flow>(*config.solver.method)) return true;
  return config.backend != Backend::Reference && model_refusal(parts).empty();
}

Backend engine_backend(const ModelParts& parts) {
  return parts.device().is_cpu() ? Backend::Cpu : Backend::Cuda;
}

BlockTask block_task(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch,
                     const Masks& masks, Backend backend) {
  BlockTask task;
  task.parts = parts;
  if (batch.lazy) task.signal = batch.lazy->signal;
  task.steps = batch.sampled;
  task.masks = masks;
  task.scan.rule = parts->wiring.rule;
  task.scan.method = batch.method;
  task.scan.backend = backend;
  // pieces would be those of the samples that were there first
  if (batch.refillable) task.scan.time_parallel = TimeParallel::Never;
  task.rows = batch.rows;
  task.shared = batch.shared;
  task.stages = batch.stages;
  for (const SampleSteps& sample : batch.per_sample) task.requested.push_back(sample.requested);
  task.whole = batch.block;
  return task;
}

MemoryPlan plan_engine(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch) {
  Masks masks;
  masks.values.resize(parts->layers.size());
  return plan_memory(block_task(parts, batch, masks, engine_backend(*parts)), Recording::Yes);
}

EngineRun run_engine(const std::shared_ptr<const ModelParts>& parts, const PreparedSteps& batch,
                     const Masks& masks, const Tensor& w0, Backend backend) {
  BlockTask task = block_task(parts, batch, masks, backend);
  EngineRun result;
  if (backend == Backend::Reference) {
    // the composition is recorded as a whole
    result.plan = {.steps = task.rows.longest, .block_steps = std::max<int64_t>(task.rows.longest, 1)};
  } else {
    result.plan = plan_memory(task, at::GradMode::is_enabled() ? Recording::Yes : Recording::No);
  }
  task.block_steps = result.plan.block_steps;
  const Tensor w = run_blocks(task, w0);
  result.w = at_outputs(w, batch.outputs);
  result.last = at_outputs(w, batch.last);
  result.steps = task.rows.longest;
  result.evaluations = result.steps * batch.stages;
  result.backend = backend == Backend::Reference ? "reference"
                   : backend == Backend::Cuda    ? device_backend()
                                                 : cpu_backend();
  return result;
}

}  // namespace fastweights

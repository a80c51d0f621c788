#include "model/engine.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fastweights/error.h"
#include "model/block.h"
#include "model/memory.h"
#include "ops/scan/fused.h"
#include "ops/scan/kernel.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// whether all stages of a step see the same x or x': a step then lies inside one piece of the path
SharedRows shared_rows(const ModelParts& parts, const Signal& signal, const Plan& plan) {
  const SolverConfig& solver = parts.config.solver;
  if (solver.steps != StepRule::Observations || !plan.first_inside || !plan.last_inside) return {};
  const auto shared = [&](bool derivative) {
    return derivative ? signal.piecewise_linear() : signal.piecewise_constant();
  };
  const Drive drive = parts.wiring.drive;
  return {.keys = shared(drive == Drive::DerivativeKeys || drive == Drive::Derivative),
          .values = shared(drive == Drive::DerivativeValues || drive == Drive::Derivative)};
}

// steps of each sample at which W is wanted, rising
std::vector<std::vector<int64_t>> wanted_steps(const std::vector<Place>& places, const Schedule& schedule,
                                               int64_t samples) {
  std::vector<std::set<int64_t>> found(samples);
  const auto add = [&](int64_t j, int64_t b) {
    const Place& place = places[j * samples + b];
    found[b].insert(place.steps);
    if (place.part > 0) found[b].insert(place.steps + 1);
  };
  const int64_t *time = schedule.time_index.data_ptr<int64_t>(),
                *sample = schedule.sample_index.data_ptr<int64_t>(),
                *last = schedule.last_index.data_ptr<int64_t>();
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i) add(time[i], sample[i]);
  for (int64_t b = 0; b < samples; ++b) add(last[b], b);
  std::vector<std::vector<int64_t>> result;
  for (const std::set<int64_t>& steps : found) result.emplace_back(steps.begin(), steps.end());
  return result;
}

// rows of W at (row of ts, sample) pairs, on straight lines inside a step
Tensor at_places(const Tensor& w, const std::vector<std::vector<int64_t>>& wanted,
                 const std::vector<Place>& places, const Tensor& time_index, const Tensor& sample_index) {
  const auto samples = static_cast<int64_t>(wanted.size());
  std::vector<int64_t> first = {0};
  for (const auto& steps : wanted) first.push_back(first.back() + static_cast<int64_t>(steps.size()));
  const int64_t *time = time_index.data_ptr<int64_t>(), *sample = sample_index.data_ptr<int64_t>();
  std::vector<int64_t> left, right;
  std::vector<double> part;
  for (int64_t i = 0; i < time_index.size(0); ++i) {
    const int64_t b = sample[i];
    const Place& place = places[time[i] * samples + b];
    const auto& steps = wanted[b];
    const int64_t row =
        first[b] + (std::lower_bound(steps.begin(), steps.end(), place.steps) - steps.begin());
    left.push_back(row);
    right.push_back(place.part > 0 ? row + 1 : row);
    part.push_back(place.part);
  }
  const Tensor start = w.index_select(0, at::tensor(left, at::kLong));
  if (std::all_of(part.begin(), part.end(), [](double p) { return p == 0; })) return start;
  const Tensor x = at::tensor(part, at::kDouble).to(w.scalar_type()).view({-1, 1, 1, 1, 1});
  return start + x * (w.index_select(0, at::tensor(right, at::kLong)) - start);
}

// where the numbers at the outputs stopped being finite
Status check_finite(const Tensor& w, const Schedule& schedule) {
  const at::NoGradGuard no_grad;
  const Tensor values = w.detach();
  if (values.numel() == 0 || std::isfinite(values.sum().item<double>()) ||
      at::isfinite(values).all().item<bool>()) {
    return {};
  }
  const int64_t rows = values.size(0);
  const Tensor bad = at::isfinite(values).logical_not().reshape({rows, -1}).any(-1);
  const int64_t row = at::nonzero(bad)[0].item<int64_t>();
  const int64_t b = schedule.sample_index[row].item<int64_t>(), j = schedule.time_index[row].item<int64_t>();
  const Tensor time = schedule.ts.dim() == 2 ? schedule.ts[j][b] : schedule.ts[j];
  return {Outcome::NotFinite, b, time.item<double>(), 0, values[row].abs().max().item<double>()};
}

}  // namespace

std::string engine_refusal(const ModelParts& parts, const ForwardOptions& options) {
  const ModelConfig& config = parts.config;
  if (parts.layers.empty()) return "a tensor map has no rule";
  const auto& rules = all_rules();
  if (std::none_of(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == config.rule; }))
    return "rule " + config.rule + " has no kernel";
  const int64_t keys = parts.wiring.key_width, values = parts.wiring.value_width;
  if (keys != values) return message("values are ", values, " wide and keys ", keys);
  if (keys > kernels::kScanWidth)
    return message("heads are ", keys, " wide, more than ", kernels::kScanWidth);
  if (config.solver.steps == StepRule::Adaptive) return "adaptive steps depend on W";
  if (config.solver.gradient == Gradient::Adjoint && at::GradMode::is_enabled())
    return "the adjoint solves another equation backwards";
  if (options.observe) return "somebody wants to observe every evaluation";
  if (config.solver.method == kExactFlow) return "";
  const Method how = method(config.solver.method);
  const Tableau* tableau = std::get_if<Tableau>(&how);
  if (!tableau) return "method " + config.solver.method + " is not a Runge-Kutta method";
  if (tableau->stages() > kernels::kScanStages)
    return message("method ", tableau->name, " has ", tableau->stages(), " stages, more than ",
                   kernels::kScanStages);
  return "";
}

EngineSteps engine_steps(const ModelParts& parts, const Signal& signal, int64_t samples,
                         const Schedule& schedule) {
  const bool exact = parts.config.solver.method == kExactFlow;
  // the solution itself looks at the signal once, like Euler's method
  const Tableau tableau = exact ? euler() : std::get<Tableau>(method(parts.config.solver.method));
  // of W a plan wants to know but the number of samples
  const Tensor some = at::empty({samples, 1}, parts.type());
  const Plan plan = fixed_plan(schedule.ts, some, {.method = tableau, .steps = schedule.steps});
  EngineSteps result;
  result.steps = static_cast<int64_t>(plan.steps.size());
  result.places = output_places(plan, samples);
  result.rows = step_rows(plan, tableau, samples);
  result.shared = shared_rows(parts, signal, plan);
  result.wanted = wanted_steps(result.places, schedule, samples);
  result.method = exact ? ScanMethod(ExactFlow{}) : ScanMethod(tableau);
  return result;
}

namespace {

BlockTask task_of(const std::shared_ptr<const ModelParts>& parts, const Signal& signal, const Masks& masks,
                  const EngineSteps& steps) {
  BlockTask task = {.parts = parts, .signal = signal, .steps = {}, .masks = masks};
  task.scan.rule = parts->wiring.rule;
  task.scan.method = steps.method;
  task.rows = steps.rows;
  task.shared = steps.shared;
  task.wanted = steps.wanted;
  return task;
}

}  // namespace

MemoryPlan plan_engine(const std::shared_ptr<const ModelParts>& parts, const Signal& signal, const Tensor& w0,
                       const Schedule& schedule) {
  Masks masks;
  masks.values.resize(parts->layers.size());
  const at::AutoGradMode on(true);
  const EngineSteps steps = engine_steps(*parts, signal, w0.size(0), schedule);
  return plan_memory(task_of(parts, signal, masks, steps), Recording::Yes);
}

EngineRun run_engine(const std::shared_ptr<const ModelParts>& parts, const Signal& signal, const Masks& masks,
                     const Tensor& w0, const Schedule& schedule, Backend backend) {
  const int64_t samples = w0.size(0);
  const EngineSteps run = engine_steps(*parts, signal, samples, schedule);
  BlockTask task = task_of(parts, signal, masks, run);
  task.scan.backend = backend;
  EngineRun result;
  result.plan = plan_memory(task, at::GradMode::is_enabled() ? Recording::Yes : Recording::No);
  // the composition is recorded as a whole
  if (backend == Backend::Reference)
    result.plan = {.steps = task.rows.longest, .block_steps = std::max<int64_t>(task.rows.longest, 1)};
  task.block_steps = result.plan.block_steps;
  const Tensor w = run_blocks(task, w0);
  result.w = at_places(w, task.wanted, run.places, schedule.time_index, schedule.sample_index);
  result.last = at_places(w, task.wanted, run.places, schedule.last_index, at::arange(samples, at::kLong));
  result.steps = run.steps;
  result.evaluations = result.steps * task.rows.times.size(1);
  result.status = check_finite(result.w, schedule);
  result.backend = backend == Backend::Reference ? "reference" : cpu_backend();
  return result;
}

}  // namespace fastweights

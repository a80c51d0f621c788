#include "architectures/continuous.h"

#include "architectures/packed.h"
#include "base/error.h"
#include "model/output_index.h"
#include "model/step_rows.h"
#include "solve/plan.h"
#include "tensor/autograd.h"

namespace fastweights {

struct ContinuousNetwork::Solved {
  Tensor states;  // [M, D] at the outputs
  Status status = {};
  int64_t steps = 0, evaluations = 0;
};

namespace {

// bytes of recorded values, unless the configuration has a limit; beyond it few states are kept instead
constexpr int64_t kOwnLimit = int64_t{4} << 30;

// whether the steps are known before the first one, and the gradient is that of the recorded operations
bool can_step_through(const SharedOptions& config, const ForwardOptions& options) {
  const SolverConfig& s = config.solver;
  if (options.observe || std::holds_alternative<AdaptiveSteps>(s.steps)) return false;
  if (at::GradMode::is_enabled() && s.gradient != Gradient::Exact) return false;
  return std::holds_alternative<Tableau>(method_of(s));
}

struct StageInput {
  Tensor drive;  // [R, S, E], rows in packed order
  Tensor dt;     // [R, 1]
  Packed packed;
};

// z after each step, all rows in packed order: [R, D]
template <typename Slope>
Tensor go_through(const StageInput& in, const Tableau& tableau, const Tensor& z0, const Slope& slope) {
  const int64_t stages = tableau.stages();
  const std::vector<Tensor> drives = in.packed.split(in.drive);
  Tensor z = z0.index_select(0, in.packed.packed_to_sample);
  std::vector<Tensor> after;
  for (int64_t n = 0; n < in.packed.steps(); ++n) {
    const Tensor dt = in.packed.step(in.dt, n);
    const Tensor here = z.narrow(0, 0, in.packed.active[n]);
    std::vector<Tensor> slopes;
    for (int64_t i = 0; i < stages; ++i) {
      const Tensor at = i == 0 ? here : weighted_sum(here, slopes, tableau.a[i]);
      slopes.push_back(slope(drives[n].select(1, i), dt, at));
    }
    z = weighted_sum(here, slopes, tableau.b);
    after.push_back(z);
  }
  return after.empty() ? z0.slice(0, 0, 0) : at::cat(after, 0);
}

// positions of outputs among the rows of [z0; z after each step]
std::vector<OutputPosition> output_rows(const std::vector<StepPosition>& positions, const Schedule& schedule,
                                        const StepRows& rows, const Packed& packed) {
  const int64_t samples = rows.samples();
  const int64_t *o = rows.offsets.data_ptr<int64_t>(), *p = packed.batch_to_packed.data_ptr<int64_t>();
  const int64_t *time = schedule.time_index.data_ptr<int64_t>(),
                *sample = schedule.sample_index.data_ptr<int64_t>();
  const auto row = [&](int64_t b, int64_t steps) { return steps == 0 ? b : samples + p[o[b] + steps - 1]; };
  std::vector<OutputPosition> result;
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i) {
    const int64_t b = sample[i];
    const StepPosition& at = positions[static_cast<size_t>(time[i] * samples + b)];
    result.push_back({row(b, at.steps), row(b, at.fraction > 0 ? at.steps + 1 : at.steps), at.fraction});
  }
  return result;
}

}  // namespace

std::optional<ContinuousNetwork::Solved> ContinuousNetwork::step_through(const SharedOptions& config,
                                                                         const ModelBatch& batch,
                                                                         const Tensor& z0) const {
  const int64_t samples = z0.size(0);
  const Tableau tableau = std::get<Tableau>(method_of(config.solver));
  const Plan plan = fixed_plan(batch.schedule.ts, z0, {.method = tableau, .steps = batch.schedule.steps});
  const StepRows rows = step_rows(plan, tableau, samples);
  const int64_t stages = tableau.stages();
  const int64_t bytes = rows.dt.size(0) * stages * recorded_values() * z0.element_size();
  const int64_t limit = config.solver.memory_limit > 0 ? config.solver.memory_limit : kOwnLimit;
  if (at::GradMode::is_enabled() && bytes > limit) return {};
  StageInput in;
  in.packed = pack(rows.offsets);
  const Samples x = batch.signal.inside({rows.times.reshape({-1}), rows.offsets * stages});
  const Tensor drive = this->drive(x);
  in.drive = drive.view({-1, stages, drive.size(1)}).index_select(0, in.packed.packed_to_batch);
  in.dt = rows.dt.to(z0.scalar_type()).index_select(0, in.packed.packed_to_batch).unsqueeze(1);
  const Tensor after = go_through(
      in, tableau, z0, [&](const Tensor& d, const Tensor& dt, const Tensor& z) { return slope(d, dt, z); });
  Solved result;
  const OutputIndex index =
      make_output_index(output_rows(output_positions(plan, samples), batch.schedule, rows, in.packed),
                        at::kCPU, z0.scalar_type());
  result.states = at_outputs(at::cat({z0, after}, 0), index);
  result.steps = static_cast<int64_t>(plan.steps.size());
  result.evaluations = result.steps * stages;
  return result;
}

ContinuousNetwork::Solved ContinuousNetwork::solve_generic(const SharedOptions& config,
                                                           const ModelBatch& batch, const Tensor& z0,
                                                           const ForwardOptions& options) const {
  const SolverConfig& s = config.solver;
  SolveOptions how = {.method = method_of(s), .steps = batch.schedule.steps, .gradient = s.gradient};
  how.memory_limit = s.memory_limit;
  // more than can be kept: the same gradient from fewer states
  if (s.gradient == Gradient::Exact && !std::holds_alternative<AdaptiveSteps>(s.steps) && !options.observe)
    how.gradient = Gradient::Checkpointed;
  how.parameters = field_parameters();
  const Tensor& coefficients = batch.signal.control().coefficients();
  if (coefficients.requires_grad()) how.parameters.push_back(coefficients);
  // a backward pass may call the field when this function is long over: it owns what it needs
  const Field field = [self = shared_from_this(), this, signal = batch.signal, observe = options.observe](
                          const Time& t, const Tensor& z) {
    const Samples x = signal.at(t);
    if (observe) observe(t, x);
    return slope(drive(x), {}, z);
  };
  const Solution solution = solve(field, z0, batch.schedule.ts, how);
  return {solution.ys.index({batch.schedule.time_index, batch.schedule.sample_index}), solution.status,
          solution.steps, solution.evaluations};
}

ModelOutput ContinuousNetwork::forward(const ModelConfig& model, const CheckedInput& checked,
                                       const ForwardOptions& options) const {
  const SharedOptions config = shared(model);
  const ModelBatch batch = make_model_batch(config, checked, {}, at::kCPU);
  const Tensor z0 = initial(batch.signal.first(), checked.static_features);
  std::optional<Solved> found;
  if (can_step_through(config, options)) found = step_through(config, batch, z0);
  const Solved solved = found ? *found : solve_generic(config, batch, z0, options);
  ModelOutput result = read_states(config, options, head_, checked, solved.states);
  result.status = solved.status;
  result.steps = solved.steps;
  result.evaluations = solved.evaluations;
  return result;
}

}  // namespace fastweights

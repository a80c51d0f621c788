#include "architectures/continuous.h"

#include <typeinfo>

#include "architectures/packed.h"
#include "base/error.h"
#include "model/config_fields.h"
#include "model/output_index.h"
#include "model/step_rows.h"
#include "solve/plan.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {

/// All steps of a batch. Tensors in packed order are on the device.
struct StageRows {
  Tensor offsets;                     // [B + 1] on the CPU: steps of each sample
  std::vector<StepPosition> outputs;  // [M], sample after sample
  Packed packed;
  Tensor signal;      // [R, S, C] in packed order
  Tensor dt;          // [R, 1] in packed order
  OutputIndex index;  // of outputs among the rows of [z0; z after each step]
};

struct ContinuousBatch final : PreparedBatch::Contents {
  std::shared_ptr<const ContinuousNetwork> network;
  // on the CPU: of `all`, the selected samples if there is a selection
  std::shared_ptr<const CheckedInput> all;
  std::optional<std::vector<int64_t>> selection;
  RequestedOutputs requested;
  Tensor first;            // [B, C]: the signal at the beginning
  Tensor static_features;  // [B, F], or undefined
  std::optional<StageRows> stages;
  std::shared_ptr<const ModelBatch> signal;  // null if there are stages
  bool independent = true;                   // whether samples do not depend on each other

  int64_t samples() const override { return first.size(0); }
  int64_t bytes() const override;
  bool separable() const override { return stages && independent; }
  PreparedBatch select(const std::vector<int64_t>& samples) const override;

  CheckedInput input() const { return selection ? select_samples(*all, *selection) : *all; }
  std::shared_ptr<const ModelBatch> model_batch() const;
};

struct ContinuousNetwork::Solved {
  Tensor states;  // [M, D] at the outputs
  Status status = {};
  int64_t steps = 0, evaluations = 0;
};

namespace {

// bytes of recorded values, unless the configuration has a limit; beyond it few states are kept instead
constexpr int64_t kOwnLimit = int64_t{4} << 30;
// of the memory of a GPU that is free
constexpr double kDeviceShare = 0.7;

// whether the steps are known before the first one
bool steps_are_known(const SolverConfig& solver) {
  return !std::holds_alternative<AdaptiveSteps>(solver.steps) &&
         std::holds_alternative<Tableau>(method_of(solver));
}

// whether the gradient is that of the recorded operations
bool records_steps(const SolverConfig& solver, const ForwardOptions& options) {
  return steps_are_known(solver) && !options.observe &&
         (!at::GradMode::is_enabled() || solver.gradient == Gradient::Exact);
}

// whether a batch that was prepared for one of them serves the other, too
bool same_steps(SolverConfig a, const SolverConfig& b) {
  a.gradient = b.gradient;
  a.memory_limit = b.memory_limit;
  return json_of(a) == json_of(b);
}

// z after each step, all rows in packed order: [R, D]
template <typename Slope>
Tensor go_through(const StageRows& in, const Tensor& drive, const Tableau& tableau, const Tensor& z0,
                  const Slope& slope) {
  const int64_t stages = tableau.stages();
  const std::vector<Tensor> drives = in.packed.split(drive);
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

// positions of outputs [M] of all samples, one after another
std::vector<StepPosition> positions_of_outputs(const Plan& plan, const Schedule& schedule, int64_t samples) {
  const std::vector<StepPosition> all = output_positions(plan, samples);
  const int64_t *time = schedule.time_index.data_ptr<int64_t>(),
                *sample = schedule.sample_index.data_ptr<int64_t>();
  std::vector<StepPosition> result;
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i)
    result.push_back(all[static_cast<size_t>(time[i] * samples + sample[i])]);
  return result;
}

// among the rows of [z0; z after each step]
OutputIndex output_index(const StageRows& stages, const Tensor& output_offsets) {
  const int64_t samples = output_offsets.size(0) - 1;
  const int64_t* o = output_offsets.data_ptr<int64_t>();
  const auto row = [&](int64_t b, int64_t steps) {
    return steps == 0 ? b : samples + stages.packed.row(b, steps - 1);
  };
  std::vector<OutputPosition> rows;
  for (int64_t b = 0; b < samples; ++b) {
    for (int64_t i = o[b]; i < o[b + 1]; ++i) {
      const StepPosition& at = stages.outputs[i];
      rows.push_back({row(b, at.steps), row(b, at.fraction > 0 ? at.steps + 1 : at.steps), at.fraction});
    }
  }
  return make_output_index(rows, stages.dt.device(), stages.dt.scalar_type());
}

StageRows select_samples(const StageRows& all, const std::vector<int64_t>& samples,
                         const Tensor& output_offsets) {
  const at::Device device = all.dt.device();
  const int64_t* o = all.offsets.data_ptr<int64_t>();
  std::vector<int64_t> offsets = {0};
  for (const int64_t b : samples) offsets.push_back(offsets.back() + o[b + 1] - o[b]);
  StageRows result;
  result.offsets = at::tensor(offsets, at::kLong);
  for (const int64_t i : selected_rows(output_offsets, samples)) result.outputs.push_back(all.outputs[i]);
  result.packed = pack(result.offsets, device);
  const Tensor rows = index_on_device(selected_rows(all.packed, samples, result.packed), device);
  result.signal = all.signal.index_select(0, rows);
  result.dt = all.dt.index_select(0, rows);
  return result;
}

}  // namespace

int64_t ContinuousBatch::bytes() const {
  return static_cast<int64_t>(stages ? stages->signal.nbytes() + stages->dt.nbytes()
                                     : signal->signal.control().coefficients().nbytes());
}

PreparedBatch ContinuousBatch::select(const std::vector<int64_t>& samples) const {
  if (!separable()) return PreparedBatch(network->make_batch(select_samples(input(), samples)));
  auto result = std::make_shared<ContinuousBatch>();
  const Tensor which = index_on_device(samples, first.device());
  result->network = network;
  result->all = all;
  result->selection.emplace();
  for (const int64_t b : samples) result->selection->push_back(selection ? (*selection)[b] : b);
  result->requested = requested_outputs(select_samples(requested.times, samples), first.device());
  result->first = first.index_select(0, which);
  if (static_features.defined()) result->static_features = static_features.index_select(0, which);
  result->stages = select_samples(*stages, samples, requested.times.offsets);
  result->stages->index = output_index(*result->stages, result->requested.times.offsets);
  return PreparedBatch(result);
}

std::shared_ptr<const ModelBatch> ContinuousBatch::model_batch() const {
  if (signal) return signal;
  return std::make_shared<const ModelBatch>(
      make_model_batch(network->shared(network->config()), input(), {}, first.device()));
}

StageRows ContinuousNetwork::make_stages(const ModelBatch& batch) const {
  const int64_t samples = batch.samples();
  const Tableau tableau = std::get<Tableau>(method_of(shared(config()).solver));
  // of z a plan needs only the number of samples
  const Plan plan = fixed_plan(batch.schedule.ts, at::empty({samples, 1}, type()),
                               {.method = tableau, .steps = batch.schedule.steps});
  const StepRows rows = step_rows(plan, tableau, samples);
  const int64_t stages = tableau.stages();
  const Tensor x = signal(batch.signal.inside({rows.times.reshape({-1}), rows.offsets * stages}));
  const Packed packed = pack(rows.offsets);
  const auto ordered = [&](const Tensor& t) {
    return on_device(t.index_select(0, on_device(packed.packed_to_batch, t.device())), device());
  };
  StageRows result;
  result.offsets = rows.offsets;
  result.outputs = positions_of_outputs(plan, batch.schedule, samples);
  result.packed = pack(rows.offsets, device());
  result.signal = ordered(x.view({rows.dt.size(0), stages, x.size(1)}));
  result.dt = ordered(rows.dt.to(type()).unsqueeze(1));
  result.index = output_index(result, batch.requested.offsets);
  return result;
}

std::shared_ptr<const ContinuousBatch> ContinuousNetwork::make_batch(const CheckedInput& input) const {
  const SharedOptions config = shared(this->config());
  const auto batch = std::make_shared<const ModelBatch>(make_model_batch(config, input, {}, device()));
  auto result = std::make_shared<ContinuousBatch>();
  result->network = std::static_pointer_cast<const ContinuousNetwork>(shared_from_this());
  result->all = std::make_shared<const CheckedInput>(input);
  result->requested = requested_outputs(input.requested, device());
  result->first = on_device(batch->signal.first(), device());
  result->static_features = on_device(input.static_features, device());
  result->independent = !std::holds_alternative<FixedSteps>(config.solver.steps);
  if (steps_are_known(config.solver) && config.solver.gradient == Gradient::Exact) {
    result->stages = make_stages(*batch);
  } else {
    result->signal = batch;
  }
  return result;
}

PreparedBatch ContinuousNetwork::prepare(const ModelInput& input, Reuse) const {
  return PreparedBatch(make_batch(check(input)));
}

bool ContinuousNetwork::fits(const StageRows& stages) const {
  if (!at::GradMode::is_enabled()) return true;
  const int64_t rows = stages.signal.size(0) * stages.signal.size(1);
  const int64_t bytes = rows * recorded_values() * static_cast<int64_t>(stages.dt.element_size());
  const int64_t limit = shared(config()).solver.memory_limit;
  if (limit > 0 || bytes <= kOwnLimit || !device().is_cuda()) return bytes <= (limit > 0 ? limit : kOwnLimit);
  return static_cast<double>(bytes) <= kDeviceShare * static_cast<double>(device_memory(device()).free);
}

ContinuousNetwork::Solved ContinuousNetwork::step_through(const StageRows& stages, const Tensor& z0) const {
  const Tableau tableau = std::get<Tableau>(method_of(shared(config()).solver));
  const Tensor drive = this->drive(stages.signal.flatten(0, 1));
  const Tensor after =
      go_through(stages, drive.view({stages.signal.size(0), tableau.stages(), drive.size(1)}), tableau, z0,
                 [&](const Tensor& d, const Tensor& dt, const Tensor& z) { return slope(d, dt, z); });
  Solved result;
  result.states = at_outputs(at::cat({z0, after}, 0), stages.index);
  result.steps = stages.packed.steps();
  result.evaluations = result.steps * tableau.stages();
  return result;
}

ContinuousNetwork::Solved ContinuousNetwork::solve_generic(const ModelBatch& batch, const Tensor& z0,
                                                           const ForwardOptions& options) const {
  const SolverConfig s = shared(config()).solver;
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
    return slope(drive(on_device(this->signal(x), z.device())), {}, z);
  };
  const Solution solution = solve(field, z0, batch.schedule.ts, how);
  return {solution.ys.index({batch.schedule.time_index, batch.schedule.sample_index}), solution.status,
          solution.steps, solution.evaluations};
}

ModelOutput ContinuousNetwork::forward(const PreparedBatch& prepared, const PassOptions& options) const {
  const auto& batch = contents_of<ContinuousBatch>(prepared);
  if (typeid(*batch.network) != typeid(*this)) refuse_batch();
  const SharedOptions config = shared(this->config());
  // prepared before the solver was replaced
  if (batch.network.get() != this &&
      !same_steps(batch.network->shared(batch.network->config()).solver, config.solver))
    return forward(PreparedBatch(make_batch(batch.input())), options);
  const Tensor z0 = initial(batch.first, batch.static_features);
  std::optional<StageRows> stages = batch.stages;
  const bool records = records_steps(config.solver, options);
  if (records && !stages) stages = make_stages(*batch.model_batch());
  const Solved solved =
      records && fits(*stages) ? step_through(*stages, z0) : solve_generic(*batch.model_batch(), z0, options);
  ModelOutput result = read_states(config, options, head_, batch.requested, solved.states);
  result.status = solved.status;
  result.steps = solved.steps;
  result.evaluations = solved.evaluations;
  return result;
}

ModelOutput ContinuousNetwork::forward(const ModelConfig&, const CheckedInput& checked,
                                       const ForwardOptions& options) const {
  return forward(PreparedBatch(make_batch(checked)), PassOptions{options});
}

}  // namespace fastweights

#include "model/prepared.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/engine.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

Samples moved(const Samples& x, const at::Device& device) {
  const Tensor value = on_device(x.value, device);
  return {value, x.derivative.is_same(x.value) ? value : on_device(x.derivative, device)};
}

// whether all stages of a step see the same x or x': a step then lies inside one piece of the path
SharedRows shared_rows(const ModelParts& parts, const Signal& signal, const Plan& plan) {
  if (!std::holds_alternative<ObservationSteps>(parts.config.solver.steps) || !plan.first_inside ||
      !plan.last_inside)
    return {};
  const auto shared = [&](bool derivative) {
    return derivative ? signal.piecewise_linear() : signal.piecewise_constant();
  };
  const Drive drive = parts.wiring.drive;
  return {.keys = shared(drive == Drive::DerivativeKeys || drive == Drive::Derivative),
          .values = shared(drive == Drive::DerivativeValues || drive == Drive::Derivative)};
}

OutputPosition position_of(const StepPosition& at, const std::vector<int64_t>& requested) {
  const int64_t row = std::lower_bound(requested.begin(), requested.end(), at.steps) - requested.begin();
  return {row, at.fraction > 0 ? row + 1 : row, at.fraction};
}

// positions of row j of the schedule's ts for sample b at [j * B + b]
std::vector<SampleSteps> sample_steps(const std::vector<StepPosition>& positions, const StepRows& rows,
                                      const Schedule& schedule) {
  const int64_t samples = rows.samples();
  const int64_t *o = rows.offsets.data_ptr<int64_t>(), *time = schedule.time_index.data_ptr<int64_t>(),
                *sample = schedule.sample_index.data_ptr<int64_t>(),
                *last = schedule.last_index.data_ptr<int64_t>();
  const auto position = [&](int64_t j, int64_t b) { return positions[j * samples + b]; };
  std::vector<std::set<int64_t>> requested(samples);
  const auto request = [&](int64_t j, int64_t b) {
    const StepPosition at = position(j, b);
    requested[b].insert(at.steps);
    if (at.fraction > 0) requested[b].insert(at.steps + 1);
  };
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i) request(time[i], sample[i]);
  for (int64_t b = 0; b < samples; ++b) request(last[b], b);
  std::vector<SampleSteps> result(samples);
  for (int64_t b = 0; b < samples; ++b) {
    result[b].steps = o[b + 1] - o[b];
    result[b].requested.assign(requested[b].begin(), requested[b].end());
    result[b].last = position_of(position(last[b], b), result[b].requested);
  }
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i) {
    SampleSteps& own = result[sample[i]];
    own.outputs.push_back(position_of(position(time[i], sample[i]), own.requested));
  }
  return result;
}

// sample of each row: [R]
Tensor row_samples(const std::vector<SampleSteps>& samples, const at::Device& device) {
  std::vector<int64_t> counts;
  int64_t rows = 0;
  for (const SampleSteps& sample : samples) {
    counts.push_back(sample.steps);
    rows += sample.steps;
  }
  const Tensor index =
      at::arange(static_cast<int64_t>(samples.size()), at::TensorOptions(at::kLong).device(device));
  return at::repeat_interleave(index, index_on_device(counts, device), 0, rows);
}

// positions of outputs among the requested W of all samples, sample after sample
void add_output_index(PreparedSteps& batch, const at::Device& device) {
  std::vector<OutputPosition> outputs, last;
  int64_t first = 0;
  const auto shifted = [&](const OutputPosition& at) {
    return OutputPosition{first + at.left, first + at.right, at.fraction};
  };
  for (const SampleSteps& sample : batch.per_sample) {
    for (const OutputPosition& output : sample.outputs) outputs.push_back(shifted(output));
    last.push_back(shifted(sample.last));
    first += static_cast<int64_t>(sample.requested.size());
  }
  batch.outputs = make_output_index(outputs, device, batch.parts->type());
  batch.last = make_output_index(last, device, batch.parts->type());
}

// what follows from the samples of a batch whose signal is sampled
void add_index(PreparedSteps& batch) {
  std::vector<int64_t> offsets = {0};
  batch.rows = {};
  for (const SampleSteps& sample : batch.per_sample) {
    offsets.push_back(offsets.back() + sample.steps);
    batch.rows.longest = std::max(batch.rows.longest, sample.steps);
  }
  batch.rows.offsets = at::tensor(offsets, at::kLong);
  add_output_index(batch, batch.parts->device());
  const Backend backend = engine_backend(*batch.parts);
  batch.block = std::make_shared<const Block>(whole_block(block_task(batch.parts, batch, {}, backend)));
}

// the signal at the stages, what the drive needs of it
Samples stage_samples(const ModelParts& parts, const Signal& signal, const PreparedSteps& batch) {
  const bool once = parts.layer_count() == 1 && batch.shared.keys && batch.shared.values;
  const Tensor times = once ? batch.rows.times.slice(1, 0, 1).contiguous() : batch.rows.times;
  const int64_t rows = times.size(0), z = times.size(1);
  const Samples x = signal.inside({times.reshape({-1}), batch.rows.offsets * z});
  const auto shaped = [&](const Tensor& t) { return t.defined() ? t.view({rows, z, t.size(1)}) : t; };
  Samples result = {shaped(x.value), {}};
  result.derivative = x.derivative.is_same(x.value) ? result.value : shaped(x.derivative);
  const Drive drive = parts.wiring.drive;
  if (parts.layer_count() > 1) return result;
  if (drive == Drive::X) result.derivative = Tensor();
  if (drive == Drive::Derivative) result.value = Tensor();
  return result;
}

void plan_steps(PreparedSteps& result, const ModelBatch& batch) {
  const ModelParts& parts = *result.parts;
  const Method& method = *parts.config.solver.method;
  // a flow evaluates the signal once, where the midpoint method has its second stage
  const bool flows = std::holds_alternative<Flow>(method);
  const Tableau tableau = flows ? midpoint() : std::get<Tableau>(method);
  // of W a plan needs only the number of samples
  const Tensor state = at::empty({batch.samples(), 1}, parts.type());
  const Plan plan = fixed_plan(batch.schedule.ts, state, {.method = tableau, .steps = batch.schedule.steps});
  result.rows = step_rows(plan, tableau, batch.samples());
  if (flows) result.rows.times = result.rows.times.slice(1, 1, 2).contiguous();
  result.shared = shared_rows(parts, batch.signal, plan);
  result.method = method;
  result.stages = result.rows.times.size(1);
  result.per_sample = sample_steps(output_positions(plan, batch.samples()), result.rows, batch.schedule);
}

// bytes that the sampled signal would take
int64_t sampled_bytes(const PreparedSteps& batch) {
  const ModelParts& parts = *batch.parts;
  return 2 * batch.rows.dt.size(0) * batch.stages * signal_size(parts.config) *
         static_cast<int64_t>(at::elementSize(parts.type()));
}

bool samples_now(const PreparedSteps& batch, const ModelInput& input, Reuse reuse) {
  const ModelParts& parts = *batch.parts;
  if (!parts.device().is_cpu()) return true;
  // a limit is for all that passes hold, and only a pass knows how much is left of it
  return reuse == Reuse::Often && parts.config.solver.memory_limit == 0 &&
         parts.config.backend != Backend::Reference && parts.config.solver.gradient != Gradient::Adjoint &&
         !needs_gradient({input.series.values}) && sampled_bytes(batch) <= kSampledLimit;
}

void sample_signal(PreparedSteps& result, const Signal& signal) {
  const ModelParts& parts = *result.parts;
  const at::Device device = parts.device();
  result.sampled = SampledSteps{moved(stage_samples(parts, signal, result), device),
                                on_device(result.rows.dt.to(parts.type()), device),
                                row_samples(result.per_sample, device)};
  add_index(result);
}

int64_t bytes_of(const Tensor& x) {
  return x.defined() ? x.numel() * static_cast<int64_t>(at::elementSize(x.scalar_type())) : 0;
}

}  // namespace

int64_t PreparedSteps::bytes() const {
  if (!sampled) return 0;
  const Samples& x = sampled->x;
  int64_t sum = bytes_of(x.value) + bytes_of(sampled->dt) + bytes_of(sampled->rows) + bytes_of(query.value);
  if (!x.derivative.is_same(x.value)) sum += bytes_of(x.derivative);
  return sum;
}

std::vector<BatchRows> PreparedSteps::sample_rows() const {
  std::vector<BatchRows> result;
  for (const SampleSteps& sample : per_sample) {
    const auto states = static_cast<int64_t>(sample.requested.size());
    result.push_back({sample.steps, states, static_cast<int64_t>(sample.outputs.size())});
  }
  return result;
}

std::shared_ptr<const PreparedSteps> prepare_steps(const std::shared_ptr<const ModelParts>& parts,
                                                   const ModelInput& input, Reuse reuse) {
  const auto lazy = std::make_shared<const ModelBatch>(make_model_batch(*parts, input));
  const ModelBatch& batch = *lazy;
  const at::Device device = parts->device();
  auto result = std::make_shared<PreparedSteps>();
  result->parts = parts;
  result->begin = moved(batch.signal.at(Time(batch.begin)), device);
  result->first = on_device(batch.signal.first(), device);
  result->static_features = on_device(batch.static_features, device);
  if (input.start) result->start = on_device(at::stack(input.start->w, 1).to(parts->type()), device);
  if (parts->config.query != QueryTime::FirstObservation)
    result->query = moved(query_samples(*parts, batch, {}), device);
  result->sample_index = on_device(batch.schedule.sample_index, device);
  result->times = batch.requested;
  result->last_times = last_times(input, batch);
  result->independent = parts->config.query != QueryTime::LastOfBatch &&
                        !std::holds_alternative<FixedSteps>(parts->config.solver.steps);
  const bool engine = has_engine(*parts);
  if (engine) plan_steps(*result, batch);
  if (engine && samples_now(*result, input, reuse)) {
    sample_signal(*result, batch.signal);
  } else {
    result->input = input;
    result->lazy = lazy;
    if (engine) add_output_index(*result, device);
  }
  return result;
}

namespace {

// rows first[b] .. first[b + 1] of the chosen samples on the device: [rows]
Tensor rows_on_device(const Tensor& offsets, const std::vector<int64_t>& samples, const at::Device& device) {
  // a row of the result lies at a fixed distance from its row in the batch, for each sample
  const int64_t* first = offsets.data_ptr<int64_t>();
  std::vector<int64_t> distance, counts;
  int64_t rows = 0;
  for (const int64_t b : samples) {
    distance.push_back(first[b] - rows);
    counts.push_back(first[b + 1] - first[b]);
    rows += counts.back();
  }
  const Tensor each =
      at::repeat_interleave(index_on_device(distance, device), index_on_device(counts, device), 0, rows);
  return each + at::arange(rows, at::TensorOptions(at::kLong).device(device));
}

Tensor rows_of(const Tensor& x, const Tensor& index) { return x.defined() ? x.index_select(0, index) : x; }

Samples rows_of(const Samples& x, const Tensor& index) {
  const Tensor value = rows_of(x.value, index);
  return {value, x.derivative.is_same(x.value) ? value : rows_of(x.derivative, index)};
}

}  // namespace

PreparedBatch PreparedSteps::select(const std::vector<int64_t>& samples) const {
  if (lazy) return PreparedBatch(prepare_steps(parts, select_samples(input, samples), Reuse::Once));
  FW_CHECK(independent, "[model] samples of this input depend on each other and cannot be picked");
  const at::Device device = parts->device();
  auto result = std::make_shared<PreparedSteps>();
  result->parts = parts;
  result->shared = shared;
  result->method = method;
  result->stages = stages;
  std::vector<int64_t> owners, offsets = {0};
  for (const int64_t b : samples) {
    result->per_sample.push_back(per_sample[b]);
    owners.insert(owners.end(), per_sample[b].outputs.size(), static_cast<int64_t>(offsets.size()) - 1);
    offsets.push_back(static_cast<int64_t>(owners.size()));
  }
  const Tensor selected = rows_on_device(rows.offsets, samples, device),
               which = index_on_device(samples, device);
  const std::vector<int64_t> outputs = selected_rows(times.offsets, samples);
  result->sampled = SampledSteps{rows_of(sampled->x, selected), sampled->dt.index_select(0, selected),
                                 row_samples(result->per_sample, device)};
  result->begin = rows_of(begin, which);
  result->first = first.index_select(0, which);
  result->static_features = rows_of(static_features, which);
  result->start = rows_of(start, which);
  result->query = rows_of(query, index_on_device(outputs, device));
  result->sample_index = index_on_device(owners, device);
  result->times = {times.times.index_select(0, at::tensor(outputs, at::kLong)),
                   at::tensor(offsets, at::kLong)};
  result->last_times = last_times.index_select(0, at::tensor(samples, at::kLong));
  add_index(*result);
  return PreparedBatch(result);
}

namespace {

// Tensors of a batch by what their first dimension counts. Rows of a recorded batch that the present one does
// not have: steps keep what an earlier batch left there, since kernels read how many there are; outputs and
// states are zeros, that is, they refer to the first row of what they index, which always exists.
// R: PreparedSteps, const or not.
template <typename R>
auto step_tensors(R& r) {
  auto& steps = *r.sampled;
  std::vector<decltype(&steps.dt)> tensors = {&steps.x.value, &steps.dt, &steps.rows};
  if (!steps.x.derivative.is_same(steps.x.value)) tensors.push_back(&steps.x.derivative);
  return tensors;
}
template <typename R>
auto output_tensors(R& r) {
  return std::vector<decltype(&r.first)>{&r.query.value,  &r.query.derivative, &r.sample_index,
                                         &r.outputs.left, &r.outputs.right,    &r.outputs.fraction};
}
template <typename R, typename B>
auto sample_tensors(R& r, B& block) {
  return std::vector<decltype(&r.first)>{&r.begin.value,
                                         &r.begin.derivative,
                                         &r.first,
                                         &r.static_features,
                                         &r.start,
                                         &r.last.left,
                                         &r.last.right,
                                         &r.last.fraction,
                                         &block.on_device.offsets,
                                         &block.on_device.output_offsets,
                                         &block.ends};
}

// with the number of rows that each has room for
template <typename R, typename B>
auto all_tensors(R& r, B& block, const BatchRows& rows) {
  using Pointer = decltype(&r.first);
  std::vector<std::pair<Pointer, int64_t>> all;
  for (Pointer tensor : step_tensors(r)) all.emplace_back(tensor, rows.steps);
  for (Pointer tensor : output_tensors(r)) all.emplace_back(tensor, rows.outputs);
  all.emplace_back(&block.requested, rows.states);
  // the end of each sample besides
  all.emplace_back(&block.on_device.output_steps, rows.states + r.samples());
  for (Pointer tensor : sample_tensors(r, block))
    all.emplace_back(tensor, tensor->defined() ? tensor->size(0) : 0);
  return all;
}

bool fits(const Tensor& from, const Tensor& to) {
  if (!from.defined() || !to.defined()) return from.defined() == to.defined();
  return from.dim() == to.dim() && from.size(0) <= to.size(0) && from.sizes().slice(1) == to.sizes().slice(1);
}

}  // namespace

std::shared_ptr<PreparedBatch::Contents> PreparedSteps::with_capacity(const BatchRows& capacity) const {
  FW_CHECK(sampled, "[model] passes on this batch cannot be recorded: its signal is not sampled");
  auto copy = std::make_shared<PreparedSteps>(*this);
  const auto own_block = std::make_shared<Block>(*block);
  const bool same = sampled->x.derivative.is_same(sampled->x.value);
  for (const auto& [tensor, rows] : all_tensors(*copy, *own_block, capacity)) {
    if (!tensor->defined()) continue;
    std::vector<int64_t> shape = tensor->sizes().vec();
    shape[0] = rows;
    const Tensor from = *tensor;
    *tensor = at::zeros(shape, from.options());
    tensor->narrow(0, 0, from.size(0)).copy_(from);
  }
  if (same) copy->sampled->x.derivative = copy->sampled->x.value;
  copy->block = own_block;
  copy->refillable = true;
  return copy;
}

bool PreparedSteps::can_assign(const PreparedBatch::Contents& other) const {
  const auto* batch = dynamic_cast<const PreparedSteps*>(&other);
  if (!batch || !sampled || !batch->sampled || samples() != batch->samples()) return false;
  const auto own = all_tensors(*this, *block, {}), given = all_tensors(*batch, *batch->block, {});
  if (own.size() != given.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!fits(*given[i].first, *own[i].first)) return false;
  }
  return true;
}

void PreparedSteps::assign(const PreparedBatch::Contents& other) const {
  const auto& batch = dynamic_cast<const PreparedSteps&>(other);
  const size_t steps = step_tensors(*this).size();
  const auto own = all_tensors(*this, *block, {}), given = all_tensors(batch, *batch.block, {});
  for (size_t i = 0; i < own.size(); ++i) {
    const Tensor &to = *own[i].first, &from = *given[i].first;
    if (!to.defined()) continue;
    const int64_t rows = from.size(0), rest = to.size(0) - rows;
    to.narrow(0, 0, rows).copy_(from);
    if (rest > 0 && i >= steps) to.narrow(0, rows, rest).zero_();
  }
}

}  // namespace fastweights

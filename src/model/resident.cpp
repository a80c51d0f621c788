#include "model/resident.h"

#include <algorithm>
#include <numeric>

#include "fastweights/error.h"
#include "model/memory.h"
#include "ops/scan/on_device.h"
#include "ops/scan/plan.h"
#include "ops/scan/time_parallel.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

Samples moved(const Samples& x, const at::Device& device) {
  const Tensor value = on_device(x.value, device);
  return {value, x.derivative.is_same(x.value) ? value : on_device(x.derivative, device)};
}

// the signal at the stages, what the drive needs of it
Samples stage_samples(const ModelParts& parts, const Signal& signal, const EngineSteps& steps) {
  const bool once = parts.layer_count() == 1 && steps.shared.keys && steps.shared.values;
  const Tensor times = once ? steps.rows.times.slice(1, 0, 1).contiguous() : steps.rows.times;
  const int64_t rows = times.size(0), z = times.size(1);
  const Samples x = signal.inside({times.reshape({-1}), steps.rows.offsets * z});
  const auto shaped = [&](const Tensor& t) { return t.defined() ? t.view({rows, z, t.size(1)}) : t; };
  Samples result = {shaped(x.value), {}};
  result.derivative = x.derivative.is_same(x.value) ? result.value : shaped(x.derivative);
  const Drive drive = parts.wiring.drive;
  if (parts.layer_count() > 1) return result;
  if (drive == Drive::X) result.derivative = Tensor();
  if (drive == Drive::Derivative) result.value = Tensor();
  return result;
}

ResidentOutput output_of(const Place& place, const std::vector<int64_t>& wanted) {
  const int64_t row = std::lower_bound(wanted.begin(), wanted.end(), place.steps) - wanted.begin();
  return {row, place.part > 0 ? row + 1 : row, place.part};
}

std::vector<ResidentSample> samples_of(const EngineSteps& steps, const Schedule& schedule, int64_t samples) {
  const int64_t* o = steps.rows.offsets.data_ptr<int64_t>();
  const int64_t *time = schedule.time_index.data_ptr<int64_t>(),
                *sample = schedule.sample_index.data_ptr<int64_t>(),
                *last = schedule.last_index.data_ptr<int64_t>();
  std::vector<ResidentSample> result(samples);
  for (int64_t b = 0; b < samples; ++b) {
    result[b].steps = o[b + 1] - o[b];
    result[b].wanted = steps.wanted[b];
    result[b].last = output_of(steps.places[last[b] * samples + b], steps.wanted[b]);
  }
  for (int64_t i = 0; i < schedule.time_index.size(0); ++i) {
    const int64_t b = sample[i];
    result[b].outputs.push_back(output_of(steps.places[time[i] * samples + b], steps.wanted[b]));
  }
  return result;
}

Tensor whole_numbers(const std::vector<int64_t>& numbers, const at::Device& device) {
  return on_device(at::tensor(numbers, at::kLong), device);
}

// whose each row is: [R]
Tensor owners(const std::vector<ResidentSample>& samples, const at::Device& device) {
  std::vector<int64_t> counts;
  int64_t rows = 0;
  for (const ResidentSample& sample : samples) {
    counts.push_back(sample.steps);
    rows += sample.steps;
  }
  const Tensor index =
      at::arange(static_cast<int64_t>(samples.size()), at::TensorOptions(at::kLong).device(device));
  return at::repeat_interleave(index, whole_numbers(counts, device), 0, rows);
}

// places of outputs before they are on the device
struct Places {
  std::vector<int64_t> left, right;
  std::vector<double> part;

  void add(int64_t first, const ResidentOutput& output) {
    left.push_back(first + output.left);
    right.push_back(first + output.right);
    part.push_back(output.part);
  }
  ResidentIndex on(const at::Device& device, at::ScalarType type) const {
    ResidentIndex index = {whole_numbers(left, device), {}, {}};
    if (std::all_of(part.begin(), part.end(), [](double p) { return p == 0; })) return index;
    index.right = whole_numbers(right, device);
    index.part = on_device(at::tensor(part, at::kDouble).to(type), device).view({-1, 1, 1, 1, 1});
    return index;
  }
};

// W at outputs, from W [.., L, H, V, K] at what is wanted, sample after sample
Tensor pick(const Tensor& w, const ResidentIndex& index) {
  // not index_select, whose gradient adds rows that are wanted more than once in any order
  const Tensor start = w.index({index.left});
  if (!index.part.defined()) return start;
  return start + index.part * (w.index({index.right}) - start);
}

// what follows from the samples alone
void add_index(Resident& resident) {
  const at::Device device = resident.steps.dt.device();
  const at::ScalarType type = resident.steps.dt.scalar_type();
  std::vector<int64_t> offsets = {0};
  Places outputs, last;
  int64_t wanted = 0;
  for (const ResidentSample& sample : resident.samples) {
    offsets.push_back(offsets.back() + sample.steps);
    resident.wanted.push_back(sample.wanted);
    for (const ResidentOutput& output : sample.outputs) outputs.add(wanted, output);
    last.add(wanted, sample.last);
    wanted += static_cast<int64_t>(sample.wanted.size());
    resident.rows.longest = std::max(resident.rows.longest, sample.steps);
  }
  resident.rows.offsets = at::tensor(offsets, at::kLong);
  resident.outputs = outputs.on(device, type);
  resident.last = last.on(device, type);
  BlockTask task = {.parts = {}, .signal = {}, .steps = resident.steps, .masks = {}};
  task.rows = resident.rows;
  task.wanted = resident.wanted;
  resident.block = std::make_shared<const Block>(whole_block(task));
}

int64_t bytes_of(const Tensor& x) {
  return x.defined() ? x.numel() * static_cast<int64_t>(at::elementSize(x.scalar_type())) : 0;
}

}  // namespace

int64_t Resident::bytes() const {
  int64_t sum = bytes_of(steps.x.value) + bytes_of(steps.dt) + bytes_of(steps.rows) + bytes_of(query.value);
  if (!steps.x.derivative.is_same(steps.x.value)) sum += bytes_of(steps.x.derivative);
  return sum;
}

std::shared_ptr<const Resident> make_resident(const ModelParts& parts, const ModelInput& input) {
  const ModelBatch batch = make_model_batch(parts, input);
  const at::Device device = parts.device();
  const EngineSteps steps = engine_steps(parts, batch.signal, batch.samples(), batch.schedule);
  Resident result;
  result.samples = samples_of(steps, batch.schedule, batch.samples());
  result.shared = steps.shared;
  result.method = steps.method;
  result.stages = steps.rows.times.size(1);
  result.steps.x = moved(stage_samples(parts, batch.signal, steps), device);
  result.steps.dt = on_device(steps.rows.dt.to(parts.type()), device);
  result.steps.rows = owners(result.samples, device);
  result.begin = moved(batch.signal.at(Time(batch.begin)), device);
  result.first = on_device(batch.signal.first(), device);
  result.static_features = on_device(batch.static_features, device);
  if (input.start) result.start = on_device(at::stack(input.start->w, 1).to(parts.type()), device);
  if (parts.config.query != QueryTime::FirstObservation)
    result.query = moved(query_samples(parts, batch, {}), device);
  result.sample_index = on_device(batch.schedule.sample_index, device);
  result.times = batch.wanted.times;
  result.offsets = batch.wanted.offsets;
  result.last_times = last_times(input, batch);
  result.separable =
      parts.config.query != QueryTime::LastOfBatch && parts.config.solver.steps != StepRule::SharedGrid;
  add_index(result);
  return std::make_shared<const Resident>(std::move(result));
}

namespace {

// rows first[b] .. first[b] + count[b] of the chosen samples, one sample after another
std::vector<int64_t> ranges(const std::vector<int64_t>& first, const std::vector<int64_t>& samples) {
  std::vector<int64_t> rows;
  for (const int64_t b : samples) {
    for (int64_t i = first[b]; i < first[b + 1]; ++i) rows.push_back(i);
  }
  return rows;
}

// the same on the device: [rows]
Tensor ranges_on_device(const std::vector<int64_t>& first, const std::vector<int64_t>& samples,
                        const at::Device& device) {
  // a row's place among all is its place among the chosen, moved by what its sample is moved
  std::vector<int64_t> moved, counts;
  int64_t rows = 0;
  for (const int64_t b : samples) {
    moved.push_back(first[b] - rows);
    counts.push_back(first[b + 1] - first[b]);
    rows += counts.back();
  }
  const Tensor each =
      at::repeat_interleave(whole_numbers(moved, device), whole_numbers(counts, device), 0, rows);
  return each + at::arange(rows, at::TensorOptions(at::kLong).device(device));
}

Tensor rows_of(const Tensor& x, const Tensor& index) { return x.defined() ? x.index_select(0, index) : x; }

Samples rows_of(const Samples& x, const Tensor& index) {
  const Tensor value = rows_of(x.value, index);
  return {value, x.derivative.is_same(x.value) ? value : rows_of(x.derivative, index)};
}

}  // namespace

std::shared_ptr<const Resident> select(const Resident& all, const std::vector<int64_t>& samples) {
  FW_CHECK(all.separable, "[model] samples of this input depend on each other and cannot be picked");
  const at::Device device = all.steps.dt.device();
  std::vector<int64_t> first_row = {0}, first_output = {0}, whose, offsets = {0};
  for (const ResidentSample& sample : all.samples) {
    first_row.push_back(first_row.back() + sample.steps);
    first_output.push_back(first_output.back() + static_cast<int64_t>(sample.outputs.size()));
  }
  Resident result;
  result.shared = all.shared;
  result.method = all.method;
  result.stages = all.stages;
  for (const int64_t b : samples) {
    FW_CHECK(b >= 0 && b < static_cast<int64_t>(all.samples.size()), "[model] there is no sample ", b,
             " among ", all.samples.size());
    result.samples.push_back(all.samples[b]);
    whose.insert(whose.end(), all.samples[b].outputs.size(), static_cast<int64_t>(offsets.size()) - 1);
    offsets.push_back(static_cast<int64_t>(whose.size()));
  }
  const Tensor rows = ranges_on_device(first_row, samples, device), which = whole_numbers(samples, device);
  const std::vector<int64_t> outputs = ranges(first_output, samples);
  const Tensor there = whole_numbers(outputs, device);
  result.steps.x = rows_of(all.steps.x, rows);
  result.steps.dt = all.steps.dt.index_select(0, rows);
  result.steps.rows = owners(result.samples, device);
  result.begin = rows_of(all.begin, which);
  result.first = all.first.index_select(0, which);
  result.static_features = rows_of(all.static_features, which);
  result.start = rows_of(all.start, which);
  result.query = rows_of(all.query, there);
  result.sample_index = whole_numbers(whose, device);
  result.times = all.times.index_select(0, at::tensor(outputs, at::kLong));
  result.offsets = at::tensor(offsets, at::kLong);
  result.last_times = all.last_times.index_select(0, at::tensor(samples, at::kLong));
  add_index(result);
  return std::make_shared<const Resident>(std::move(result));
}

namespace {

// of each row, and the others; R: Resident, const or not
template <typename R>
auto row_tensors(R& r) {
  std::vector<decltype(&r.steps.dt)> tensors = {&r.steps.x.value, &r.steps.dt, &r.steps.rows};
  if (!r.steps.x.derivative.is_same(r.steps.x.value)) tensors.push_back(&r.steps.x.derivative);
  return tensors;
}
template <typename R, typename B>
auto other_tensors(R& r, B& block) {
  return std::vector<decltype(&r.first)>{&r.begin.value,
                                         &r.begin.derivative,
                                         &r.first,
                                         &r.static_features,
                                         &r.start,
                                         &r.query.value,
                                         &r.query.derivative,
                                         &r.sample_index,
                                         &r.outputs.left,
                                         &r.outputs.right,
                                         &r.outputs.part,
                                         &r.last.left,
                                         &r.last.right,
                                         &r.last.part,
                                         &block.on_device.offsets,
                                         &block.on_device.output_steps,
                                         &block.on_device.output_offsets,
                                         &block.wanted,
                                         &block.ends};
}

std::vector<Tensor> list_of(const std::vector<const Tensor*>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor* tensor : tensors) list.push_back(*tensor);
  return list;
}
std::vector<Tensor> row_list(const Resident& r) { return list_of(row_tensors(r)); }
std::vector<Tensor> other_list(const Resident& r) { return list_of(other_tensors(r, *r.block)); }

}  // namespace

std::shared_ptr<Resident> with_room(const Resident& batch, int64_t rows) {
  auto place = std::make_shared<Resident>(batch);
  const auto block = std::make_shared<Block>(*batch.block);
  const bool same = batch.steps.x.derivative.is_same(batch.steps.x.value);
  for (Tensor* tensor : row_tensors(*place)) {
    if (!tensor->defined()) continue;
    std::vector<int64_t> shape = tensor->sizes().vec();
    shape[0] = rows;
    const Tensor from = *tensor;
    *tensor = at::zeros(shape, from.options());
    tensor->narrow(0, 0, from.size(0)).copy_(from);
  }
  if (same) place->steps.x.derivative = place->steps.x.value;
  for (Tensor* tensor : other_tensors(*place, *block)) {
    if (tensor->defined()) *tensor = tensor->clone();
  }
  place->block = block;
  place->refillable = true;
  return place;
}

bool has_room(const Resident& place, const Resident& batch) {
  const std::vector<Tensor> rows = row_list(place), new_rows = row_list(batch);
  if (rows.size() != new_rows.size() || place.steps.dt.size(0) < batch.steps.dt.size(0)) return false;
  const std::vector<Tensor> others = other_list(place), new_others = other_list(batch);
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i].defined() != new_others[i].defined()) return false;
    if (others[i].defined() && others[i].sizes() != new_others[i].sizes()) return false;
  }
  return true;
}

void refill(const Resident& place, const Resident& batch) {
  const std::vector<Tensor> rows = row_list(place), new_rows = row_list(batch);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].defined()) rows[i].narrow(0, 0, new_rows[i].size(0)).copy_(new_rows[i]);
  }
  const std::vector<Tensor> others = other_list(place), new_others = other_list(batch);
  for (size_t i = 0; i < others.size(); ++i) {
    if (others[i].defined()) others[i].copy_(new_others[i]);
  }
}

namespace {

BlockTask task_of(const std::shared_ptr<const ModelParts>& parts, const Resident& resident,
                  const Masks& masks) {
  BlockTask task = {.parts = parts, .signal = {}, .steps = resident.steps, .masks = masks};
  task.scan.rule = parts->wiring.rule;
  task.scan.method = resident.method;
  task.scan.backend = Backend::Cuda;
  task.shared = resident.shared;
  task.rows = resident.rows;
  task.wanted = resident.wanted;
  task.whole = resident.block;
  // pieces would be those of the samples that were there first
  if (resident.refillable) task.scan.time_parallel = TimeParallel::Never;
  return task;
}

}  // namespace

bool can_be_recorded(const std::shared_ptr<const ModelParts>& parts, const Resident& resident) {
  const BlockTask task = task_of(parts, resident, {});
  const auto samples = static_cast<int64_t>(resident.samples.size());
  const kernels::ScanPlan plan = scan_plan(task.scan, parts->wiring.heads, parts->wiring.key_width);
  return plan_device_memory(task, Recording::Yes).blocks == 1 &&
         !splits_time(plan, samples, resident.rows.longest);
}

MemoryPlan plan_resident(const std::shared_ptr<const ModelParts>& parts, const Resident& resident) {
  return plan_device_memory(task_of(parts, resident, {}), Recording::Yes);
}

EngineRun run_resident(const std::shared_ptr<const ModelParts>& parts, const Resident& resident,
                       const Masks& masks, const Tensor& w0) {
  BlockTask task = task_of(parts, resident, masks);
  EngineRun result;
  result.plan = plan_device_memory(task, at::GradMode::is_enabled() ? Recording::Yes : Recording::No);
  task.block_steps = result.plan.block_steps;
  const Tensor w = run_blocks(task, w0);
  result.w = pick(w, resident.outputs);
  result.last = pick(w, resident.last);
  result.steps = task.rows.longest;
  result.evaluations = result.steps * resident.stages;
  result.backend = device_backend();
  return result;
}

}  // namespace fastweights

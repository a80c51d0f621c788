#include "model/block.h"

#include <algorithm>
#include <numeric>

#include "nn/cuda/device_net.h"
#include "nn/features.h"
#include "ops/scan/features.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// indices go where the activations are
void move_block(Block& block, const at::Device& device) {
  block.on_device = {on_device(block.offsets, device), on_device(block.output_steps, device),
                     on_device(block.output_offsets, device)};
  for (Tensor* tensor : {&block.rows, &block.requested, &block.ends}) *tensor = on_device(*tensor, device);
}

Block make_block(const BlockTask& task, int64_t begin, int64_t end) {
  const int64_t samples = task.rows.samples();
  const int64_t* offsets = task.rows.offsets.data_ptr<int64_t>();
  std::vector<int64_t> rows, own_offsets = {0}, steps, output_offsets = {0}, requested, ends;
  Block block;
  const bool whole = begin == 0 && end >= task.rows.longest;
  int64_t listed = 0;
  for (int64_t b = 0; b < samples; ++b) {
    const int64_t length = offsets[b + 1] - offsets[b];
    const int64_t first = std::min(begin, length), last = std::min(end, length);
    for (int64_t n = first; n < last && !whole; ++n) rows.push_back(offsets[b] + n);
    own_offsets.push_back(own_offsets.back() + last - first);
    for (const int64_t step : task.requested[b]) {
      const int64_t index = listed++;
      if ((step <= begin && begin > 0) || step > end) continue;
      block.order.push_back(index);
      requested.push_back(static_cast<int64_t>(steps.size()));
      steps.push_back(step - begin);
    }
    ends.push_back(static_cast<int64_t>(steps.size()));
    steps.push_back(last - first);
    output_offsets.push_back(static_cast<int64_t>(steps.size()));
  }
  if (!whole) block.rows = at::tensor(rows, at::kLong);
  block.offsets = at::tensor(own_offsets, at::kLong);
  block.output_steps = at::tensor(steps, at::kLong);
  block.output_offsets = at::tensor(output_offsets, at::kLong);
  block.requested = at::tensor(requested, at::kLong);
  block.ends = at::tensor(ends, at::kLong);
  if (task.on_gpu()) move_block(block, task.parts->device());
  return block;
}

struct BlockInput {
  Tensor times;      // [R, Z]: when to evaluate the signal, for the stages or once per step; or ...
  Tensor dt;         // [R]
  Samples x = {};    // [R, Z, C] ... the signal itself
  Tensor rows = {};  // [R]: the sample of each row
  int64_t z() const { return times.defined() ? times.size(1) : any().size(1); }
  const Tensor& any() const { return x.value.defined() ? x.value : x.derivative; }
};

BlockInput steps_input(const SampledSteps& steps, const Block& block) {
  if (!block.rows.defined()) return {{}, steps.dt, steps.x, steps.rows};
  const auto own = [&](const Tensor& x) { return x.defined() ? x.index_select(0, block.rows) : x; };
  const Tensor value = own(steps.x.value);
  const bool same = steps.x.derivative.is_same(steps.x.value);
  return {{}, own(steps.dt), {value, same ? value : own(steps.x.derivative)}, own(steps.rows)};
}

BlockInput block_input(const BlockTask& task, const Block& block) {
  if (task.steps) return steps_input(*task.steps, block);
  const Tensor times = task.samples_once() ? task.rows.times.slice(1, 0, 1) : task.rows.times;
  const Tensor dt = task.rows.dt.to(task.parts->type());
  if (!block.rows.defined()) return {times.contiguous(), dt};
  return {times.index_select(0, block.rows), dt.index_select(0, block.rows)};
}

Samples block_signal(const BlockTask& task, const Block& block, const BlockInput& input) {
  const auto flat = [](const Tensor& x) { return x.defined() ? x.reshape({-1, x.size(2)}) : x; };
  if (task.steps) return {flat(input.x.value), flat(input.x.derivative)};
  return task.signal->inside({input.times.reshape({-1}), block.offsets * input.z()});
}

// [R Z, H, ...] to [R, Z or 1, H, ...]
Tensor by_step(const Tensor& x, int64_t z, int64_t rows) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] /= z;
  shape.insert(shape.begin() + 1, z);
  // a part that is the whole would still cost its gradient a copy
  return rows == z ? x.view(shape) : x.view(shape).slice(1, 0, rows);
}

ProgramForms forms_of(const nn::Wiring& wiring) {
  const bool squash =
      wiring.rule.value == ValueForm::Tanh && wiring.value_activation == ValueActivation::Tanh;
  return {wiring.rule.key, squash ? ValueForm::Tanh : ValueForm::Raw, wiring.learning_rate};
}

// one layer whose slow net is small enough to work inside the kernel
ScanOutput collapsed_layer(const BlockTask& task, const Block& block, const BlockInput& input,
                           const Tensor& w) {
  const nn::Wiring& wiring = task.parts->wiring;
  const nn::FastWeightLayer& layer = task.parts->layers[0];
  const nn::FeatureWeights weights = nn::feature_weights(layer, wiring);
  const Tensor z = nn::features(layer, wiring, block_signal(task, block, input));
  const ScanFeatures features = {.z = by_step(z, input.z(), input.z()),
                                 .k_weight = weights.k,
                                 .beta_weight = weights.beta,
                                 .v_weight = weights.v,
                                 .v_mask = task.masks.values[0],
                                 .key_rows = task.shared.keys ? 1 : input.z(),
                                 .value_rows = task.shared.values ? 1 : input.z(),
                                 .dt = input.dt,
                                 .w0 = w,
                                 .offsets = block.offsets,
                                 .output_steps = block.output_steps,
                                 .output_offsets = block.output_offsets};
  return scan_features(features, forms_of(wiring), task.scan);
}

ScanInput with_index(ScanInput input, const BlockInput& from, const Block& block, const Tensor& w) {
  input.dt = from.dt;
  input.w0 = w;
  input.offsets = block.offsets;
  input.output_steps = block.output_steps;
  input.output_offsets = block.output_offsets;
  input.on_device = block.on_device;
  return input;
}

ScanInput programd_on_device(const BlockTask& task, const Block& block, const BlockInput& input, int64_t l,
                             const Samples& x, const Tensor& w) {
  const ModelParts& parts = *task.parts;
  const bool single = parts.layer_count() == 1;
  const Tensor& offsets = block.on_device.offsets;
  const DeviceRows rows = {.mask = task.masks.values[l],
                           .samples = input.rows,
                           .times = input.z(),
                           .steps = offsets.slice(0, offsets.size(0) - 1)};
  const ProgramTensors program =
      nn::program_on_device(parts.layers[l], parts.wiring, x, rows, forms_of(parts.wiring),
                            single ? nn::Collapse::WhereLess : nn::Collapse::Never);
  const int64_t keys = single && task.shared.keys ? 1 : input.z(),
                values = single && task.shared.values ? 1 : input.z();
  ScanInput result;
  result.k = by_step(program.k, input.z(), keys);
  result.v = by_step(program.v, input.z(), values);
  result.beta = by_step(program.beta, input.z(), keys);
  return with_index(result, input, block, w);
}

// keys, values and rates of a layer at all stages
ScanInput programd(const BlockTask& task, const Block& block, const BlockInput& input, int64_t l,
                   const Samples& x, const Tensor& w) {
  const ModelParts& parts = *task.parts;
  Tensor mask = task.masks.values[l];
  if (task.on_gpu()) return programd_on_device(task, block, input, l, x, w);
  if (mask.defined()) {
    const Tensor counts = (block.offsets.slice(0, 1) - block.offsets.slice(0, 0, -1)) * input.z();
    mask = mask.repeat_interleave(counts, 0);
  }
  const nn::Program program = nn::program(parts.layers[l], parts.wiring, x, mask);
  const bool single = parts.layer_count() == 1;
  const int64_t keys = single && task.shared.keys ? 1 : input.z(),
                values = single && task.shared.values ? 1 : input.z();
  ScanInput result;
  result.k = by_step(program.k, input.z(), keys);
  result.v = by_step(program.v, input.z(), values);
  result.beta = by_step(program.beta.squeeze(2), input.z(), keys);
  return with_index(result, input, block, w);
}

// a layer that another one stands upon: W at the outputs, and x of the next layer at all stages
struct Below {
  Tensor w;
  Samples next;
};
Below layer_below(const BlockTask& task, const Block& block, const BlockInput& input, int64_t l,
                  const Samples& x, const Tensor& w) {
  const ModelParts& parts = *task.parts;
  const nn::Query query = layer_query(parts, l, x);
  const bool moving = query.q.derivative.defined();
  ScanInput given = programd(task, block, input, l, x, w);
  std::vector<Tensor> queries = {query.q.value};
  if (moving) queries.push_back(query.q.derivative);
  given.q = by_step(at::stack(queries, 1), input.z(), input.z());
  ScanOptions options = task.scan;
  options.read = parts.wiring.read;
  if (moving) options.reads = ScanReads::Both;
  if (parts.config.layer_input == LayerInput::Update) options.reads = ScanReads::Slopes;
  const ScanOutput out = scan(given, options);
  const auto rows = [&](const Tensor& reads, int64_t which) {
    return reads.select(2, which).reshape({x.value.size(0), parts.wiring.read_width()});
  };
  Samples y = {rows(options.reads == ScanReads::Slopes ? out.dy : out.y, 0), {}};
  // (W q)' = W' q + W q'
  if (moving) y.derivative = rows(out.dy, 0) + rows(out.y, 1);
  return {out.w, next_input(parts, l, query, y)};
}

// W [M, L, H, V, K] at the block's outputs, from W [B, L, H, V, K] at its beginning
Tensor run_block(const BlockTask& task, const Block& block, const Tensor& w) {
  const ModelParts& parts = *task.parts;
  const BlockInput input = block_input(task, block);
  const bool collapse = parts.layer_count() == 1 && !task.on_gpu() &&
                        task.scan.backend != Backend::Reference &&
                        nn::collapses(parts.layers[0], parts.wiring);
  if (collapse) return collapsed_layer(task, block, input, w.select(1, 0)).w.unsqueeze(1);
  Samples x = block_signal(task, block, input);
  std::vector<Tensor> weights;
  for (int64_t l = 0; l < parts.layer_count(); ++l) {
    const Tensor here = w.select(1, l);
    if (l + 1 == parts.layer_count()) {
      weights.push_back(scan(programd(task, block, input, l, x, here), task.scan).w);
      break;
    }
    Below below = layer_below(task, block, input, l, x, here);
    weights.push_back(below.w);
    x = std::move(below.next);
  }
  return at::stack(weights, 1);
}

std::vector<Block> make_blocks(const BlockTask& task) {
  std::vector<Block> blocks;
  const int64_t steps = std::max<int64_t>(task.rows.longest, 1);
  for (int64_t n = 0; n < steps; n += task.block_steps)
    blocks.push_back(make_block(task, n, std::min(n + task.block_steps, steps)));
  return blocks;
}

// row of the blocks' outputs, one block after another, for each requested step
Tensor output_order(const std::vector<Block>& blocks) {
  std::vector<int64_t> order;
  int64_t row = 0;
  for (const Block& block : blocks) {
    for (const int64_t index : block.order) {
      order.resize(std::max<size_t>(order.size(), index + 1));
      order[index] = row++;
    }
  }
  return at::tensor(order, at::kLong);
}

std::vector<Tensor> with_parameters(const Tensor& w, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> result;
  result.reserve(parameters.size() + 1);
  result.push_back(w);
  for (const Tensor& parameter : parameters) result.push_back(parameter);
  return result;
}

// what is made of the data and requires a gradient
std::vector<Tensor> differentiable_data(const BlockTask& task) {
  std::vector<Tensor> data;
  if (task.steps) {
    data = {task.steps->x.value};
    if (!task.steps->x.derivative.is_same(task.steps->x.value)) data.push_back(task.steps->x.derivative);
  } else {
    data = {task.signal->control().coefficients()};
  }
  std::erase_if(data, [](const Tensor& x) { return !x.defined() || !x.requires_grad(); });
  return data;
}

struct Replay {
  BlockTask task;
  std::vector<Block> blocks;
  std::vector<Tensor> begins;      // W at the beginning of each block
  std::vector<Tensor> parameters;  // that a block uses
  Tensor order;
};

std::vector<Tensor> backward(const Replay& replay, const Tensor& grad) {
  const Tensor grads = at::empty_like(grad).index_copy_(0, replay.order, grad);
  std::vector<Tensor> sums(replay.parameters.size());
  Tensor grad_end;
  int64_t last = grads.size(0);
  for (auto i = static_cast<int64_t>(replay.blocks.size()) - 1; i >= 0; --i) {
    const Block& block = replay.blocks[i];
    const at::AutoGradMode on(true);
    const Tensor begin = replay.begins[i].detach().set_requires_grad(true);
    const Tensor w = run_block(replay.task, block, begin);
    const int64_t first = last - block.requested.size(0);
    Tensor grad_w = at::zeros_like(w).index_copy(0, block.requested, grads.slice(0, first, last));
    if (grad_end.defined()) grad_w = grad_w.index_add(0, block.ends, grad_end);
    last = first;
    const std::vector<Tensor> found =
        vector_jacobian({w}, with_parameters(begin, replay.parameters), {grad_w.detach()});
    grad_end = found[0];
    for (size_t k = 0; k < sums.size(); ++k)
      sums[k] = sums[k].defined() ? sums[k].add_(found[k + 1]) : found[k + 1];
  }
  return with_parameters(grad_end, sums);
}

}  // namespace

Block whole_block(const BlockTask& task) {
  return make_block(task, 0, std::max<int64_t>(task.rows.longest, 1));
}

Tensor run_blocks(const BlockTask& task, const Tensor& w0) {
  if (task.whole && task.block_steps >= task.rows.longest)
    return run_block(task, *task.whole, w0).index_select(0, task.whole->requested);
  std::vector<Block> blocks = make_blocks(task);
  if (blocks.size() == 1) return run_block(task, blocks[0], w0).index_select(0, blocks[0].requested);

  Replay replay = {task, std::move(blocks), {}, task.parts->field_parameters(), {}};
  for (const Tensor& data : differentiable_data(task)) replay.parameters.push_back(data);
  const std::vector<Tensor> inputs = with_parameters(w0, replay.parameters);
  const bool record = needs_gradient(inputs);
  std::vector<Tensor> outputs;
  {
    const at::NoGradGuard no_grad;
    Tensor w = w0.detach();
    for (const Block& block : replay.blocks) {
      if (record) replay.begins.push_back(w);
      const Tensor all = run_block(task, block, w);
      outputs.push_back(all.index_select(0, block.requested));
      w = all.index_select(0, block.ends);
    }
  }
  replay.order = on_device(output_order(replay.blocks), w0.device());
  const Tensor result = at::cat(outputs, 0).index_select(0, replay.order);
  const auto shared = std::make_shared<const Replay>(std::move(replay));
  return differentiable("model", {result}, inputs, {},
                        [shared](const std::vector<Tensor>& grads, const std::vector<Tensor>&) {
                          return backward(*shared, grads[0]);
                        })[0];
}

}  // namespace fastweights

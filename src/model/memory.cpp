#include "model/memory.h"

#include <algorithm>

#include "base/error.h"
#include "nn/cuda/device_net.h"
#include "nn/features.h"
#include "ops/scan/cpu/fused.h"
#include "ops/scan/cpu/lanes.h"
#include "ops/scan/cuda/scan.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// beyond path and schedule
constexpr int64_t kOwnLimit = int64_t{768} << 20;
// without a backward pass blocks cost nothing, and small ones stay near the processor
constexpr int64_t kOwnLimitWithoutGradients = int64_t{64} << 20;
// more blocks must be worth it
constexpr double kWorth = 0.97;

// of threads, products and small things
constexpr int64_t kOthers = int64_t{3} << 20;

std::vector<int64_t> sample_steps(const StepRows& rows) {
  const int64_t* o = rows.offsets.data_ptr<int64_t>();
  std::vector<int64_t> steps;
  for (int64_t b = 0; b < rows.samples(); ++b) steps.push_back(o[b + 1] - o[b]);
  return steps;
}

std::vector<int64_t> cut(std::vector<int64_t> steps, int64_t block) {
  for (int64_t& count : steps) count = std::min(count, block);
  return steps;
}

// numbers per time at which the signal is looked at: what the signal and the slow net hold at once, and what
// is left of them for a backward pass together with its gradients
struct Numbers {
  int64_t forward = 0, backward = 0;
};

Numbers numbers_per_time(const BlockTask& task, int64_t parts_of_heads) {
  const ModelParts& parts = *task.parts;
  const int64_t channels = signal_size(parts.config);
  // a piecewise constant signal has no derivative beside its value
  const int64_t sampled = task.signal->piecewise_constant() ? channels : 2 * channels;
  const int64_t grads = task.signal->control().coefficients().requires_grad() ? 2 * channels : 0;
  if (parts.layer_count() == 1 && nn::collapses(parts.layers[0], parts.wiring)) {
    const int64_t features = nn::feature_count(parts.layers[0]);
    const int64_t kept = parts.layers[0].value ? sampled : channels;
    return {sampled + features, kept + (1 + parts_of_heads) * features + grads};
  }
  // a layer's gradients come when those of the layers above have gone
  Numbers numbers = {sampled, sampled + grads};
  for (const nn::FastWeightLayer& layer : parts.layers) {
    const int64_t hidden = layer.program.weight.size(1), made = layer.program.weight.size(0);
    // with a norm and a layer behind the projection, twice as many
    const int64_t values = layer.value ? layer.value->weight.size(0) * (layer.value_norm ? 2 : 1) : 0;
    const int64_t above = layer.ff ? 2 * layer.query.weight.size(0) + layer.ff->in.weight.size(0) : 0;
    // x' goes up through the layers as well: value and derivative of query, reads and of what is made of
    // them, as counted in memory_test.cpp
    const bool moving = layer.ff && parts.config.drive != Drive::X;
    const int64_t derivatives =
        moving ? 25 * layer.query.weight.size(0) + 3 * layer.ff->in.weight.size(0) : 0;
    const int64_t once = 2 * (hidden + made + values) + above + derivatives;
    numbers.forward += once;
    numbers.backward = std::max(numbers.backward, numbers.forward + grads + made + values + hidden + above);
  }
  return numbers;
}

// the path through the data with its knots, and the schedule: times of steps and stages
int64_t fixed_bytes(const BlockTask& task) {
  const Tensor& coefficients = task.signal->control().coefficients();
  const auto bytes = static_cast<int64_t>(at::elementSize(coefficients.scalar_type()));
  return coefficients.numel() * bytes + 16 * task.signal->control().knots().size(0) +
         task.rows.dt.size(0) * (8 * task.rows.times.size(1) + 8 + bytes);
}

}  // namespace

MemoryPlan plan_memory(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const bool back = recording == Recording::Yes;
  const auto bytes = static_cast<int64_t>(at::elementSize(parts.type()));
  const int64_t layers = parts.layer_count(), heads = parts.wiring.heads, width = parts.wiring.key_width,
                stages = task.rows.times.size(1), samples = task.rows.samples();
  const bool collapsed = layers == 1 && nn::collapses(parts.layers[0], parts.wiring);
  const bool once = layers == 1 && task.shared.keys && task.shared.values;
  const int64_t z_rows = once ? 1 : stages, features = collapsed ? nn::feature_count(parts.layers[0]) : 0;
  const std::vector<int64_t> steps = sample_steps(task.rows);
  const int64_t state = samples * layers * heads * width * width * bytes;
  const int64_t lanes = kernels::scan_lanes(bytes), fixed = fixed_bytes(task);
  const Numbers numbers = numbers_per_time(task, (heads + lanes - 1) / lanes);

  const auto needed = [&](int64_t block) {
    const std::vector<int64_t> here = cut(steps, block);
    int64_t times = 0;
    for (const int64_t count : here) times += count * z_rows;
    const ScanMemory memory = fused_memory(here, heads, width, stages, z_rows, features, parts.type());
    const int64_t blocks = (task.rows.longest + block - 1) / std::max<int64_t>(block, 1);
    // one time per step, cut out of those of the stages
    const int64_t looked = once ? 8 * times : 0;
    int64_t forward = kOthers + fixed + looked + memory.scratch + times * bytes * numbers.forward + 4 * state;
    if (blocks > 1) forward += 8 * task.rows.dt.size(0);
    if (!back) return forward;
    forward += memory.kept * layers;
    int64_t backward = kOthers + looked + memory.scratch + times * bytes * numbers.backward +
                       memory.kept * layers + 8 * state;
    // with several blocks path and schedule are needed once more, and W at the beginning of each
    if (blocks > 1) {
      forward += blocks * state;
      backward += fixed + 24 * times + 8 * task.rows.dt.size(0) + blocks * state;
    }
    return std::max(forward, backward);
  };

  const int64_t given = parts.config.solver.memory_limit;
  const int64_t limit = given > 0 ? given : fixed + (back ? kOwnLimit : kOwnLimitWithoutGradients);
  const int64_t longest = std::max<int64_t>(task.rows.longest, 1);
  MemoryPlan plan;
  plan.steps = task.rows.longest;
  plan.checkpoint = scan_stretch(width, lanes, bytes);
  // the longest blocks that fit, in whole stretches if they are longer than one; where none do, those that
  // take the least
  const auto block_of = [&](int64_t blocks) {
    const int64_t block = (longest + blocks - 1) / blocks;
    return block <= plan.checkpoint
               ? block
               : std::min(longest, (block + plan.checkpoint - 1) / plan.checkpoint * plan.checkpoint);
  };
  plan.block_steps = longest;
  plan.bytes = needed(longest);
  for (int64_t blocks = 2; blocks <= longest && plan.bytes > limit; blocks += 1 + blocks / 16) {
    const int64_t total = needed(block_of(blocks));
    if (static_cast<double>(total - kOthers) > kWorth * static_cast<double>(plan.bytes - kOthers)) continue;
    plan.block_steps = block_of(blocks);
    plan.bytes = total;
  }
  plan.blocks = (longest + plan.block_steps - 1) / plan.block_steps;
  return plan;
}

namespace {

// of what is free, for steps; the rest is for data, parameters and what other programs do
constexpr double kDeviceShare = 0.7;

int64_t device_limit(const at::Device& device) {
  static const int64_t kLimit =
      static_cast<int64_t>(kDeviceShare * static_cast<double>(device_memory(device).free));
  return kLimit;
}

// numbers that are held at once for each time and for each step, of all layers, with their gradients
struct HeldNumbers {
  int64_t per_time = 0, per_step = 0;
};

HeldNumbers device_numbers(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const bool back = recording == Recording::Yes;
  const auto stages = static_cast<int64_t>(
      std::holds_alternative<Tableau>(task.scan.method) ? std::get<Tableau>(task.scan.method).stages() : 1);
  HeldNumbers numbers;
  for (const nn::FastWeightLayer& layer : parts.layers) {
    const int64_t made = layer.program.weight.size(0) + (layer.value ? layer.value->weight.size(0) : 0);
    const int64_t hidden = parts.layer_count() == 1 && nn::collapses(layer, parts.wiring)
                               ? 2 * nn::feature_count(layer)
                               : 3 * layer.program.weight.size(1);
    const int64_t above = layer.ff ? 8 * layer.query.weight.size(0) + 3 * layer.ff->in.weight.size(0) : 0;
    if (parts.layer_count() == 1 && nn::fuses_projection(layer, parts.wiring)) {
      // what is made, a scale, and the gradients of both
      numbers.per_time += (back ? 2 : 1) * (made + 1);
    } else {
      // numbers, what is made of them, and the gradients of both
      numbers.per_time += (back ? 4 : 2) * made + (back ? 2 : 1) * (hidden + above);
    }
    numbers.per_step += back ? stages * parts.wiring.heads * parts.wiring.key_width : 0;
  }
  return numbers;
}

}  // namespace

MemoryPlan plan_device_memory(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const Tensor& x = task.steps->x.value.defined() ? task.steps->x.value : task.steps->x.derivative;
  const HeldNumbers numbers = device_numbers(task, recording);
  const std::vector<int64_t> steps = sample_steps(task.rows);
  const int64_t z = x.size(1), bytes = sizeof(float), width = parts.wiring.key_width;
  const int64_t matrix = parts.layer_count() * parts.wiring.heads * width * width * bytes;
  const int64_t state = task.rows.samples() * matrix;
  const int64_t given = parts.config.solver.memory_limit;
  const int64_t limit = given > 0 ? given : device_limit(parts.device());
  const auto needed = [&](int64_t block) {
    int64_t here = 0;
    for (const int64_t count : steps) here += std::min(count, block);
    const int64_t blocks = (task.rows.longest + block - 1) / std::max<int64_t>(block, 1);
    const int64_t kept = recording == Recording::Yes
                             ? here / kernels::kCudaStretch * matrix + (blocks + 8) * state
                             : 4 * state;
    return here * bytes * (z * numbers.per_time + numbers.per_step) + kept;
  };
  const int64_t longest = std::max<int64_t>(task.rows.longest, 1);
  MemoryPlan plan = {.steps = task.rows.longest, .checkpoint = kernels::kCudaStretch};
  plan.block_steps = longest;
  plan.bytes = needed(longest);
  for (int64_t block = longest; block > 1 && plan.bytes > limit; block = (block + 1) / 2) {
    const int64_t total = needed((block + 1) / 2);
    if (total >= plan.bytes) break;
    plan.block_steps = (block + 1) / 2;
    plan.bytes = total;
  }
  plan.blocks = (longest + plan.block_steps - 1) / plan.block_steps;
  return plan;
}

std::string MemoryPlan::message() const {
  const double megabytes = static_cast<double>(bytes) / (1 << 20);
  const std::string cut = blocks == 1
                              ? fastweights::message(steps, " steps in one block")
                              : fastweights::message(steps, " steps in ", blocks, " blocks of ", block_steps);
  return fastweights::message(cut, ", a state kept every ", checkpoint, " steps, about ",
                              static_cast<int64_t>(megabytes + 0.5), " MB beyond the data");
}

}  // namespace fastweights

#include "model/memory.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "nn/cuda/device_net.h"
#include "nn/features.h"
#include "ops/scan/cpu/fused.h"
#include "ops/scan/cpu/lanes.h"
#include "ops/scan/cuda/scan.h"

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

// the cost of blocks of some length, by backend
struct CostModel {
  std::function<int64_t(int64_t block)> bytes;
  int64_t overhead = 0;             // bytes that no block length changes
  double gain = 1;                  // shorter blocks must take at most this share of the rest
  int64_t limit = 0;                // bytes
  int64_t checkpoint = 0;           // steps between two kept states
  std::vector<int64_t> candidates;  // block lengths to try, falling
};

int64_t longest_of(const BlockTask& task) { return std::max<int64_t>(task.rows.longest, 1); }

int64_t block_count(const BlockTask& task, int64_t block) {
  return (task.rows.longest + block - 1) / std::max<int64_t>(block, 1);
}

// the longest blocks that fit; where none do, those that take the least
MemoryPlan cheapest(const BlockTask& task, const CostModel& cost) {
  const int64_t longest = longest_of(task);
  MemoryPlan plan = {.steps = task.rows.longest, .block_steps = longest, .checkpoint = cost.checkpoint};
  plan.bytes = cost.bytes(longest);
  for (const int64_t block : cost.candidates) {
    if (plan.bytes <= cost.limit) break;
    const int64_t total = cost.bytes(block);
    if (static_cast<double>(total - cost.overhead) >
        cost.gain * static_cast<double>(plan.bytes - cost.overhead))
      continue;
    plan.block_steps = block;
    plan.bytes = total;
  }
  plan.blocks = (longest + plan.block_steps - 1) / plan.block_steps;
  return plan;
}

// values per evaluation of the signal: what the signal and the slow net hold at once, and what is left of
// them for a backward pass together with its gradients
struct ValuesPerTime {
  int64_t forward = 0, backward = 0;
};

// what a block samples of the signal, or copies of a sampled one
struct SignalValues {
  int64_t sampled = 0;  // per time
  int64_t gradients = 0;
};

SignalValues signal_values(const BlockTask& task, int64_t blocks) {
  const int64_t channels = signal_size(task.parts->config);
  if (task.steps) {
    const Samples& x = task.steps->x;
    const bool both = x.value.defined() && x.derivative.defined() && !x.derivative.is_same(x.value);
    return {blocks > 1 ? (both ? 2 : 1) * channels : 0, 0};
  }
  // a piecewise constant signal has no derivative beside its value
  return {task.signal->piecewise_constant() ? channels : 2 * channels,
          task.signal->control().coefficients().requires_grad() ? 2 * channels : 0};
}

// x' goes up through the layers as well: value and derivative of query, reads and of what is made of them, as
// counted in memory_test.cpp
constexpr int64_t kMovingQueryCopies = 25, kMovingFeedForwardCopies = 3;

ValuesPerTime values_per_time(const BlockTask& task, int64_t head_groups, int64_t blocks) {
  const ModelParts& parts = *task.parts;
  const auto [sampled, grads] = signal_values(task, blocks);
  if (parts.layer_count() == 1 && nn::collapses(parts.layers[0], parts.wiring)) {
    const int64_t features = nn::feature_count(parts.layers[0]);
    const int64_t kept = parts.layers[0].value ? sampled : std::min(sampled, signal_size(parts.config));
    return {sampled + features, kept + (1 + head_groups) * features + grads};
  }
  // a layer's gradients come when those of the layers above have gone
  ValuesPerTime values = {sampled, sampled + grads};
  for (const nn::FastWeightLayer& layer : parts.layers) {
    const int64_t hidden = layer.program.weight.size(1), made = layer.program.weight.size(0);
    // with a norm and a layer after the projection, twice as many
    const int64_t projected = layer.value ? layer.value->weight.size(0) * (layer.value_norm ? 2 : 1) : 0;
    const int64_t query = layer.query.weight.size(0), ff = layer.ff ? layer.ff->in.weight.size(0) : 0;
    const int64_t above = layer.ff ? 2 * query + ff : 0;
    const bool moving = layer.ff && parts.config.drive != Drive::X;
    const int64_t derivatives = moving ? kMovingQueryCopies * query + kMovingFeedForwardCopies * ff : 0;
    values.forward += 2 * (hidden + made + projected) + above + derivatives;
    values.backward = std::max(values.backward, values.forward + grads + made + projected + hidden + above);
  }
  return values;
}

// the path through the data with its knots, and the schedule: times of steps and stages
int64_t fixed_bytes(const BlockTask& task) {
  if (task.steps) return 0;
  const Tensor& coefficients = task.signal->control().coefficients();
  const auto bytes = static_cast<int64_t>(at::elementSize(coefficients.scalar_type()));
  return coefficients.numel() * bytes + 16 * task.signal->control().knots().size(0) +
         task.rows.dt.size(0) * (8 * task.rows.times.size(1) + 8 + bytes);
}

// copies of W that a forward and a backward pass hold besides those at checkpoints
constexpr int64_t kForwardStates = 4, kBackwardStates = 8;
// bytes of an int64 index or a float64 time
constexpr int64_t kWord = 8;

int64_t cpu_bytes(const BlockTask& task, int64_t block, Recording recording) {
  const ModelParts& parts = *task.parts;
  const auto bytes = static_cast<int64_t>(at::elementSize(parts.type()));
  const int64_t layers = parts.layer_count(), heads = parts.wiring.heads, width = parts.wiring.key_width;
  const bool collapsed = layers == 1 && nn::collapses(parts.layers[0], parts.wiring);
  const int64_t z_rows = task.samples_once() ? 1 : task.stages,
                features = collapsed ? nn::feature_count(parts.layers[0]) : 0;
  const int64_t state = task.rows.samples() * layers * heads * width * width * bytes;
  const int64_t lanes = kernels::scan_lanes(bytes), fixed = fixed_bytes(task);
  const std::vector<int64_t> here = cut(sample_steps(task.rows), block);
  int64_t times = 0;
  for (const int64_t count : here) times += count * z_rows;
  const ScanMemory memory = fused_memory(here, heads, width, task.stages, z_rows, features, parts.type());
  const int64_t blocks = block_count(task, block), rows = task.steps ? 0 : task.rows.dt.size(0);
  const ValuesPerTime values = values_per_time(task, (heads + lanes - 1) / lanes, blocks);
  // one time per step, cut out of those of the stages
  const int64_t step_times = task.samples_once() && !task.steps ? kWord * times : 0;
  int64_t forward =
      kOthers + fixed + step_times + memory.scratch + times * bytes * values.forward + kForwardStates * state;
  if (blocks > 1) forward += kWord * rows;
  if (recording == Recording::No) return forward;
  forward += memory.kept * layers;
  int64_t backward = kOthers + step_times + memory.scratch + times * bytes * values.backward +
                     memory.kept * layers + kBackwardStates * state;
  // several blocks need path and schedule again, their rows and times, and W at the beginning of each
  if (blocks > 1) {
    forward += blocks * state;
    backward += fixed + 3 * kWord * times + kWord * rows + blocks * state;
  }
  return std::max(forward, backward);
}

CostModel cpu_cost(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const auto bytes = static_cast<int64_t>(at::elementSize(parts.type()));
  const int64_t given = parts.config.solver.memory_limit, longest = longest_of(task);
  CostModel cost;
  cost.bytes = [&task, recording](int64_t block) { return cpu_bytes(task, block, recording); };
  cost.overhead = kOthers;
  cost.gain = kWorth;
  cost.limit =
      given > 0 ? given
                : fixed_bytes(task) + (recording == Recording::Yes ? kOwnLimit : kOwnLimitWithoutGradients);
  cost.checkpoint = scan_stretch(parts.wiring.key_width, kernels::scan_lanes(bytes), bytes);
  // in whole stretches between checkpoints if blocks are longer than one
  for (int64_t blocks = 2; blocks <= longest; blocks += 1 + blocks / 16) {
    const int64_t block = (longest + blocks - 1) / blocks, stretch = cost.checkpoint;
    cost.candidates.push_back(
        block <= stretch ? block : std::min(longest, (block + stretch - 1) / stretch * stretch));
  }
  return cost;
}

// activations that are held at once for each time and for each step, of all layers, with their gradients
struct HeldValues {
  int64_t per_time = 0, per_step = 0;
};

HeldValues gpu_values(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const bool back = recording == Recording::Yes;
  HeldValues values;
  for (const nn::FastWeightLayer& layer : parts.layers) {
    const int64_t made = layer.program.weight.size(0) + (layer.value ? layer.value->weight.size(0) : 0);
    const int64_t hidden = parts.layer_count() == 1 && nn::collapses(layer, parts.wiring)
                               ? 2 * nn::feature_count(layer)
                               : 3 * layer.program.weight.size(1);
    const int64_t above = layer.ff ? 8 * layer.query.weight.size(0) + 3 * layer.ff->in.weight.size(0) : 0;
    if (parts.layer_count() == 1 && nn::fuses_projection(layer, parts.wiring)) {
      // keys, values and rates, a scale, and the gradients of both
      values.per_time += (back ? 2 : 1) * (made + 1);
    } else {
      // projections, keys, values and rates, and the gradients of all
      values.per_time += (back ? 4 : 2) * made + (back ? 2 : 1) * (hidden + above);
    }
    values.per_step += back ? task.stages * parts.wiring.heads * parts.wiring.key_width : 0;
  }
  return values;
}

int64_t gpu_bytes(const BlockTask& task, int64_t block, Recording recording) {
  const ModelParts& parts = *task.parts;
  const Samples& x = task.steps->x;
  const HeldValues values = gpu_values(task, recording);
  const int64_t z = (x.value.defined() ? x.value : x.derivative).size(1), bytes = sizeof(float),
                width = parts.wiring.key_width;
  const int64_t matrix = parts.layer_count() * parts.wiring.heads * width * width * bytes;
  const int64_t state = task.rows.samples() * matrix;
  int64_t here = 0;
  for (const int64_t count : cut(sample_steps(task.rows), block)) here += count;
  const int64_t kept = recording == Recording::Yes ? here / kernels::kCudaStretch * matrix +
                                                         (block_count(task, block) + kBackwardStates) * state
                                                   : kForwardStates * state;
  return here * bytes * (z * values.per_time + values.per_step) + kept;
}

CostModel gpu_cost(const BlockTask& task, Recording recording) {
  const int64_t given = task.parts->config.solver.memory_limit;
  CostModel cost;
  cost.bytes = [&task, recording](int64_t block) { return gpu_bytes(task, block, recording); };
  cost.limit = given > 0 ? given : task.parts->device_limit;
  cost.checkpoint = kernels::kCudaStretch;
  for (int64_t block = longest_of(task); block > 1; block = (block + 1) / 2)
    cost.candidates.push_back((block + 1) / 2);
  return cost;
}

}  // namespace

MemoryPlan plan_memory(const BlockTask& task, Recording recording) {
  return cheapest(task, task.on_gpu() ? gpu_cost(task, recording) : cpu_cost(task, recording));
}

std::string MemoryPlan::message() const {
  const double megabytes = static_cast<double>(bytes) / (1 << 20);
  const std::string cut = blocks == 1
                              ? fastweights::message(steps, " steps in one block")
                              : fastweights::message(steps, " steps in ", blocks, " blocks of ", block_steps);
  return fastweights::message(cut, ", a state kept every ", checkpoint, " steps, about ",
                              std::llround(megabytes), " MB beyond the data");
}

}  // namespace fastweights

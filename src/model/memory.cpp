#include "model/memory.h"

#include <algorithm>

#include "fastweights/error.h"
#include "nn/features.h"
#include "ops/scan/fused.h"
#include "ops/scan/lanes.h"

namespace fastweights {
namespace {

constexpr int64_t kOwnLimit = int64_t{768} << 20;
// without a backward pass blocks cost nothing, and small ones stay in the cache
constexpr int64_t kOwnLimitWithoutGradients = int64_t{64} << 20;

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

// numbers per time at which the signal is looked at: what the signal, the slow net and, in a backward pass,
// their gradients hold at once
double numbers_per_time(const BlockTask& task, Recording recording) {
  const ModelParts& parts = *task.parts;
  const bool back = recording == Recording::Yes;
  const int64_t channels = signal_size(parts.config);
  const auto grads = task.signal.control().coefficients().requires_grad() ? 2 * channels : 0;
  if (parts.layer_count() == 1 && nn::collapses(parts.layers[0], parts.wiring)) {
    const int64_t features = nn::feature_count(parts.layers[0]);
    return static_cast<double>(2 * channels + (back ? 2 * features + grads : features));
  }
  double numbers = static_cast<double>(2 * channels + (back ? grads : 0));
  for (const nn::FastWeightLayer& layer : parts.layers) {
    const int64_t hidden = layer.programme.weight.size(1), made = layer.programme.weight.size(0);
    const int64_t values = layer.value ? layer.value->weight.size(0) : 0;
    const int64_t above = layer.ff ? 4 * layer.query.weight.size(0) + 2 * layer.ff->in.weight.size(0) : 0;
    numbers += static_cast<double>((back ? 3 : 2) * (2 * hidden + 2 * made + 2 * values + above));
  }
  return numbers;
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
  const double per_time = numbers_per_time(task, recording) * static_cast<double>(bytes) + 16;

  const auto needed = [&](int64_t block) {
    const std::vector<int64_t> here = cut(steps, block);
    int64_t rows = 0;
    for (const int64_t count : here) rows += count;
    const ScanMemory memory = fused_memory(here, heads, width, stages, z_rows, features, parts.type());
    const int64_t blocks = (task.rows.longest + block - 1) / std::max<int64_t>(block, 1);
    // the whole schedule, W at the beginning of each block, and one block
    int64_t total = task.rows.dt.size(0) * (8 * stages + 16 + bytes) + memory.scratch + 4 * state;
    if (back) total += (blocks > 1 ? blocks * state : 0) + memory.kept * layers;
    return total + static_cast<int64_t>(per_time * static_cast<double>(rows * z_rows));
  };

  const int64_t given = parts.config.solver.memory_limit;
  const int64_t limit = given > 0 ? given : back ? kOwnLimit : kOwnLimitWithoutGradients;
  const int64_t longest = std::max<int64_t>(task.rows.longest, 1);
  MemoryPlan plan;
  plan.steps = task.rows.longest;
  plan.checkpoint = scan_stretch(width, kernels::scan_lanes(bytes), bytes);
  // the longest blocks that fit, in whole stretches; where not even one does, that one
  int64_t stretches = (longest + plan.checkpoint - 1) / plan.checkpoint;
  int64_t blocks = 1;
  while (blocks < stretches && needed((stretches + blocks - 1) / blocks * plan.checkpoint) > limit) ++blocks;
  plan.block_steps = std::min(longest, (stretches + blocks - 1) / blocks * plan.checkpoint);
  plan.blocks = (longest + plan.block_steps - 1) / plan.block_steps;
  plan.bytes = needed(plan.block_steps);
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

#include <gtest/gtest.h>

#include "fastweights/model.h"
#include "fastweights/optimise.h"
#include "model/programmer_config.h"
#include "support/counted_heap.h"
#include "support/support.h"

/// What a training step of the fused engine holds, against its plan.

namespace fastweights::testing {
namespace {

struct Task {
  Model model;
  ModelInput input;

  void step() {
    const ModelOutput output = model.forward(input);
    gradients(output.outputs.square().sum(), model.parameter_tensors());
  }
};

enum class Kind { Spline, Deep, DeepValueNorm, Windows, Flow, DeepFlow };

// a few hundred megabytes in one block
Task large_task(int64_t memory_limit, Kind kind = Kind::Spline) {
  ProgrammerConfig config;
  config.channels = 15;
  config.outputs = 3;
  config.drive = Drive::DerivativeKeys;
  config.control.path = NaturalCubic{};
  config.hidden_size = 64;
  config.heads = 8;
  const bool flow = kind == Kind::Flow || kind == Kind::DeepFlow;
  const bool deep = kind == Kind::Deep || kind == Kind::DeepValueNorm || kind == Kind::DeepFlow;
  if (deep) {
    config.layers = 2;
    config.hidden_size = 32;
    config.drive = kind == Kind::DeepValueNorm ? Drive::DerivativeKeys : Drive::X;
    config.value_norm = kind == Kind::DeepValueNorm;
  }
  if (kind == Kind::Windows) {
    config.drive = Drive::X;
    config.rule = "delta_post";
    config.control.path = LogSignatures{.depth = 1, .windows = PointWindows{1, WindowTail::Keep}};
  }
  config.solver.method = flow ? Method(Flow{}) : Method(rk4());
  config.solver.memory_limit = memory_limit;
  config.backend = Backend::Cpu;
  const int64_t samples = deep ? 150 : 300, points = kind == Kind::Windows ? 1501 : 301;
  const Tensor values = random({samples, points, 15}, 1).to(at::kFloat);
  return {Model(config), {.series = shared_times(at::arange(points, at::kDouble), values)}};
}

void expect_peak_near_plan(Kind kind, const std::vector<int64_t>& limits) {
  if (!heap_is_counted()) GTEST_SKIP() << "memory cannot be counted here";
  large_task(0, kind).step();
  int64_t blocks = 0;
  for (const int64_t limit : limits) {
    Task task = large_task(limit, kind);
    const MemoryPlan plan = *task.model.plan(task.input);
    forget_heap_peak();
    const int64_t before = heap_in_use();
    task.step();
    const auto peak = static_cast<double>(heap_peak() - before);
    EXPECT_LT(peak, 1.1 * static_cast<double>(plan.bytes)) << plan.message();
    EXPECT_GT(peak, 0.9 * static_cast<double>(plan.bytes)) << plan.message();
    EXPECT_TRUE(limit == 0 || plan.bytes <= limit) << plan.message();
    EXPECT_GT(plan.blocks, blocks);
    blocks = plan.blocks;
  }
}

TEST(Memory, PeakOfATrainingStepIsThePlans) {
  expect_peak_near_plan(Kind::Spline, {0, int64_t{100} << 20, int64_t{70} << 20});
}

TEST(Memory, PeakOfATrainingStepInADeepModelIsThePlans) {
  expect_peak_near_plan(Kind::Deep, {0, int64_t{100} << 20});
}

TEST(Memory, PeakOfATrainingStepWithNormalisedValuesIsThePlans) {
  expect_peak_near_plan(Kind::DeepValueNorm, {0, int64_t{200} << 20});
}

TEST(Memory, PeakOfATrainingStepOnWindowsIsThePlans) {
  expect_peak_near_plan(Kind::Windows, {0, int64_t{150} << 20});
}

TEST(Memory, PeakOfATrainingStepWithTheFlowIsThePlans) {
  expect_peak_near_plan(Kind::Flow, {0, int64_t{50} << 20});
  expect_peak_near_plan(Kind::DeepFlow, {0, int64_t{60} << 20});
}

TEST(Memory, DoesNotGrowFromStepToStep) {
  if (!heap_is_counted()) GTEST_SKIP() << "memory cannot be counted here";
  Task task = large_task(0);
  task.step();
  const int64_t before = heap_in_use();
  for (int i = 0; i < 5; ++i) task.step();
  // what a step holds is hundreds of megabytes; nothing of it stays
  EXPECT_LT(heap_in_use() - before, 64 << 10);
}

}  // namespace
}  // namespace fastweights::testing

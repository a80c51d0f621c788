#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>

#include "fastweights/model.h"
#include "fastweights/optimise.h"
#include "support/support.h"

/// What a training step of the fused engine holds, against its plan.

namespace fastweights::testing {
namespace {

double status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stod(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

// a sanitizer's own memory is not ours
bool measurable() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#else
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  return static_cast<bool>(reset);
#endif
}

struct Task {
  FastWeightProgrammer model;
  ModelInput input;

  void step() {
    const ModelOutput output = model.forward(input);
    gradients(output.outputs.square().sum(), model.parameter_tensors());
  }
};

enum class Kind { Spline, Deep, Windows };

// a few hundred megabytes in one block
Task large_task(int64_t memory_limit, Kind kind = Kind::Spline) {
  ModelConfig config = {.channels = 15, .outputs = 3, .rule = "delta_pre", .drive = Drive::DerivativeKeys};
  config.control.kind = ControlKind::NaturalCubic;
  config.hidden_size = 64;
  config.heads = 8;
  if (kind == Kind::Deep) {
    config.drive = Drive::X;
    config.layers = 2;
    config.hidden_size = 32;
  }
  if (kind == Kind::Windows) {
    config.drive = Drive::X;
    config.rule = "delta_post";
    config.control = {.kind = ControlKind::LogSignature, .depth = 1, .window_increments = 1};
  }
  config.solver.memory_limit = memory_limit;
  config.backend = Backend::Cpu;
  const int64_t samples = kind == Kind::Deep ? 150 : 300, points = kind == Kind::Windows ? 1501 : 301;
  const Tensor values = random({samples, points, 15}, 1).to(at::kFloat);
  return {FastWeightProgrammer(config), {.series = shared_times(at::arange(points, at::kDouble), values)}};
}

// what is freed goes back to the system at once, so that only what is held counts
void return_freed_memory() {
  constexpr int kLarge = 128 * 1024;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
  malloc_trim(0);
}

void expect_peak_near_plan(Kind kind, const std::vector<int64_t>& limits) {
  if (!measurable()) GTEST_SKIP() << "peak memory cannot be measured here";
  large_task(0, kind).step();
  int64_t blocks = 0;
  for (const int64_t limit : limits) {
    Task task = large_task(limit, kind);
    const MemoryPlan plan = *task.model.plan(task.input);
    return_freed_memory();
    ASSERT_TRUE(measurable());
    const double before = status_bytes("VmRSS");
    task.step();
    const double peak = status_bytes("VmHWM") - before;
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

TEST(Memory, PeakOfATrainingStepOnWindowsIsThePlans) {
  expect_peak_near_plan(Kind::Windows, {0, int64_t{150} << 20});
}

TEST(Memory, DoesNotGrowFromStepToStep) {
  if (!measurable()) GTEST_SKIP() << "memory cannot be measured here";
  Task task = large_task(0);
  task.step();
  return_freed_memory();
  const double before = status_bytes("VmRSS");
  for (int i = 0; i < 5; ++i) task.step();
  return_freed_memory();
  // what a step holds is hundreds of megabytes; nothing of it stays
  EXPECT_LT(status_bytes("VmRSS") - before, 4 << 20);
}

}  // namespace
}  // namespace fastweights::testing

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "kernels/instruction_set.h"
#include "ops/scan/cpu/fused.h"
#include "ops/scan/cpu/kernel.h"
#include "ops/scan_cases.h"
#include "support/support.h"

/// Who computes, on how many threads, and with how much memory.

namespace fastweights::testing {
namespace {

// the test program runs once for every instruction set
TEST(ScanBackend, TheForcedInstructionSetRuns) {
  const char* forced = std::getenv("FASTWEIGHTS_ISA");
  const std::string expected = forced ? forced : kernels::name(kernels::instruction_set());
  const ScanCase given = {}, made = {.made = MadeOf()};
  for (const ScanCase& c : {given, made}) {
    EXPECT_EQ(run(c, at::kFloat, Backend::Cpu).backend, "cpu-" + expected);
    EXPECT_EQ(run(c, at::kDouble, Backend::Auto).backend, "cpu-" + expected);
    EXPECT_EQ(run(c, at::kDouble, Backend::Reference).backend, "reference");
  }
  const int64_t bytes = expected == "avx512" ? 64 : expected == "avx2" ? 32 : 16;
  EXPECT_EQ(kernels::scan_lanes(4) * 4, bytes);
  EXPECT_EQ(kernels::scan_lanes(8) * 8, bytes);
}

double own_processor_time() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// a second thread takes work off this one, however busy the processor is otherwise: there is enough of it
// for a thread that wakes up late
TEST(ScanBackend, MoreThanOneThreadWorks) {
  const int64_t samples = 64, steps = 400, rows = samples * steps, heads = 4, width = 64;
  ScanInput input;
  input.k = at::full({rows, 1, heads, width}, 1.0f / 64);
  input.v = at::ones({rows, 1, heads, width});
  input.beta = at::full({rows, 1, heads}, 0.5f);
  input.dt = at::ones({rows});
  input.w0 = at::zeros({samples, heads, width, width});
  input.offsets = at::arange(samples + 1, at::kLong) * steps;
  const auto time = [&](int threads) {
    const Threads count(threads);
    const double begin = own_processor_time();
    scan(input, {.rule = delta_pre(), .method = euler(), .backend = Backend::Cpu});
    return own_processor_time() - begin;
  };
  const double together = std::min({time(2), time(2), time(2)}), alone = time(1);
  EXPECT_LT(together, 0.9 * alone) << "alone: " << alone << " s";
}

TEST(ScanBackend, RepeatedCallsDoNotGrow) {
  ScanCase given = {.width = 16, .heads = 4, .steps = {70, 65, 3, 0}, .queries = 2, .reads = ScanReads::Both};
  ScanCase made = given;
  made.queries = 0;
  made.made = MadeOf{.mask = Mask::Factors};
  for (const ScanCase& c : {given, made}) {
    const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
    for (int i = 0; i < 3; ++i) run(c, at::kFloat, Backend::Cpu);
    const size_t before = used();
    for (int i = 0; i < 20; ++i) run(c, at::kFloat, Backend::Cpu);
    // less than one matrix of one sample per call
    EXPECT_LT(static_cast<double>(used()), static_cast<double>(before) + 20 * 4 * 16 * 16 * 4) << c.name();
  }
}

// what is promised before a call is what it takes: kept matrices grow with the steps, scratch does not
TEST(ScanBackend, MemoryIsKnownBeforehand) {
  const auto of = [](const std::vector<int64_t>& steps) {
    return fused_memory(steps, /*heads=*/4, /*width=*/16, /*stages=*/4, /*z_rows=*/1, /*features=*/3,
                        at::kFloat);
  };
  EXPECT_EQ(of({0, 0}).kept, 0);
  EXPECT_GT(of({640}).kept, 0);
  EXPECT_EQ(of({6400}).kept, 10 * of({640}).kept);
  EXPECT_EQ(of({6400}).scratch, of({640}).scratch);
  EXPECT_GT(of({640}).scratch, 0);
}

}  // namespace
}  // namespace fastweights::testing

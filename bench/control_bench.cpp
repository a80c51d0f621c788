#include <benchmark/benchmark.h>

#include <cmath>

#include "fastweights/control.h"
#include "gate.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// synthetic series of the size of PhysioNet 2019: 40,336 series of 2 to 72 rows x 34 channels, 80 % missing
RaggedSeries sepsis_like(at::ScalarType type) {
  constexpr int64_t kSeries = 40336, kChannels = 34;
  at::manual_seed(1);
  Tensor offsets = at::zeros({kSeries + 1}, at::kLong);
  const Tensor lengths = at::randint(2, 73, {kSeries}, at::kLong);
  offsets.slice(0, 1).copy_(lengths.cumsum(0));
  const int64_t rows = offsets[-1].item<int64_t>();
  const Tensor starts = offsets.slice(0, 0, -1).repeat_interleave(lengths);
  const Tensor times = (at::arange(rows, at::kLong) - starts + 1).to(at::kDouble);
  Tensor values = at::randn({rows, kChannels}, type);
  values.masked_fill_(at::rand({rows, kChannels}) < 0.8, std::nan(""));
  return {values, times, offsets};
}

void natural_cubic_with_missing(benchmark::State& state, at::ScalarType type, EndFilling filling) {
  const RaggedSeries series = sepsis_like(type);
  for (auto _ : state) {
    const Control control(series, {.interpolation = NaturalCubic{filling}});
    benchmark::DoNotOptimize(control.coefficients().data_ptr());
  }
  state.counters["series/s"] = benchmark::Counter(static_cast<double>(series.samples()),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(natural_cubic_with_missing, float32_whole_gap, at::kFloat, EndFilling::WholeGap)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(natural_cubic_with_missing, float64_whole_gap, at::kDouble, EndFilling::WholeGap)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(natural_cubic_with_missing, float64_end_point, at::kDouble, EndFilling::EndPoint)
    ->Unit(benchmark::kSecond)
    ->UseRealTime();

// complete series of the size of a Speech Commands batch, sampled at all stage times of one rk4 step per
// interval
void sample_at_stage_times(benchmark::State& state, Interpolation interpolation) {
  at::manual_seed(2);
  const Tensor times = at::arange(161, at::kDouble);
  const RaggedSeries series = shared_times(times, at::randn({1024, 161, 21}, at::kFloat));
  const Control control(series, {.interpolation = interpolation});
  const Tensor stages = at::linspace(0, 160, 481, at::kDouble);
  for (auto _ : state) benchmark::DoNotOptimize(control.sample(stages).value.data_ptr());
}
BENCHMARK_CAPTURE(sample_at_stage_times, natural_cubic, NaturalCubic{})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(sample_at_stage_times, linear, Linear{})->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace fastweights

int main(int argc, char** argv) { return fastweights::bench::run_gated(argc, argv); }

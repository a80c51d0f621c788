#include <benchmark/benchmark.h>

#include "fastweights/control.h"
#include "gate.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// synthetic series of the size of EigenWorms: 181 series x 4,495 windows of 5 points x 7 channels
RaggedSeries worms_like(at::ScalarType type) {
  at::manual_seed(1);
  const int64_t length = 4495 * 4 + 1;
  return shared_times(at::arange(length, at::kDouble), at::randn({181, length, 7}, type));
}

void windows_forward(benchmark::State& state, at::ScalarType type) {
  const RaggedSeries series = worms_like(type);
  const LogSignatureOptions options = {.depth = state.range(0)};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        logsignature_windows(series, PointWindows{4, WindowTail::Drop}, options).values.data_ptr());
  }
}
BENCHMARK_CAPTURE(windows_forward, float64, at::kDouble)
    ->DenseRange(1, 4)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(windows_forward, float32, at::kFloat)
    ->DenseRange(2, 3)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void windows_forward_and_backward(benchmark::State& state) {
  RaggedSeries series = worms_like(at::kDouble);
  series.values.set_requires_grad(true);
  const LogSignatureOptions options = {.depth = state.range(0)};
  const at::AutoGradMode on(true);
  for (auto _ : state) {
    const Tensor values = logsignature_windows(series, PointWindows{4, WindowTail::Drop}, options).values;
    benchmark::DoNotOptimize(
        vector_jacobian({values}, {series.values}, {at::ones_like(values)})[0].data_ptr());
  }
}
BENCHMARK(windows_forward_and_backward)->DenseRange(2, 3)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace fastweights

int main(int argc, char** argv) { return fastweights::bench::run_gated(argc, argv); }

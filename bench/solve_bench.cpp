#include <benchmark/benchmark.h>

#include <chrono>

#include "fastweights/solve.h"
#include "gate.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

constexpr int64_t kSteps = 1000;

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Tensor tiny_field(const Tensor& y) { return at::mul(y, -0.5); }

// what the field costs alone: the same calls in a chain, without a solver
double field_alone(const Tensor& y0, bool with_gradient) {
  const auto start = Clock::now();
  Tensor y = y0;
  for (int64_t i = 0; i < 4 * kSteps; ++i) y = tiny_field(y);
  if (with_gradient) benchmark::DoNotOptimize(vector_jacobian({y}, {y0}, {at::ones_like(y)}));
  return microseconds_since(start);
}

double whole_solve(const Tensor& y0, const SolveOptions& options, bool with_gradient) {
  const Field field = [](const Time&, const Tensor& y) { return tiny_field(y); };
  const Tensor ts = at::tensor({0.0, 1.0}, at::kDouble);
  const auto start = Clock::now();
  const Tensor y = solve(field, y0, ts, options).ys;
  if (with_gradient) benchmark::DoNotOptimize(vector_jacobian({y}, {y0}, {at::ones_like(y)}));
  return microseconds_since(start);
}

// time per rk4 step beyond the field itself, both measured in turns
void rk4_overhead(benchmark::State& state, bool with_gradient, Gradient mode) {
  const at::AutoGradMode record(with_gradient);
  const Tensor y0 = at::ones({4, 8}, at::kDouble).set_requires_grad(with_gradient);
  SolveOptions options = {.method = rk4(), .steps = FixedSteps{1.0 / kSteps}, .gradient = mode};
  double solver = 0, field = 0;
  for (auto _ : state) {
    const double whole = whole_solve(y0, options, with_gradient);
    field += field_alone(y0, with_gradient);
    solver += whole;
    state.SetIterationTime(whole * 1e-6);
  }
  const double count = static_cast<double>(state.iterations() * kSteps);
  state.counters["us_per_step"] = solver / count;
  state.counters["field_us_per_step"] = field / count;
  state.counters["overhead_us_per_step"] = (solver - field) / count;
}
BENCHMARK_CAPTURE(rk4_overhead, without_gradients, false, Gradient::Exact)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rk4_overhead, forward_and_exact_backward, true, Gradient::Exact)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rk4_overhead, forward_and_checkpointed_backward, true, Gradient::Checkpointed)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fastweights

int main(int argc, char** argv) { return fastweights::bench::run_gated(argc, argv); }

#include <cmath>

#include "fastweights/environment.h"
#include "fastweights/solve.h"
#include "fastweights/tensor.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;

const std::string kTraces = std::string(FASTWEIGHTS_GOLDEN_DEFAULT) + "/fwp_eigenworms/";

// a field that writes down when it is asked
struct Recorder {
  std::vector<double> times;
  Field field(const Tensor& w) {
    return [this, w](const Time& t, const Tensor& y) {
      times.push_back(t.value());
      return w * y;
    };
  }
  // [calls]
  Tensor stage_t() const { return at::tensor(times, at::kDouble); }
};

// which window a look-up at these times reads
Tensor windows_at(const Tensor& t, int64_t windows) {
  return at::clamp_max(t.floor().to(at::kLong), windows - 1);
}

// eps is lost in rounding at large times, and the wrong windows are read: to the last bit
TEST(Edges, SinglePrecisionLooksWhenThePublishedRunsDid) {
  const NamedTensors trace = load_safetensors(kTraces + "float32_stage_trace_eps.safetensors");
  const int64_t windows = std::stoll(trace.metadata.at("windows"));
  const Tensor ts = at::tensor({0.0, static_cast<double>(windows + 1)}, at::kDouble);
  const Tensor w = at::full({1}, -1e-3, at::kDouble).set_requires_grad(true),
               y0 = at::ones({1, 1}, at::kDouble);
  Recorder recorder;
  const FixedSteps steps = {.size = 1, .edges = StageEdges::Shortened, .stage_times = StageTimes::Single};
  const Solution s =
      solve(recorder.field(w), y0, ts,
            {.method = rk4(), .steps = steps, .gradient = Gradient::Adjoint, .parameters = {w}});
  EXPECT_TRUE(at::equal(recorder.stage_t(), trace.tensors.at("forward.stage_t")));
  EXPECT_TRUE(at::equal(windows_at(recorder.stage_t(), windows), trace.tensors.at("forward.window_index")));
  recorder.times.clear();
  vector_jacobian({s.ys[1]}, {w}, {at::ones_like(s.ys[1])});
  EXPECT_TRUE(at::equal(recorder.stage_t(), trace.tensors.at("backward.stage_t")));
  EXPECT_TRUE(at::equal(windows_at(recorder.stage_t(), windows), trace.tensors.at("backward.window_index")));
}

TEST(Edges, ShortenedStepsLookWhenThePublishedRunsDid) {
  for (const auto& [name, method] : {std::pair{"ode_delta_depth1_eps", rk4()},
                                     {"ode_delta_midpoint_depth1_eps", midpoint()},
                                     {"ode_delta_euler_depth1_eps", euler()}}) {
    const NamedTensors file = load_safetensors(kTraces + name + ".safetensors");
    // the last evaluation is the query after the solve
    const Tensor expected = file.tensors.at("trace.stage_t").slice(0, 0, -1);
    Recorder recorder;
    const Tensor ts = at::tensor({0.0, std::stod(file.metadata.at("windows")) + 1}, at::kDouble);
    solve(recorder.field(at::zeros({1}, at::kDouble)), at::ones({1, 1}, at::kDouble), ts,
          {.method = method, .steps = FixedSteps{.size = 1, .edges = StageEdges::Shortened}});
    // dt / 3 there, a third times dt here
    EXPECT_LT(relative_error(recorder.stage_t(), expected), 1e-15) << name;
  }
}

// one step of y' = t from 0 is the area under the stages
TEST(Edges, OnlyRk4LosesTheShortening) {
  const Field clock = [](const Time& t, const Tensor& y) { return t.like(y).expand_as(y); };
  const Tensor y0 = at::zeros({2, 1}, at::kDouble), ts = at::tensor({0.0, 1.0}, at::kDouble);
  const double eps = 0.1;
  const auto area = [&](const Method& m) {
    const FixedSteps steps = {.edges = StageEdges::Shortened, .shortening = eps};
    return solve(clock, y0, ts, {.method = m, .steps = steps}).ys[1][1].item<double>();
  };
  EXPECT_NEAR(area(euler()), eps, 1e-15);
  EXPECT_NEAR(area(midpoint()), 0.5, 1e-15);
  EXPECT_NEAR(area(heun2()), (eps + 1) / 2, 1e-15);
  EXPECT_NEAR(area(rk4()), (1 - 2 * eps) / 2, 1e-15);
  EXPECT_NEAR(area(rk4_classic()), eps / 6 + 4 * 0.5 / 6 + 1.0 / 6, 1e-15);
  // rk4 that starts a multistep method goes all the way, too
  EXPECT_NEAR(area(Adams{}), eps / 8 + 3.0 / 8 + 1.0 / 8, 1e-15);
}

TEST(Edges, ShortenedWorksPerSampleAndForEveryGradient) {
  const Tensor w = random({1, 2}, 1).set_requires_grad(true), y0 = random({2, 2}, 2);
  const Field field = [&](const Time& t, const Tensor& y) { return w * y + t.like(y).cos(); };
  // the second sample waits from time 1 on, the first one goes on
  const Tensor ts = at::tensor({0.0, 0.5, 0.8, 1.0, 2.3, 1.0}, at::kDouble).reshape({3, 2});
  const auto result = [&](const Tensor& start, const Tensor& times, double size, Gradient gradient) {
    const FixedSteps steps = {.size = size, .edges = StageEdges::Shortened, .shortening = 1e-2};
    const Tensor y =
        solve(field, start, times, {.method = rk4(), .steps = steps, .gradient = gradient, .parameters = {w}})
            .ys[-1];
    return std::pair{y.detach(), vector_jacobian({y}, {w}, {at::ones_like(y)})[0]};
  };
  const auto [ys, grad] = result(y0, ts, 0, Gradient::Exact);
  const auto [first, grad_first] =
      result(y0.slice(0, 0, 1), ts.select(1, 0).contiguous(), 0, Gradient::Exact);
  const auto [second, grad_second] =
      result(y0.slice(0, 1, 2), ts.slice(0, 0, 2).select(1, 1).contiguous(), 0, Gradient::Exact);
  EXPECT_LT(relative_error(ys, at::cat({first, second}, 0)), 1e-14);
  EXPECT_LT(relative_error(grad, grad_first + grad_second), 1e-13);
  EXPECT_LT(relative_error(result(y0, ts, 0, Gradient::Checkpointed).second, grad), 1e-13);
  // the adjoint loses as much of every step; with small steps it is the gradient again
  const Tensor shared = at::tensor({0.0, 1.0}, at::kDouble);
  EXPECT_LT(relative_error(result(y0, shared, 0.1, Gradient::Adjoint).second,
                           result(y0, shared, 0.1, Gradient::Exact).second),
            1e-6);
}

TEST(Edges, SinglePrecisionIsThatOfTheGridToo) {
  Recorder recorder;
  const Tensor ts = at::tensor({0.1, 0.7}, at::kDouble), none = at::zeros({1}, at::kDouble);
  solve(recorder.field(none), at::ones({1, 1}, at::kDouble), ts,
        {.method = euler(), .steps = FixedSteps{.size = 0.2, .stage_times = StageTimes::Single}});
  for (size_t n = 0; n < recorder.times.size(); ++n)
    EXPECT_EQ(recorder.times[n], static_cast<float>(n) * 0.2f + 0.1f) << n;
  recorder.times.clear();
  const FixedSteps inside = {.edges = StageEdges::Inside, .stage_times = StageTimes::Single};
  solve(recorder.field(none), at::ones({1, 1}, at::kDouble), ts, {.method = heun2(), .steps = inside});
  EXPECT_EQ(recorder.times[0], std::nextafter(0.1f, 1.0f));
  EXPECT_EQ(recorder.times[1], std::nextafter(0.7f, 0.0f));
}

TEST(Edges, WhatCannotBeDoneIsSaid) {
  const Tensor y0 = random({2, 1}, 3), ts = at::tensor({0.0, 1.0}, at::kDouble);
  const Field decay = [](const Time&, const Tensor& y) { return -y; };
  const auto said = [&](const Steps& steps, const Tensor& times, Gradient gradient = Gradient::Exact) {
    return testing::error_message([&] { solve(decay, y0, times, {.steps = steps, .gradient = gradient}); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "said: " << text;
  };
  const FixedSteps single = {.stage_times = StageTimes::Single},
                   shortened = {.size = 0.375, .edges = StageEdges::Shortened, .shortening = 0.125};
  const Tensor own = at::tensor({0.0, 0.0, 1.0, 2.0}, at::kDouble).reshape({2, 2}),
               moving = ts.clone().set_requires_grad(true);
  has(said(GivenSteps{ts, StageEdges::Shortened}, ts), "given steps cannot be shortened");
  has(said(single, own), "shared by all samples");
  has(said(single, moving), "with gradients");
  has(said(single, moving, Gradient::Adjoint), "have no gradients");
  has(said(single, at::tensor({1.0, 1.0 + 1e-12}, at::kDouble)), "take StageTimes::Double");
  has(said(shortened, ts), "a step of 0.25 is not longer than twice the shortening of 0.125");
  has(said(FixedSteps{.edges = StageEdges::Shortened, .shortening = -1}, ts), "got -1");
  has(said(FixedSteps{.edges = StageEdges::Shortened}, own, Gradient::Adjoint), "neither move the edges");
}

// LibTorch shares the sum of a large tensor between threads if that is all there is to sum
TEST(AdaptivePerSample, LargeStatesTakeTheSameStepsAloneInABatchAndOnAnyNumberOfThreads) {
  const int64_t size = 33001;
  const Tensor rate = 3 * random({size}, 1), y0 = random({2, size}, 2);
  const Field f = [&](const Time& t, const Tensor& y) { return rate * at::cos(2 * t.like(y)) * y; };
  const SolveOptions options = {
      .method = bosh3(), .steps = AdaptiveSteps{.rtol = 1e-4, .atol = 1e-6}, .keep_step_log = true};
  const Tensor ts = at::tensor({0.0, 3.0}, at::kDouble).unsqueeze(1);  // [2, 1]
  // the sizes of all steps of the first sample, taken or not
  const auto sizes = [&](const Tensor& start, const Tensor& times) {
    std::vector<double> result;
    for (const StepRecord& step : solve(f, start, times, options).step_log) {
      if (step.sample == 0) result.push_back(step.dt);
    }
    return result;
  };
  const int before = environment().threads;
  std::vector<double> expected;
  for (int threads : {1, 2}) {
    set_threads(threads);
    const std::vector<double> alone = sizes(y0.slice(0, 0, 1), ts);
    if (expected.empty()) expected = alone;
    EXPECT_EQ(alone, expected) << threads;
    EXPECT_EQ(sizes(y0, ts.expand({2, 2})), expected) << threads;
  }
  EXPECT_GT(expected.size(), 15);
  set_threads(before);
}

}  // namespace
}  // namespace fastweights

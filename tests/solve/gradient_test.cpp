#include <cmath>

#include "fastweights/solve.h"
#include "solve/checkpoint.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;

// a small network that depends on time, three samples of four values
struct Problem {
  Tensor w = random({4, 5}, 1), y0 = random({3, 4}, 2), weight = random({5, 3, 4}, 3);
  Tensor ts = at::tensor({0.1, 0.5, 0.8, 1.4, 1.9}, at::kDouble);

  static Field field(const Tensor& w) {
    return [w](const Time& t, const Tensor& y) {
      const Tensor time = t.like(y).expand({y.size(0), 1});
      return at::tanh(at::linear(at::cat({y, time.sin()}, 1), w)) - 0.2 * y;
    };
  }

  Tensor loss(const Tensor& parameters, const Tensor& start, const Tensor& times,
              SolveOptions options) const {
    options.parameters = {parameters};
    const Solution s = solve(field(parameters), start, times, options);
    EXPECT_TRUE(s.status) << s.status.message();
    return (s.ys * weight).sum();
  }

  // gradients with respect to parameters, start and times by autograd and by central differences
  double worst(const SolveOptions& options, bool with_times, const SolveOptions& differences) const {
    const auto of_w = [&](const Tensor& x) { return loss(x, y0, ts, options); };
    const auto of_y = [&](const Tensor& x) { return loss(w, x, ts, options); };
    const auto of_t = [&](const Tensor& x) { return loss(w, y0, x, options); };
    const auto plain_w = [&](const Tensor& x) { return loss(x, y0, ts, differences); };
    const auto plain_y = [&](const Tensor& x) { return loss(w, x, ts, differences); };
    const auto plain_t = [&](const Tensor& x) { return loss(w, y0, x, differences); };
    double result =
        relative_error(testing::autograd_gradient(of_w, w), testing::central_difference(plain_w, w));
    result = std::max(result, relative_error(testing::autograd_gradient(of_y, y0),
                                             testing::central_difference(plain_y, y0)));
    if (with_times) {
      result = std::max(result, relative_error(testing::autograd_gradient(of_t, ts),
                                               testing::central_difference(plain_t, ts)));
    }
    return result;
  }
};

struct GradientCase {
  const char* name;
  SolveOptions options;
  bool times;
};

// a case whose results are smooth in its inputs, so that differences mean something
std::vector<GradientCase> smooth_cases() {
  const Tensor given = at::tensor({0.1, 0.3, 0.9, 1.2, 1.9}, at::kDouble);
  return {
      {"euler on the output grid", {.method = euler()}, true},
      {"rk4 on the output grid", {.method = rk4()}, true},
      {"rk4 with a step and linear outputs", {.method = rk4(), .steps = FixedSteps{0.17}}, true},
      {"rk4 with a step and cubic outputs",
       {.method = rk4(), .steps = FixedSteps{0.17}, .interpolation = OutputInterpolation::Cubic},
       true},
      {"dopri5 with a step and quartic outputs",
       {.method = dopri5(), .steps = FixedSteps{0.17}, .interpolation = OutputInterpolation::Quartic},
       true},
      {"heun3 on given steps", {.method = heun3(), .steps = GivenSteps{given}}, false},
      {"rk4 looking inside", {.method = rk4(), .steps = FixedSteps{0.17, StageEdges::Inside}}, false},
      {"explicit Adams",
       {.method = Adams{.kind = AdamsKind::Explicit, .max_order = 6}, .steps = FixedSteps{0.05}},
       false},
      {"implicit Adams",
       {.method = Adams{.kind = AdamsKind::Implicit, .max_order = 6}, .steps = FixedSteps{0.05}},
       false},
  };
}

TEST(Gradient, ExactAgreesWithCentralDifferences) {
  const Problem problem;
  for (const GradientCase& c : smooth_cases()) {
    EXPECT_LT(problem.worst(c.options, c.times, c.options), 1e-7) << c.name;
  }
}

TEST(Gradient, CheckpointedAgreesWithCentralDifferences) {
  const Problem problem;
  for (GradientCase c : smooth_cases()) {
    const SolveOptions plain = c.options;
    c.options.gradient = Gradient::Checkpointed;
    EXPECT_LT(problem.worst(c.options, c.times, plain), 1e-7) << c.name;
  }
}

TEST(Gradient, AdjointAgreesWithCentralDifferencesOnFineSteps) {
  const Problem problem;
  // the adjoint is right up to the error of its own steps, so steps are fine and of high order
  const SolveOptions fixed = {.method = rk4(), .steps = FixedSteps{0.01}, .gradient = Gradient::Adjoint};
  SolveOptions plain = {
      .method = dopri5(),
      .steps = AdaptiveSteps{
          .rtol = 1e-12, .atol = 1e-13, .control = ErrorControl::Joint, .stop_times = problem.ts}};
  EXPECT_LT(problem.worst(fixed, true, plain), 1e-6);
  SolveOptions adaptive = {
      .method = dopri5(),
      .steps = AdaptiveSteps{.rtol = 1e-9, .atol = 1e-11, .control = ErrorControl::Joint},
      .gradient = Gradient::Adjoint};
  EXPECT_LT(problem.worst(adaptive, true, plain), 1e-6);
  adaptive.adjoint_norm = AdjointNorm::StateOnly;
  EXPECT_LT(problem.worst(adaptive, true, plain), 1e-6);
}

std::vector<Tensor> gradients(const Problem& p, const Tensor& ts, SolveOptions options,
                              bool time_gradients = false) {
  const Tensor w = p.w.clone().set_requires_grad(true), y0 = p.y0.clone().set_requires_grad(true);
  const Tensor times = ts.clone().set_requires_grad(time_gradients);
  const Tensor loss = p.loss(w, y0, times, options);
  std::vector<Tensor> inputs = {w, y0};
  if (time_gradients) inputs.push_back(times);
  return vector_jacobian({loss}, inputs, {at::ones_like(loss)});
}

// step sizes are held constant in all of these, so the modes agree to rounding though differences would not
TEST(Gradient, CheckpointedIsExactForAdaptiveSteps) {
  const Problem p;
  for (const auto control : {ErrorControl::Joint, ErrorControl::PerSample}) {
    for (const char* name : {"bosh3", "dopri5", "fehlberg2", "dopri8"}) {
      AdaptiveSteps steps = {.rtol = 1e-5, .atol = 1e-7, .control = control};
      steps.jump_times = at::tensor({0.33, 1.21}, at::kDouble);
      SolveOptions options = {.method = tableau(name), .steps = steps};
      // times with gradients are added up in another order; of dopri8's error estimate, near rounding level,
      // that makes other steps
      const bool times = std::string(name) != "dopri8";
      const std::vector<Tensor> exact = gradients(p, p.ts, options, times);
      options.gradient = Gradient::Checkpointed;
      const std::vector<Tensor> checkpointed = gradients(p, p.ts, options, times);
      for (size_t i = 0; i < exact.size(); ++i)
        EXPECT_LT(relative_error(checkpointed[i], exact[i]), 1e-12) << name << " " << i;
    }
  }
}

TEST(Gradient, AdaptiveExactIsCloseToTheTrueGradient) {
  const Problem p;
  const SolveOptions fine = {.method = rk4(), .steps = FixedSteps{0.002}};
  const std::vector<Tensor> truth = gradients(p, p.ts, fine);
  for (const auto control : {ErrorControl::Joint, ErrorControl::PerSample}) {
    AdaptiveSteps steps = {.rtol = 1e-8, .atol = 1e-10, .control = control, .stop_times = p.ts};
    const std::vector<Tensor> got = gradients(p, p.ts, {.method = dopri5(), .steps = steps});
    for (size_t i = 0; i < truth.size(); ++i) EXPECT_LT(relative_error(got[i], truth[i]), 1e-6);
  }
}

// every sample on its own times: rising, with one sample that is done early
Tensor own_times() {
  const Tensor shift = at::tensor({0.0, 0.3, -0.2}, at::kDouble),
               stretch = at::tensor({1.0, 0.5, 1.7}, at::kDouble);
  Tensor ts = at::tensor({0.1, 0.5, 0.8, 1.4, 1.9}, at::kDouble).unsqueeze(1) * stretch + shift;
  ts[3][1] = ts[2][1];
  ts[4][1] = ts[2][1];
  return ts.contiguous();
}

TEST(Gradient, TimesPerSampleHaveExactGradients) {
  const Problem p;
  const Tensor ts = own_times();
  for (double size : {0.0, 0.13}) {
    const SolveOptions options = {.steps = FixedSteps{size}};
    const auto of_t = [&](const Tensor& x) {
      // the times that repeat move together
      Tensor times = x.clone();
      times =
          at::cat({x.slice(0, 0, 3), at::stack({x[3], x[4]}, 0) * at::tensor({1.0, 0.0, 1.0}, at::kDouble) +
                                         x[2] * at::tensor({0.0, 1.0, 0.0}, at::kDouble)},
                  0);
      return p.loss(p.w, p.y0, times, options);
    };
    EXPECT_LT(relative_error(testing::autograd_gradient(of_t, ts), testing::central_difference(of_t, ts)),
              1e-7)
        << size;
    SolveOptions checkpointed = options;
    checkpointed.gradient = Gradient::Checkpointed;
    const std::vector<Tensor> a = gradients(p, ts, options, true), b = gradients(p, ts, checkpointed, true);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_LT(relative_error(b[i], a[i]), 1e-12);
    SolveOptions adjoint = {.steps = FixedSteps{0.01}, .gradient = Gradient::Adjoint};
    const std::vector<Tensor> fine = gradients(p, ts, {.steps = FixedSteps{0.01}}),
                              c = gradients(p, ts, adjoint);
    for (size_t i = 0; i < fine.size(); ++i) EXPECT_LT(relative_error(c[i], fine[i]), 1e-6);
  }
}

// two outputs at one time are still two times
TEST(Gradient, RepeatedTimesKeepTheirOwnGradients) {
  const Tensor ts = at::tensor({0.0, 1.0, 1.0, 2.0}, at::kDouble).reshape({4, 1}).set_requires_grad(true);
  const Field decay = [](const Time&, const Tensor& y) { return -y; };
  const double slope = -std::exp(-1.0);
  for (const int64_t which : {1, 2}) {
    const Tensor y = solve(decay, at::ones({1, 1}, at::kDouble), ts, {.steps = FixedSteps{0.05}}).ys[which];
    const Tensor grad = vector_jacobian({y}, {ts}, {at::ones_like(y)})[0];
    EXPECT_NEAR(grad[which].item<double>(), slope, 1e-6);
    EXPECT_NEAR(grad[3 - which].item<double>(), 0, 1e-6);
  }
}

// gradients of times must not change the solution, whatever the method
TEST(Gradient, OfTimesLeavesTheSolutionAlone) {
  const Problem p;
  const Tensor ts = own_times();
  for (const Method& m :
       {Method(rk4()), Method(Adams{.max_order = 4}), Method(Adams{.kind = AdamsKind::Implicit})}) {
    const SolveOptions options = {.method = m, .steps = FixedSteps{0.05}};
    const Tensor plain = solve(Problem::field(p.w), p.y0, ts, options).ys;
    const Tensor moving = solve(Problem::field(p.w), p.y0, ts.clone().set_requires_grad(true), options).ys;
    EXPECT_LT(relative_error(moving, plain), 1e-12);
  }
}

// what the field uses may show only later in the solve
TEST(Gradient, AdaptiveStepsSeeParametersThatComeIntoPlayLate) {
  const Tensor w = at::full({1}, -0.5, at::kDouble).set_requires_grad(true);
  const Field field = [&](const Time& t, const Tensor& y) {
    return t.like(y).min().item<double>() < 0.5 ? -y : w * y;
  };
  AdaptiveSteps steps = {.rtol = 1e-8, .atol = 1e-10};
  steps.jump_times = at::tensor({0.5}, at::kDouble);
  const Tensor ts = at::tensor({0.0, 2.0}, at::kDouble);
  const Tensor y =
      solve(field, at::ones({1, 1}, at::kDouble), ts, {.method = dopri5(), .steps = steps}).ys[1];
  ASSERT_TRUE(y.requires_grad());
  EXPECT_NEAR(vector_jacobian({y}, {w}, {at::ones_like(y)})[0].item<double>(), 1.5 * std::exp(-0.5 - 0.75),
              1e-5);
}

TEST(Gradient, OfManyStepsWithRoomForAllDoesNotOverflowTheStack) {
  const Field decay = [](const Time&, const Tensor& y) { return -y; };
  const Tensor y0 = at::ones({1, 1}, at::kDouble).set_requires_grad(true),
               ts = at::tensor({0.0, 1.0}, at::kDouble);
  const SolveOptions options = {.method = euler(),
                                .steps = FixedSteps{1e-5},
                                .gradient = Gradient::Checkpointed,
                                .memory_limit = 1 << 30};
  const Tensor y = solve(decay, y0, ts, options).ys[1];
  EXPECT_NEAR(vector_jacobian({y}, {y0}, {at::ones_like(y)})[0].item<double>(), std::exp(-1.0), 1e-5);
}

TEST(Gradient, ASecondPassWithoutRetainedGraphIsExplained) {
  const Problem p;
  for (const auto mode : {Gradient::Checkpointed, Gradient::Adjoint}) {
    const Tensor y0 = p.y0.clone().set_requires_grad(true);
    const Tensor loss = solve(Problem::field(p.w), y0, p.ts, {.gradient = mode}).ys.sum();
    loss.backward({}, /*retain_graph=*/true);
    const Tensor once = y0.grad().clone();
    loss.backward();
    EXPECT_LT(relative_error(y0.grad(), 2 * once), 1e-14);
  }
}

TEST(Gradient, AdjointWithTimesPerSampleRefusesWhatItCannotDo) {
  const Problem p;
  AdaptiveSteps jumping;
  jumping.jump_times = at::tensor({0.5}, at::kDouble);
  SolveOptions options = {.method = dopri5(), .steps = jumping, .gradient = Gradient::Adjoint};
  EXPECT_NE(testing::error_message([&] { gradients(p, own_times(), options); }).find("no stop or jump times"),
            std::string::npos);
  // shared times with jumps for each sample are fine
  AdaptiveSteps each = {.rtol = 1e-8, .atol = 1e-10};
  each.jump_times = at::tensor({0.5, 0.6, 0.7}, at::kDouble).reshape({1, 3});
  options.steps = each;
  const std::vector<Tensor> adjoint = gradients(p, p.ts, options);
  options.gradient = Gradient::Exact;
  EXPECT_LT(relative_error(adjoint[0], gradients(p, p.ts, options)[0]), 1e-5);
}

TEST(Gradient, BackwardTimeToo) {
  const Problem p;
  const Tensor falling = p.ts.flip(0).contiguous();
  const auto of_w = [&](const Tensor& x) { return p.loss(x, p.y0, falling, {.steps = FixedSteps{0.1}}); };
  EXPECT_LT(relative_error(testing::autograd_gradient(of_w, p.w), testing::central_difference(of_w, p.w)),
            1e-7);
}

TEST(Checkpoints, ScheduleStaysWithinItsSlotsAndVisitsEveryStep) {
  // plays the recursion: counts kept states and recomputed steps
  struct Player {
    int64_t kept = 0, most = 0, recomputed = 0, reversed = 0;
    void reverse(int64_t steps, int64_t slots) {
      if (steps <= 0) return;
      if (steps == 1 || slots == 0) {
        reversed += steps;
        recomputed += steps * (steps - 1) / 2;
        return;
      }
      const int64_t left = checkpoint_split(steps, slots);
      ASSERT_GT(left, 0);
      ASSERT_LT(left, steps);
      recomputed += left;
      most = std::max(most, ++kept);
      reverse(steps - left, slots - 1);
      --kept;
      reverse(left, slots);
    }
  };
  for (int64_t steps : {1, 2, 7, 100, 4496}) {
    for (int64_t slots : {1, 2, 5, 20, 134, 5000}) {
      Player player;
      player.reverse(steps, slots);
      EXPECT_EQ(player.reversed, steps);
      EXPECT_LE(player.most, slots);
      // with a state for every step nothing is done twice
      if (slots >= steps) {
        EXPECT_LE(player.recomputed, steps);
      }
      // about 2 sqrt(steps) states: every step at most twice
      if (slots >= 134) {
        EXPECT_LE(player.recomputed, 2 * steps);
      }
    }
  }
}

TEST(Checkpoints, AnyBudgetGivesTheSameGradient) {
  const Problem p;
  SolveOptions options = {.steps = FixedSteps{0.02}};
  const std::vector<Tensor> exact = gradients(p, p.ts, options);
  options.gradient = Gradient::Checkpointed;
  for (int64_t bytes : {2 * 96, 500, 2000, 100000, 0}) {
    options.memory_limit = bytes;
    const std::vector<Tensor> got = gradients(p, p.ts, options);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_error(got[i], exact[i]), 1e-12) << bytes;
  }
  options.memory_limit = 10;
  EXPECT_NE(testing::error_message([&] { gradients(p, p.ts, options); }).find("less than one state"),
            std::string::npos);
}

TEST(Gradient, OutputsCanBeUsedTwiceAndParametersNeedNotRequireGradients) {
  const Problem p;
  for (const auto mode : {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint}) {
    const Tensor y0 = p.y0.clone().set_requires_grad(true);
    SolveOptions options = {.gradient = mode, .parameters = {p.w}};
    const Tensor ys = solve(Problem::field(p.w), y0, p.ts, options).ys;
    const Tensor loss = ys.sum() + ys[4].pow(2).sum();
    EXPECT_TRUE(at::isfinite(vector_jacobian({loss}, {y0}, {at::ones_like(loss)})[0]).all().item<bool>());
  }
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "fastweights/solve.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;

// each sample has its own stiffness, so its own steps
Tensor decay(const Time& t, const Tensor& y) {
  const Tensor rate = at::pow(10.0, at::arange(y.size(0), y.options()).unsqueeze(1));
  return -rate * (y - t.like(y).cos());
}

const Tensor kOutputs = at::tensor({0.0, 0.4, 1.1, 2.0}, at::kDouble);

TEST(AdaptivePerSample, ResultDoesNotDependOnTheBatch) {
  const Tensor y0 = random({3, 2}, 1);
  for (const char* name : {"dopri5", "tsit5", "bosh3", "dopri8", "fehlberg2", "adaptive_heun"}) {
    const SolveOptions options = {.method = tableau(name),
                                  .steps = AdaptiveSteps{.rtol = 1e-5, .atol = 1e-7}};
    const Solution together = solve(decay, y0, kOutputs, options);
    ASSERT_TRUE(together.status) << together.status.message();
    for (int64_t b = 0; b < 3; ++b) {
      const double rate = std::pow(10.0, static_cast<double>(b));
      const Field own = [rate](const Time& t, const Tensor& y) { return -rate * (y - t.like(y).cos()); };
      const Solution alone = solve(own, y0.slice(0, b, b + 1), kOutputs, options);
      EXPECT_LT(relative_error(together.ys.slice(1, b, b + 1), alone.ys), 1e-12) << name;
    }
  }
}

TEST(AdaptivePerSample, EachSampleHasItsOwnStepsAndTimes) {
  const Tensor y0 = random({3, 2}, 1);
  // different spans, the second sample is done after its second output
  const Tensor ts = at::tensor({0.0, 1.0, -1.0, 0.5, 1.2, 0.0, 2.0, 1.2, 0.7}, at::kDouble).reshape({3, 3});
  SolveOptions options = {
      .method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-6, .atol = 1e-8}, .keep_step_log = true};
  const Solution s = solve(decay, y0, ts, options);
  ASSERT_TRUE(s.status) << s.status.message();
  std::vector<int64_t> steps(3, 0);
  for (const StepRecord& record : s.step_log) steps[record.sample] += record.accepted;
  EXPECT_GT(steps[2], steps[0]);
  EXPECT_EQ(s.steps, *std::max_element(steps.begin(), steps.end()));
  for (int64_t b = 0; b < 3; ++b) {
    const double rate = std::pow(10.0, static_cast<double>(b));
    const Field own = [rate](const Time& t, const Tensor& y) { return -rate * (y - t.like(y).cos()); };
    const Tensor times = ts.select(1, b).contiguous();
    const Tensor rising = times.slice(0, 0, b == 1 ? 2 : 3).contiguous();
    const Tensor alone = solve(own, y0.slice(0, b, b + 1), rising, options).ys;
    EXPECT_LT(relative_error(s.ys.slice(1, b, b + 1).slice(0, 0, alone.size(0)), alone), 1e-12) << b;
  }
  EXPECT_TRUE(at::equal(s.ys[1][1], s.ys[2][1]));
}

TEST(AdaptivePerSample, GradientsAreThoseOfTheSamplesAlone) {
  const Tensor y0 = random({3, 2}, 1), weight = random({4, 3, 2}, 2);
  const SolveOptions options = {.method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-5, .atol = 1e-7}};
  const auto loss = [&](const Tensor& start) {
    return (solve(decay, start, kOutputs, options).ys * weight).sum();
  };
  const Tensor together = testing::autograd_gradient(loss, y0);
  const Field slow = [](const Time& t, const Tensor& y) { return -(y - t.like(y).cos()); };
  const auto alone = [&](const Tensor& start) {
    return (solve(slow, start, kOutputs, options).ys * weight.slice(1, 0, 1)).sum();
  };
  EXPECT_LT(relative_error(together.slice(0, 0, 1), testing::autograd_gradient(alone, y0.slice(0, 0, 1))),
            1e-11);
}

TEST(Adaptive, MeetsItsToleranceAtStopTimes) {
  const Field oscillator = [](const Time&, const Tensor& y) {
    return at::stack({y.select(1, 1), -y.select(1, 0)}, 1);
  };
  const Tensor y0 = at::tensor({1.0, 0.0}, at::kDouble).reshape({1, 2}),
               ts = at::tensor({0.0, 3.0, 10.0}, at::kDouble);
  for (const char* name : {"bosh3", "dopri5", "tsit5", "dopri8"}) {
    AdaptiveSteps steps = {.rtol = 1e-8, .atol = 1e-8, .stop_times = ts};
    const Solution s = solve(oscillator, y0, ts, {.method = tableau(name), .steps = steps});
    EXPECT_NEAR(s.ys[2][0][0].item<double>(), std::cos(10.0), 1e-6) << name;
  }
}

// a field that jumps: named jumps keep the order, and per sample each has its own
TEST(Adaptive, JumpTimesMayDifferBetweenSamples) {
  const Tensor jumps = at::tensor({0.35, 1.3}, at::kDouble);
  const Field field = [&](const Time& t, const Tensor& y) {
    const Tensor on = (t.tensor() < jumps).to(at::kDouble).unsqueeze(1);
    return on - y * 0;
  };
  const Tensor y0 = at::zeros({2, 1}, at::kDouble), ts = at::tensor({0.0, 2.0}, at::kDouble);
  AdaptiveSteps steps = {.rtol = 1e-6, .atol = 1e-8};
  steps.jump_times = jumps.reshape({1, 2});
  const Solution s = solve(field, y0, ts, {.method = dopri5(), .steps = steps});
  // constant slopes before and after the jump: exact, and without a rejected step
  EXPECT_NEAR(s.ys[1][0][0].item<double>(), 0.35, 1e-12);
  EXPECT_NEAR(s.ys[1][1][0].item<double>(), 1.3, 1e-12);
  EXPECT_EQ(s.rejected, 0);
}

// a jump that is a stop, comes twice, or is met by a step by chance is still a jump
TEST(Adaptive, EveryJumpIsSeen) {
  const Field field = [](const Time& t, const Tensor& y) {
    const Tensor time = t.like(y);
    return (time < 0.5).to(y.scalar_type()) * 3 - 2 + (time >= 1.5).to(y.scalar_type()) + 0 * y;
  };
  const Tensor y0 = at::zeros({1, 1}, at::kDouble), ts = at::tensor({0.0, 2.0}, at::kDouble);
  const Tensor jumps = at::tensor({1.5, 0.5, 0.5}, at::kDouble);
  for (const auto control : {ErrorControl::PerSample, ErrorControl::Joint}) {
    for (const Tensor& stops :
         {Tensor(), at::tensor({0.5}, at::kDouble), at::tensor({2.0, 0.5, 0.0, 1.5}, at::kDouble)}) {
      for (const double first : {0.0, 0.5, 5.0}) {
        AdaptiveSteps steps = {
            .rtol = 1e-3, .atol = 1e-3, .control = control, .first_step = first, .stop_times = stops};
        steps.jump_times = jumps;
        const Solution s = solve(field, y0, ts, {.method = dopri5(), .steps = steps});
        EXPECT_NEAR(s.ys[1].item<double>(), 0.5 - 2 - 0.5, 1e-12) << first;
        EXPECT_EQ(s.rejected, 0);
      }
    }
  }
}

TEST(Adaptive, JumpsAreTheSameWithGradientsOfTimesAndWithPadding) {
  // a field that is still the old one at the jump itself, as a path with knots is
  for (const double jump : {0.10093, 0.3, 1.0 / 3, 0.7123}) {
    const Field field = [&](const Time& t, const Tensor& y) {
      return 1 - 3 * (t.like(y) > jump).to(y.scalar_type()) + 0 * y;
    };
    const Tensor y0 = at::zeros({1, 1}, at::kDouble);
    for (const auto control : {ErrorControl::PerSample, ErrorControl::Joint}) {
      for (const double start : {0.0, jump}) {
        AdaptiveSteps steps = {.rtol = 1e-3, .atol = 1e-3, .control = control};
        steps.jump_times = at::tensor({std::nan(""), 5.0, jump, std::nan("")}, at::kDouble);
        const Tensor ts = at::tensor({start, 1.0}, at::kDouble).set_requires_grad(true);
        const Solution s = solve(field, y0, ts, {.method = dopri5(), .steps = steps});
        EXPECT_NEAR(s.ys[1].item<double>(), (start < jump ? jump : 0) - 2 * (1 - jump), 1e-10)
            << jump << " " << start;
        EXPECT_EQ(s.rejected, 0);
      }
    }
  }
}

TEST(Adaptive, LargeStatesAreFinite) {
  const Field decay_field = [](const Time&, const Tensor& y) { return -y; };
  const Tensor ts = at::tensor({0.0, 1.0}, at::kDouble);
  for (const auto control : {ErrorControl::PerSample, ErrorControl::Joint}) {
    const SolveOptions options = {.method = dopri5(),
                                  .steps = AdaptiveSteps{.rtol = 1e-4, .atol = 1e-6, .control = control}};
    const Solution s = solve(decay_field, at::full({1, 1}, 1e20, at::kFloat), ts, options);
    EXPECT_TRUE(s.status) << s.status.message();
  }
}

TEST(Adaptive, CubicOutputsLookAtJumpsFromTheirOwnSide) {
  const Field field = [](const Time& t, const Tensor& y) {
    return (t.like(y) < 0.5).to(y.scalar_type()) + 0 * y;
  };
  const Tensor y0 = at::zeros({1, 1}, at::kDouble), ts = at::tensor({0.0, 0.3, 1.0}, at::kDouble);
  AdaptiveSteps steps = {.rtol = 1e-3, .atol = 1e-3, .first_step = 0.7};
  steps.jump_times = at::tensor({0.5}, at::kDouble);
  const Steps given = GivenSteps{at::tensor({0.0, 0.5, 1.0}, at::kDouble), StageEdges::Inside};
  for (const Steps& s : {Steps(steps), given}) {
    const SolveOptions options = {
        .method = dopri5(), .steps = s, .interpolation = OutputInterpolation::Cubic};
    EXPECT_NEAR(solve(field, y0, ts, options).ys[1].item<double>(), 0.3, 1e-12);
  }
}

TEST(AdaptivePerSample, AFailingSampleDoesNotStopTheOthers) {
  // the second sample runs into a pole at t = 1
  const Tensor second = at::tensor({0.0, 1.0}, at::kDouble).unsqueeze(1);
  const Field field = [&](const Time& t, const Tensor& y) {
    return (1 - second) * (3 * t.like(y)).cos() + second * y * y;
  };
  const Tensor y0 = at::ones({2, 1}, at::kDouble), ts = at::tensor({0.0, 0.5, 4.0}, at::kDouble);
  const SolveOptions options = {.method = dopri5(),
                                .steps = AdaptiveSteps{.rtol = 1e-8, .atol = 1e-10, .stop_times = ts}};
  const Solution s = solve(field, y0, ts, options);
  EXPECT_FALSE(s.status);
  EXPECT_EQ(s.status.sample, 1);
  EXPECT_NEAR(s.ys[1][1].item<double>(), 2, 1e-6);
  EXPECT_TRUE(std::isnan(s.ys[2][1].item<double>()));
  EXPECT_NEAR(s.ys[2][0].item<double>(), 1 + std::sin(12.0) / 3, 1e-7);
}

TEST(Adaptive, WhatIsNotANumberEndsAtOnce) {
  const Tensor ts = at::tensor({0.0, 1.0}, at::kDouble);
  const Field bad = [](const Time& t, const Tensor& y) {
    return y * (t.like(y) > 0.2).to(y.scalar_type()).log().neg();
  };
  for (const double smallest : {0.0, 0.01}) {
    const Solution s = solve(bad, at::ones({1, 1}, at::kDouble), ts,
                             {.method = dopri5(), .steps = AdaptiveSteps{.smallest_step = smallest}});
    EXPECT_EQ(s.status.outcome, Outcome::NotFinite);
    EXPECT_LT(s.evaluations, 1000);
  }
  const Tensor nan = at::full({1, 1}, std::nan(""), at::kDouble);
  EXPECT_EQ(solve(decay, nan, ts, {.method = dopri5(), .steps = AdaptiveSteps{}}).status.outcome,
            Outcome::NotFinite);
}

TEST(Adaptive, OutcomesNameSampleTimeAndNorm) {
  // y' = y^2 has a pole at t = 1 / y0
  const Field pole = [](const Time&, const Tensor& y) { return y * y; };
  const Tensor y0 = at::tensor({0.1, 1.0}, at::kDouble).reshape({2, 1}),
               ts = at::tensor({0.0, 3.0}, at::kDouble);
  for (const auto control : {ErrorControl::PerSample, ErrorControl::Joint}) {
    const Solution s =
        solve(pole, y0, ts,
              {.method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-6, .atol = 1e-8, .control = control}});
    EXPECT_FALSE(s.status);
    EXPECT_TRUE(s.status.outcome == Outcome::StepTooSmall || s.status.outcome == Outcome::NotFinite);
    EXPECT_EQ(s.status.sample, 1);
    EXPECT_NEAR(s.status.time, 1.0, 1e-3);
    EXPECT_GT(s.status.norm, 1e3);
    EXPECT_NE(s.status.message().find("sample 1 at time 1.00000"), std::string::npos) << s.status.message();
    EXPECT_TRUE(std::isnan(s.ys[1][1][0].item<double>()));
  }
  const Solution limited = solve(pole, y0, ts, {.method = dopri5(), .steps = AdaptiveSteps{.max_steps = 3}});
  EXPECT_EQ(limited.status.outcome, Outcome::TooManySteps);
  const Solution fixed = solve(pole, y0, at::tensor({0.0, 1.0, 30.0}, at::kDouble),
                               {.method = euler(), .steps = FixedSteps{0.1}});
  EXPECT_EQ(fixed.status.outcome, Outcome::NotFinite);
  EXPECT_EQ(fixed.status.sample, 0);
  EXPECT_EQ(fixed.status.time, 30);
}

TEST(Adaptive, SmallestStepIsTakenWhateverTheError) {
  AdaptiveSteps steps = {.rtol = 1e-12, .atol = 1e-12, .smallest_step = 0.5};
  const Solution s = solve(decay, random({1, 1}, 1), kOutputs, {.method = bosh3(), .steps = steps});
  ASSERT_TRUE(s.status);
  EXPECT_EQ(s.steps, 4);
  steps = {.rtol = 1e-1, .atol = 1e-1, .largest_step = 0.01};
  EXPECT_GE(solve(decay, random({1, 1}, 1), kOutputs, {.method = bosh3(), .steps = steps}).steps, 200);
}

TEST(Solve, TimesPerSampleEqualSamplesOneByOne) {
  const Tensor y0 = random({3, 2}, 4);
  const Tensor ts = at::tensor({0.0, 1.0, -1.0, 0.5, 1.2, 0.0, 2.0, 1.2, 0.7}, at::kDouble).reshape({3, 3});
  const Field field = [](const Time& t, const Tensor& y) { return at::tanh(y) * t.like(y).cos(); };
  for (double size : {0.0, 0.15}) {
    for (const Method& m : {Method(rk4()), Method(dopri5()), Method(Adams{.max_order = 5})}) {
      const SolveOptions options = {.method = m, .steps = FixedSteps{size}};
      const Tensor together = solve(field, y0, ts, options).ys;
      for (int64_t b = 0; b < 3; ++b) {
        // a series of its own: its own times, without the waiting at the end
        const Tensor own = ts.slice(1, b, b + 1).slice(0, 0, b == 1 ? 2 : 3).contiguous();
        const Tensor alone = solve(field, y0.slice(0, b, b + 1), own, options).ys;
        EXPECT_LT(relative_error(together.slice(1, b, b + 1).slice(0, 0, alone.size(0)), alone), 1e-13);
      }
      EXPECT_TRUE(at::equal(together[1][1], together[2][1]));
    }
  }
}

TEST(Solve, GivenStepsPerSampleInterpolateTheirOutputs) {
  const Tensor y0 = random({2, 1}, 5);
  const Field field = [](const Time& t, const Tensor& y) { return -y + t.like(y); };
  const Tensor ts = at::tensor({0.0, 0.0, 0.7, 0.2, 1.0, 2.0}, at::kDouble).reshape({3, 2});
  const Tensor grid = at::tensor({0.0, 0.0, 0.5, 1.0, 1.0, 2.0}, at::kDouble).reshape({3, 2});
  const Tensor together = solve(field, y0, ts, {.steps = GivenSteps{grid}}).ys;
  for (int64_t b = 0; b < 2; ++b) {
    const Tensor own = grid.select(1, b).contiguous();
    const Tensor alone =
        solve(field, y0.slice(0, b, b + 1), ts.select(1, b).contiguous(), {.steps = GivenSteps{own}}).ys;
    EXPECT_LT(relative_error(together.slice(1, b, b + 1), alone), 1e-13);
  }
}

TEST(Solve, FloatStatesWork) {
  const Tensor y0 = random({3, 2}, 6).to(at::kFloat);
  for (const Steps& steps : {Steps(FixedSteps{0.05}), Steps(AdaptiveSteps{.rtol = 1e-4, .atol = 1e-6})}) {
    const Tensor ys = solve(decay, y0.slice(0, 0, 1), kOutputs, {.method = dopri5(), .steps = steps}).ys;
    EXPECT_EQ(ys.scalar_type(), at::kFloat);
    const Tensor precise = solve(decay, y0.slice(0, 0, 1).to(at::kDouble), kOutputs,
                                 {.method = dopri5(), .steps = FixedSteps{0.01}})
                               .ys;
    EXPECT_LT(relative_error(ys, precise), 2e-4);
  }
}

TEST(Solve, EveryDeviceGivesTheSameResult) {
  std::vector<at::Device> devices = {at::kCPU};
  if (at::hasCUDA()) devices.emplace_back(at::kCUDA, 0);
  const Tensor y0 = random({3, 2}, 6), own = kOutputs.unsqueeze(1) * at::tensor({1.0, 0.5, 0.2}, at::kDouble);
  AdaptiveSteps jumping = {.rtol = 1e-6, .atol = 1e-8};
  jumping.jump_times = at::tensor({0.3}, at::kDouble);
  for (const at::Device& device : devices) {
    for (const Steps& steps : {Steps(FixedSteps{0.003}), Steps(jumping)}) {
      for (const Tensor& ts : {kOutputs, own}) {
        for (const auto mode : {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint}) {
          SolveOptions options = {.method = dopri5(), .steps = steps, .gradient = mode};
          if (mode == Gradient::Adjoint) options.adjoint_steps = FixedSteps{0.01};
          const auto loss = [&](const Tensor& y) { return solve(decay, y, ts, options).ys.pow(2).sum(); };
          const Tensor expected = testing::autograd_gradient(loss, y0);
          EXPECT_LT(relative_error(testing::autograd_gradient(loss, y0.to(device)).cpu(), expected), 1e-9);
        }
      }
    }
  }
}

TEST(Solve, OneOutputTimeIsTheStart) {
  const Tensor y0 = random({3, 2}, 7), ts = at::tensor({0.5}, at::kDouble);
  for (const Steps& steps : {Steps(FixedSteps{}), Steps(FixedSteps{0.1}), Steps(AdaptiveSteps{})}) {
    EXPECT_TRUE(at::equal(solve(decay, y0, ts, {.method = dopri5(), .steps = steps}).ys[0], y0));
  }
}

TEST(Solve, BadInputIsNamed) {
  const Tensor y0 = random({2, 1}, 8), ts = at::tensor({0.0, 1.0}, at::kDouble);
  const auto said = [&](const SolveOptions& options, const Tensor& times) {
    return testing::error_message([&] { solve(decay, y0, times, options); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "said: " << text;
  };
  has(said({.steps = FixedSteps{-0.1}}, ts), "step size must be positive, or 0");
  has(said({.steps = FixedSteps{std::nan("")}}, ts), "got nan");
  has(said({.steps = FixedSteps{1e-300}}, ts), "take larger ones");
  has(testing::error_message([&] {
        solve(decay, at::empty({0, 2}, at::kDouble), ts);
      }),
      "y0 has no elements");
  has(said({}, at::tensor({0.0, 0.0}, at::kDouble)), "time 1 is 0 after 0");
  has(said({}, at::tensor({0.0, 1.0, 0.5}, at::kDouble)), "must all rise, but time 2 is 0.5 after 1");
  has(said({}, at::tensor({0.0, std::nan("")}, at::kDouble)), "output time 1 is nan");
  has(said({}, at::tensor({0.0, 1.0, 0.5, -2.0}, at::kDouble).reshape({2, 2})),
      "sample 1: output times must all rise");
  has(said({}, at::zeros({2, 3}, at::kDouble)), "times for 3 samples");
  has(said({}, at::zeros({2}, at::kFloat)), "float64");
  has(said({.method = dopri5(), .steps = AdaptiveSteps{.rtol = 0}}, ts), "rtol must be positive, got 0");
  has(said({.method = dopri5(), .steps = AdaptiveSteps{.atol = -1}}, ts), "atol must be positive, got -1");
  has(said({.method = rk4(), .steps = AdaptiveSteps{}}, ts), "rk4 has no error estimate");
  has(said({.method = Adams{.max_order = 3}}, ts), "max_order 4 to 12, got 3");
  has(said({.interpolation = OutputInterpolation::Quartic}, ts), "rk4 has none");
  has(said({.steps = GivenSteps{at::tensor({0.0, 0.6, 0.5, 1.0}, at::kDouble)}}, ts),
      "step time 2 is 0.5 after");
  has(said({.steps = GivenSteps{at::tensor({0.0, 0.9}, at::kDouble)}}, ts), "end at the last output time");
  has(said({.method = dopri5(), .steps = AdaptiveSteps{.control = ErrorControl::Joint}},
           at::tensor({0.0, 0.0, 1.0, 1.0}, at::kDouble).reshape({2, 2})),
      "joint error control needs times that all samples share");
  has(said({.method = dopri5(), .steps = AdaptiveSteps{.max_steps = 0}}, ts), "max_steps must be positive");
  has(said({.memory_limit = -1}, ts), "memory_limit");
  Tableau short_of_weights = rk4();
  short_of_weights.b = {0.5, 0.5};
  has(said({.method = short_of_weights}, ts), "they must be as many");
  Tableau short_row = rk4();
  short_row.a[2] = {1};
  has(said({.method = short_row}, ts), "row 2 of a has 1 entries, not 2");
  has(said({.parameters = {Tensor()}}, ts), "parameter 0 is undefined");
  has(said({.gradient = Gradient::Adjoint}, Tensor()), "ts must be");
  AdaptiveSteps through = {.first_step_gradient = FirstStepGradient::Through};
  has(said({.method = dopri5(), .steps = through}, ts), "needs joint error control");
  const Field other_type = [](const Time&, const Tensor& y) { return y.to(at::kFloat); };
  has(testing::error_message([&] { solve(other_type, y0, ts); }),
      "must have the type and device of y, Double");
  const Tensor moving = ts.clone().set_requires_grad(true);
  has(said({.steps = GivenSteps{ts}}, moving), "computed from them");
  const Field wrong = [](const Time&, const Tensor& y) { return y.sum(); };
  has(testing::error_message([&] { solve(wrong, y0, ts); }), "must have the shape of y");
  const Field empty = [](const Time&, const Tensor&) { return Tensor(); };
  const SolveOptions per_sample = {.method = dopri5(), .steps = AdaptiveSteps{}};
  has(testing::error_message([&] { solve(empty, y0, ts, per_sample); }), "got nothing");
  has(testing::error_message([&] { solve(Field(), y0, ts); }), "the field is empty");
  has(testing::error_message([&] { method("rk5"); }), "'rk5'");
  const Field shared_only = [](const Time& t, const Tensor& y) { return y * t.value(); };
  has(testing::error_message([&] {
        solve(
            shared_only, y0,
            at::zeros({1, 2}, at::kDouble).repeat({2, 1}) + at::tensor({0.0, 1.0}, at::kDouble).unsqueeze(1));
      }),
      "each of the 2 samples has its own time");
}

TEST(WeightedSum, IsThePlainSumWithGradientsOfAnyOrder) {
  const Tensor a = random({3, 4}, 1).set_requires_grad(true), b = random({3, 4}, 2).set_requires_grad(true);
  const Tensor sum = weighted_sum(a, {b, a}, {0.5, -2});
  EXPECT_LT(relative_error(sum, a + 0.5 * b - 2 * a), 1e-15);
  const Tensor loss = sum.pow(3).sum();
  const std::vector<Tensor> got = vector_jacobian({loss}, {a, b}, {at::ones_like(loss)});
  const Tensor plain = 3 * (0.5 * b - a).pow(2);
  EXPECT_LT(relative_error(got[0], -plain), 1e-14);
  EXPECT_LT(relative_error(got[1], 0.5 * plain), 1e-14);
  // strided tensors take the other way
  EXPECT_LT(relative_error(weighted_sum({}, {a.t(), b.t()}, {1, 0}), a.t()), 1e-15);
}

}  // namespace
}  // namespace fastweights

#include "fastweights/optimise.h"

#include <cmath>

#include "support/support.h"
#include "tensor/runtime.h"

namespace fastweights {
namespace {

using testing::autograd_gradient;
using testing::central_difference;
using testing::error_message;
using testing::random;
using testing::relative_error;

// one number through the formulas of the paper
struct ScalarAdam {
  AdamOptions o;
  double value, m = 0, s = 0;
  int t = 0;

  void step(double g) {
    ++t;
    m = o.beta1 * m + (1 - o.beta1) * g;
    s = o.beta2 * s + (1 - o.beta2) * g * g;
    const double denominator = std::sqrt(s) / std::sqrt(1 - std::pow(o.beta2, t)) + o.epsilon;
    value -= o.learning_rate / (1 - std::pow(o.beta1, t)) * m / denominator;
  }
};

TEST(Optimise, AdamIsTheScalarLoop) {
  const AdamOptions options{.learning_rate = 0.03, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-5};
  const std::vector<Tensor> parameters = {random({3, 2}, 1), random({5}, 2)};
  std::vector<ScalarAdam> scalars;
  for (const Tensor& p : parameters) {
    for (int64_t i = 0; i < p.numel(); ++i) scalars.push_back({options, p.flatten()[i].item<double>()});
  }
  Adam adam(parameters, options);
  for (int step = 0; step < 30; ++step) {
    const Tensor g = random({11}, 100 + step);
    if (step == 20) adam.set_learning_rate(0.01);
    adam.step({g.slice(0, 0, 6).reshape({3, 2}), g.slice(0, 6)});
    for (int64_t i = 0; i < 11; ++i) {
      if (step == 20) scalars[i].o.learning_rate = 0.01;
      scalars[i].step(g[i].item<double>());
    }
  }
  const Tensor got = at::cat({parameters[0].flatten(), parameters[1]});
  for (int64_t i = 0; i < 11; ++i) EXPECT_NEAR(got[i].item<double>(), scalars[i].value, 1e-14) << i;
}

TEST(Optimise, AdamWithoutAGradientLeavesTheParameterAlone) {
  const Tensor seen = random({3}, 1), skipped = random({2}, 2), before = skipped.clone();
  Adam adam({seen, skipped});
  adam.step({random({3}, 3), Tensor()});
  EXPECT_TRUE(at::equal(skipped, before));
  // its first step comes later: it has the size of the learning rate, since t counts its own steps
  adam.step({Tensor(), at::ones({2}, at::kDouble)});
  EXPECT_LT(relative_error(before - skipped, at::full({2}, 1e-3, at::kDouble)), 1e-7);
}

TEST(Optimise, AdamFindsAMinimum) {
  const Tensor target = random({4, 3}, 1);
  const Tensor x = at::zeros({4, 3}, at::kDouble).set_requires_grad(true);
  Adam adam({x}, {.learning_rate = 0.05});
  for (int step = 0; step < 500; ++step) adam.step(gradients((x - target).pow(2).sum(), {x}));
  EXPECT_LT(relative_error(x, target), 1e-3);
  EXPECT_TRUE(x.is_leaf() && x.requires_grad());
}

TEST(Optimise, WeightDecayTakesAShareBeforeTheStep) {
  const AdamOptions plain{.learning_rate = 0.03}, decayed{.learning_rate = 0.03, .weight_decay = 0.2};
  const Tensor x = random({5}, 1);
  std::vector<ScalarAdam> scalars;
  for (int64_t i = 0; i < 5; ++i) scalars.push_back({plain, x[i].item<double>()});
  Adam adam({x}, decayed);
  for (int step = 0; step < 7; ++step) {
    const Tensor g = random({5}, 10 + step);
    adam.step({g});
    for (int64_t i = 0; i < 5; ++i) {
      // decoupled: the means of gradients do not see it
      scalars[i].value *= 1 - 0.03 * 0.2;
      scalars[i].step(g[i].item<double>());
    }
  }
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR(x[i].item<double>(), scalars[i].value, 1e-14) << i;
}

TEST(Optimise, RateFactorsAreRatesOfTheirOwn) {
  const std::vector<Tensor> starts = {random({3}, 1), random({2}, 2)};
  const std::vector<Tensor> together = {starts[0].clone(), starts[1].clone()};
  Adam adam(together, {.learning_rate = 0.02, .weight_decay = 0.1, .rate_factors = {0.5, 3}});
  std::vector<Tensor> alone = {starts[0].clone(), starts[1].clone()};
  Adam slow({alone[0]}, {.learning_rate = 0.01, .weight_decay = 0.1}),
      fast({alone[1]}, {.learning_rate = 0.06, .weight_decay = 0.1});
  for (int step = 0; step < 5; ++step) {
    const Tensor a = random({3}, 20 + step), b = random({2}, 30 + step);
    adam.step({a, b});
    slow.step({a});
    fast.step({b});
  }
  EXPECT_LT(relative_error(together[0], alone[0]), 1e-14);
  EXPECT_LT(relative_error(together[1], alone[1]), 1e-14);
}

TEST(Optimise, AStateGoesOnBitForBit) {
  const auto gradient = [](int step) { return random({4, 3}, 50 + step).to(at::kFloat); };
  const Tensor x = random({4, 3}, 1).to(at::kFloat), skipped = random({2}, 2).to(at::kFloat);
  Adam adam({x, skipped}, {.weight_decay = 0.1});
  for (int step = 0; step < 4; ++step) adam.step({gradient(step), Tensor()});
  const AdamState state = adam.state();
  const std::vector<Tensor> means = {state.first[0].clone(), state.second[0].clone()};
  const Tensor again = x.clone(), skipped_again = skipped.clone();
  for (int step = 4; step < 9; ++step) adam.step({gradient(step), gradient(step)[0].slice(0, 0, 2)});
  // later steps did not change what was handed out
  EXPECT_TRUE(at::equal(state.first[0], means[0]) && at::equal(state.second[0], means[1]));
  EXPECT_EQ(state.steps, (std::vector<int64_t>{4, 0}));
  Adam fresh({again, skipped_again}, {.weight_decay = 0.1});
  fresh.set_state(state);
  for (int step = 4; step < 9; ++step) fresh.step({gradient(step), gradient(step)[0].slice(0, 0, 2)});
  EXPECT_TRUE(at::equal(again, x));
  EXPECT_TRUE(at::equal(skipped_again, skipped));
  EXPECT_TRUE(at::equal(state.first[0], means[0]));
}

TEST(Optimise, BadStatesGetASentence) {
  const Tensor x = at::zeros({3}, at::kDouble), y = at::zeros({2}, at::kDouble);
  Adam adam({x});
  EXPECT_EQ(error_message([&] { adam.set_state({}); }), "[adam] there are 1 parameters, the state is of 0");
  EXPECT_EQ(error_message([&] { adam.set_state(Adam({y}).state()); }),
            "[adam] the state of parameter 0 must be [3], got [2] and [2]");
  EXPECT_EQ(error_message([&] { Adam({x}, {.weight_decay = -1}); }),
            "[adam] weight_decay must be finite and not negative, got -1");
  EXPECT_EQ(error_message([&] {
              Adam({x}, {.rate_factors = {1, 2}});
            }),
            "[adam] there are 1 parameters, got 2 rate_factors");
}

TEST(Optimise, ThreadsDoNotChangeAStep) {
  const int threads = thread_count();
  std::vector<Tensor> results;
  for (const int used : {1, 2}) {
    set_thread_count(used);
    const Tensor x = random({100003}, 1).to(at::kFloat);
    Adam adam({x});
    for (int step = 0; step < 3; ++step) adam.step({random({100003}, 2 + step).to(at::kFloat)});
    results.push_back(x);
  }
  set_thread_count(threads);
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

TEST(Optimise, NormPenaltyIsTheSumOfNorms) {
  const Tensor a = at::tensor({3.0, -4.0}, at::kDouble),
               b = at::tensor({1.0, 2.0, 2.0, 4.0}, at::kDouble).reshape({2, 2});
  EXPECT_DOUBLE_EQ(norm_penalty({a, b}, 0.5).item<double>(), 5);
  EXPECT_EQ(norm_penalty({a}, 2).dim(), 0);
}

TEST(Optimise, GradientOfNormPenaltyIsThatOfCentralDifferences) {
  const Tensor other = random({2}, 2);
  const auto f = [&](const Tensor& x) { return norm_penalty({x, other, x * 2}, 0.3); };
  const Tensor x = random({3, 4}, 1);
  EXPECT_LT(relative_error(autograd_gradient(f, x), central_difference(f, x)), 1e-8);
  // a norm has a corner at zero
  const Tensor zero = at::zeros({3}, at::kDouble);
  EXPECT_TRUE(at::equal(autograd_gradient(f, zero), zero));
}

TEST(Optimise, UnusedParametersHaveZeroGradients) {
  const Tensor used = random({2, 3}, 1).set_requires_grad(true),
               unused = random({4}, 2).set_requires_grad(true);
  const std::vector<Tensor> got = gradients(used.pow(2).sum(), {unused, used});
  EXPECT_TRUE(at::equal(got[0], at::zeros({4}, at::kDouble)));
  EXPECT_LT(relative_error(got[1], 2 * used.detach()), 1e-15);
}

TEST(Optimise, BadArgumentsGetASentence) {
  const Tensor x = at::zeros({3}, at::kDouble);
  const auto message_of = [&](const AdamOptions& options) {
    return error_message([&] { Adam({x}, options); });
  };
  EXPECT_EQ(message_of({.learning_rate = -1}),
            "[adam] learning_rate must be finite and not negative, got -1");
  EXPECT_EQ(message_of({.beta1 = 1}), "[adam] beta1 must be in [0, 1), got 1");
  EXPECT_EQ(message_of({.beta2 = -0.5}), "[adam] beta2 must be in [0, 1), got -0.5");
  EXPECT_EQ(message_of({.epsilon = -2}), "[adam] epsilon must be finite and not negative, got -2");
  EXPECT_EQ(error_message([&] { Adam({Tensor()}); }), "[adam] parameter 0 is undefined");
  EXPECT_EQ(error_message([&] { Adam({x.to(at::kLong)}); }),
            "[adam] parameter 0 must be of floating point, got Long");
  Adam adam({x});
  EXPECT_EQ(error_message([&] { adam.step({}); }), "[adam] there are 1 parameters, got 0 gradients");
  EXPECT_EQ(error_message([&] { adam.step({at::zeros({2})}); }),
            "[adam] gradient 0 must be [3] like its parameter, got [2]");
  EXPECT_EQ(error_message([&] { adam.set_learning_rate(std::nan("")); }),
            "[adam] learning_rate must be finite and not negative, got nan");
  EXPECT_EQ(error_message([&] { norm_penalty({}, 1); }),
            "[norm_penalty] there must be at least one tensor, got none");
  EXPECT_EQ(error_message([&] { norm_penalty({x}, -1); }),
            "[norm_penalty] weight must be finite and not negative, got -1");
  EXPECT_EQ(error_message([&] { gradients(x, {x}); }), "[gradients] the loss must have one element, got [3]");
}

}  // namespace
}  // namespace fastweights

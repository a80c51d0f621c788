#include <cmath>

#include "fastweights/gradcheck.h"
#include "fastweights/model.h"
#include "model/programmer_config.h"
#include "model/small_model.h"
#include "support/support.h"

// Trouble that shows when a model runs: steps and windows that do not fit the series, rules, losses.

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::kChannels;
using testing::random;
using testing::refusal;
using testing::small_config;
using testing::small_model;
using testing::some_series;
using testing::with;

TEST(ModelBadRun, WindowsThatDoNotFit) {
  const ModelInput input = {.series = some_series()};
  // series of 6 and 4 points
  EXPECT_EQ(refusal(input, with({{"control.kind", "log_signature"},
                                 {"control.window_increments", "4"},
                                 {"control.window_tail", "drop"}})),
            "[control] sample 1 has too few points for a window of 4 increments");
  EXPECT_NE(refusal(input, with({{"control.kind", "log_signature"}, {"control.window_duration", "1e-300"}}))
                .find("[logsignature_windows] sample 0 would have "),
            std::string::npos);
  EXPECT_EQ(refusal(input, with({{"control.kind", "log_signature"}, {"control.window_duration", "1e300"}})),
            "");
}

TEST(ModelBadRun, StepsThatDoNotFit) {
  const ModelInput input = {.series = some_series()};
  RaggedSeries ends = some_series();
  ends.times.slice(0, 6) += ends.times[0] - ends.times[6];
  const std::string late = refusal(input, with({{"solver.steps", "shared_grid"}}));
  EXPECT_EQ(
      late.find(
          "[model] solver.steps shared_grid needs samples that begin together, but sample 1 begins at "),
      0u);
  EXPECT_EQ(refusal({.series = ends}, with({{"solver.steps", "shared_grid"}})),
            "[model] solver.steps shared_grid needs samples whose signals end together");
  EXPECT_EQ(refusal(input, with({{"solver.steps", "adaptive"},
                                 {"solver.method", "dopri5"},
                                 {"solver.error_control", "joint"}}))
                .find("[model] solver.error_control joint needs samples that begin together"),
            0u);
  EXPECT_EQ(refusal(input, with({{"solver.steps", "fixed"}, {"solver.step_size", "1e-12"}}))
                .find("[model] a step size of "),
            0u);
  EXPECT_EQ(refusal(input, with({{"solver.max_step", "1e-12"}})).find("[model] solver.max_step "), 0u);
  const ModelInput together = {.series = shared_times(irregular_times(5, 1), random({2, 5, kChannels}, 1))};
  EXPECT_EQ(refusal(together, with({{"solver.steps", "shared_grid"}, {"solver.step_size", "1e-12"}}))
                .find("[solve] a step size of "),
            0u);
  EXPECT_EQ(
      refusal(
          together,
          with({{"solver.steps", "shared_grid"}, {"solver.edges", "shortened"}, {"solver.shortening", "9"}}))
          .find("[solve] a step of "),
      0u);
  EXPECT_EQ(refusal(input, with({{"backend", "reference"},
                                 {"solver.method", "rk4"},
                                 {"solver.gradient", "checkpointed"},
                                 {"solver.memory_limit", "1"}}))
                .find("[solve] a memory limit of 1 bytes is less than one state of "),
            0u);
}

TEST(ModelBadRun, EveryMethodAndStepRuleRunsOrSaysWhy) {
  const ModelInput input = {.series = shared_times(irregular_times(5, 1), random({2, 5, kChannels}, 1))};
  std::vector<std::string> methods = {"explicit_adams", "implicit_adams"};
  for (const Tableau& method : all_tableaux()) methods.push_back(method.name);
  for (const std::string& method : methods) {
    for (const char* steps : {"observations", "fixed", "shared_grid", "adaptive"}) {
      for (const char* gradient : {"exact", "checkpointed", "adjoint"}) {
        ProgrammerConfig config =
            with({{"solver.method", method}, {"solver.steps", steps}, {"solver.gradient", gradient}});
        if (auto* regular = std::get_if<RegularSteps>(&config.solver.steps)) regular->size = 0.3;
        const std::string before = error_message([&] { check_config(config); });
        if (!before.empty()) continue;
        // what a checked configuration says runs
        EXPECT_EQ(refusal(input, config), "") << method << " " << steps << " " << gradient;
      }
    }
  }
}

std::string rule_refusal(const RuleSlope& slope) {
  const Rule mine = {.name = "mine", .slope = slope};
  const Model model(with({{"rule", "mine"}}), {.custom_rules = {mine}});
  return error_message([&] { model.forward({.series = some_series()}); });
}

// a span of 3 in steps of at most 0.05
TEST(ModelBadRun, AdaptiveStepsAreAtMostMaxStep) {
  const RaggedSeries series = shared_times(at::arange(4, at::kDouble), random({2, 4, kChannels}, 1));
  ProgrammerConfig config = with({{"solver.steps", "adaptive"},
                                  {"solver.method", "dopri5"},
                                  {"solver.rtol", "1e-2"},
                                  {"solver.atol", "1e-2"}});
  const int64_t free = small_model(config).forward({.series = series}).steps;
  std::get<AdaptiveSteps>(config.solver.steps).largest_step = 0.05;
  const int64_t limited = small_model(config).forward({.series = series}).steps;
  EXPECT_LT(free, 30);
  EXPECT_GE(limited, 60);
}

TEST(ModelBadRun, RulesThatGiveSomethingElse) {
  const std::string shape = "[model] rule mine must give dW/dt of the shape of W [2, 2, 5, 5], got ";
  EXPECT_EQ(rule_refusal([](auto& k, auto&, auto&, auto&) { return k; }), shape + "[2, 2, 5]");
  EXPECT_EQ(rule_refusal([](auto&, auto&, auto&, auto& w) { return w[0]; }), shape + "[2, 5, 5]");
  EXPECT_EQ(rule_refusal([](auto&, auto&, auto&, auto&) { return Tensor(); }), shape + "nothing");
  EXPECT_EQ(rule_refusal([](auto&, auto&, auto&, auto& w) { return w.to(at::kDouble); }),
            "[model] rule mine must give dW/dt of the type of W Float, got Double");
  // what a rule throws comes through as it is
  EXPECT_EQ(rule_refusal(
                [](auto&, auto&, auto&, auto&) -> Tensor { throw std::invalid_argument("no rule today"); }),
            "no rule today");
}

TEST(ModelBadRun, GradientChecksThatCannotBe) {
  const ModelInput input = {.series = some_series()};
  const auto refused = [&](const Model& model, const Loss& loss, const GradcheckOptions& options) {
    return error_message([&] { gradcheck(model, input, loss, options); });
  };
  const Model model = small_model(), single(small_config());
  EXPECT_EQ(refused(single, random_loss(1), {}),
            "[gradcheck] differences need a model in float64, got Float");
  EXPECT_EQ(refused(model, {}, {}), "[gradcheck] the loss is empty");
  EXPECT_EQ(refused(model, [](const Tensor& y) { return y; }, {}),
            "[gradcheck] the loss must be a scalar, got [2, 2]");
  EXPECT_EQ(refused(model, [](const Tensor&) { return Tensor(); }, {}),
            "[gradcheck] the loss must be a scalar, got nothing");
  EXPECT_EQ(refused(model, random_loss(1), {.modes = {}}), "[gradcheck] there must be at least one mode");
  EXPECT_EQ(refused(model, random_loss(1), {.directions = 0})
                .find("[gradcheck] directions and step must be positive"),
            0u);
  EXPECT_EQ(
      refused(model, random_loss(1), {.step = NAN}).find("[gradcheck] directions and step must be positive"),
      0u);
  EXPECT_EQ(error_message([] { synthetic_series({.samples = 0}); }),
            "[synthetic_series] there must be at least 1 sample, 1 channel and 2 points, got 0, 2 and 9");
  EXPECT_EQ(error_message([] { synthetic_series({.length = INT64_MAX}); }).find("[synthetic_series] "), 0u);
}

}  // namespace
}  // namespace fastweights

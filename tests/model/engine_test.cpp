#include <gtest/gtest.h>

#include <cmath>

#include "fastweights/environment.h"
#include "model/cases.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// The fused engine behind a model against the definition, and what it promises.

namespace fastweights::testing {
namespace {

constexpr uint64_t kSeeds = 60;

bool is_cpu(const std::string& backend) { return backend.rfind("cpu-", 0) == 0; }

Model model_with(ProgrammerConfig config, Backend backend, at::ScalarType type = at::kDouble) {
  config.backend = backend;
  return Model(config, {.seed = 3, .type = type});
}

std::vector<Tensor> everything(const Passes& passes) {
  std::vector<Tensor> all = passes.parameters;
  for (const auto& sample : passes.samples) all.insert(all.end(), sample.begin(), sample.end());
  return all;
}

// relative to the largest number of all gradients or outputs: a gradient that is a sum of cancelling parts is
// no better than they are
double largest_error(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  const double scale = flat(expected).abs().max().item<double>();
  return (flat(got).to(at::kDouble) - flat(expected)).abs().max().item<double>() / scale;
}

// a random model that the engine can do: equal widths, few stages, steps that are known before
ProgrammerConfig engine_config(uint64_t seed) {
  static const std::vector<std::string> kMethods = {"rk4",   "midpoint",    "heun3", "euler",
                                                    "bosh3", "rk4_classic", "heun2"};
  ProgrammerConfig config;
  for (uint64_t other = seed;; other += 1000) {
    config = random_config(other);
    if (!config.tensor_map) break;
  }
  config.key_width = config.value_width = 0;
  config.hidden_size = config.heads * static_cast<int64_t>(1 + seed % 6);
  const auto* regular = std::get_if<RegularSteps>(&config.solver.steps);
  config.solver = {
      .method = method(kMethods[seed % kMethods.size()]),
      .steps = regular ? ModelSteps(RegularSteps{.size = regular->size}) : ModelSteps(ObservationSteps{})};
  check_config(config);
  return config;
}

TEST(Engine, GivesTheDefinitionsNumbersAndGradients) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ProgrammerConfig config = engine_config(seed);
    const std::vector<Sample> samples = random_samples(config, 5, seed);
    const Passes expected = run_passes(model_with(config, Backend::Reference), samples);
    const Passes got = run_passes(model_with(config, Backend::Cpu), samples);
    EXPECT_EQ(expected.output.backend, "reference");
    EXPECT_TRUE(is_cpu(got.output.backend)) << got.output.backend;
    // float64 over a few steps
    EXPECT_LT(largest_error(everything(got), everything(expected)), 1e-11)
        << "seed " << seed << to_json(config);
    EXPECT_EQ(got.output.steps, expected.output.steps);
  }
}

TEST(Engine, DeterministicModeGivesTheSameBitsAloneAndInAnyBatch) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ProgrammerConfig config = engine_config(seed);
    config.deterministic = true;
    if (config.query == QueryTime::LastOfBatch) continue;
    const at::ScalarType type = seed % 2 ? at::kFloat : at::kDouble;
    const Model model = model_with(config, Backend::Cpu, type);
    const std::vector<Sample> samples = random_samples(config, 5, seed);
    const PerSample together = run_passes(model, samples).samples;
    const PerSample backwards = run_passes(model, chosen(samples, {4, 3, 2, 1, 0})).samples;
    for (int64_t b = 0; b < 5; ++b) {
      // the first sample has outputs, which a loss needs
      const size_t place = b == 0 ? 0 : 1;
      const std::vector<int64_t> which = b == 0 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, b};
      const PerSample alone = run_passes(model, chosen(samples, which)).samples;
      for (size_t i = 0; i < together[b].size(); ++i) {
        EXPECT_TRUE(same_bits(together[b][i], alone[place][i])) << "seed " << seed << " sample " << b;
        EXPECT_TRUE(same_bits(together[b][i], backwards[4 - b][i])) << "seed " << seed << " sample " << b;
      }
    }
  }
}

TEST(Engine, BlocksOfTimeChangeNothing) {
  int64_t cut = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ProgrammerConfig config = engine_config(seed);
    if (auto* steps = std::get_if<ObservationSteps>(&config.solver.steps)) steps->max_step = 0.02;
    const std::vector<Sample> samples = random_samples(config, 3, seed);
    const Passes whole = run_passes(model_with(config, Backend::Cpu), samples);
    config.solver.memory_limit = 1;
    const Passes blocks = run_passes(model_with(config, Backend::Cpu), samples);
    EXPECT_EQ(whole.output.plan.blocks, 1);
    if (blocks.output.plan.blocks > 1) ++cut;
    EXPECT_LT(largest_error(everything(blocks), everything(whole)), 1e-12) << "seed " << seed;
  }
  EXPECT_GT(cut, 20);
}

TEST(Engine, SaysWhyItCannotAndLeavesItToTheDefinition) {
  struct Case {
    std::vector<std::pair<std::string, std::string>> settings;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {{{"drive", "tensor_map"}, {"initial", "zero"}}, "a tensor map has no rule"},
      {{{"key_width", "3"}}, "values are 8 wide and keys 3"},
      {{{"hidden_size", "130"}, {"heads", "2"}}, "heads are 65 wide, more than 64"},
      {{{"solver.method", "dopri5"}}, "method dopri5 has 7 stages, more than 4"},
      {{{"solver.method", "dopri5"}, {"solver.steps", "adaptive"}}, "adaptive steps depend on W"},
      {{{"solver.method", "explicit_adams"}, {"solver.steps", "shared_grid"}},
       "method explicit_adams is not a Runge-Kutta method"},
      {{{"solver.gradient", "adjoint"}}, "the adjoint solves another equation backwards"}};
  const ModelInput input = {.series = shared_times(at::arange(4, at::kDouble), random({2, 4, 1}, 1))};
  for (const Case& c : cases) {
    ProgrammerConfig config;
    for (const auto& [key, value] : c.settings) config = ProgrammerConfig(with_setting(config, key, value));
    EXPECT_EQ(error_message([&] { model_with(config, Backend::Cpu).forward(input); }),
              "[model] backend cpu cannot be used: " + c.reason);
    EXPECT_EQ(model_with(config, Backend::Auto).forward(input).backend, "reference") << c.reason;
    EXPECT_FALSE(c.reason.find("adjoint") == std::string::npos &&
                 model_with(config, Backend::Auto).plan(input).has_value());
  }
  const auto observed = [&] {
    model_with({}, Backend::Cpu).forward(input, {.observe = [](const Time&, const Samples&) {}});
  };
  EXPECT_EQ(error_message(observed),
            "[model] backend cpu cannot be used: ForwardOptions::observe is set, and kernels do not report "
            "evaluations");
}

TEST(Engine, AutoTakesItAndSaysSo) {
  const ModelInput input = {.series = shared_times(at::arange(4, at::kDouble), random({2, 4, 1}, 1))};
  const ModelOutput output = model_with({}, Backend::Auto).forward(input);
  EXPECT_EQ(output.backend, "cpu-" + environment().instruction_set);
  EXPECT_EQ(output.plan.blocks, 1);
  // three intervals of two steps each
  EXPECT_EQ(output.plan.steps, 6);
  EXPECT_EQ(model_with({}, Backend::Auto).plan(input)->steps, 6);
}

TEST(Engine, PlanNamesBlocksAndBytes) {
  const MemoryPlan whole = {
      .steps = 100, .blocks = 1, .block_steps = 100, .checkpoint = 64, .bytes = 3 << 20};
  EXPECT_EQ(whole.message(),
            "100 steps in one block, a state kept every 64 steps, about 3 MB beyond the data");
  const MemoryPlan cut = {.steps = 1000, .blocks = 4, .block_steps = 256, .checkpoint = 64, .bytes = 3 << 20};
  EXPECT_EQ(cut.message(),
            "1000 steps in 4 blocks of 256, a state kept every 64 steps, about 3 MB beyond the data");
}

// the flow of a model against the definition, and against a fine adaptive solve
struct FlowErrors {
  double definition, fine;
};

FlowErrors flow_errors(ProgrammerConfig config, const std::vector<Sample>& samples, double max_step) {
  config.solver.method = Flow{};
  config.solver.steps = ObservationSteps{.max_step = max_step};
  const Passes flow = run_passes(model_with(config, Backend::Cpu), samples);
  const Passes definition = run_passes(model_with(config, Backend::Reference), samples);
  EXPECT_EQ(definition.output.backend, "reference");
  config.solver.method = dopri5();
  config.solver.steps = AdaptiveSteps{.rtol = 1e-10, .atol = 1e-12};
  const Passes fine = run_passes(model_with(config, Backend::Reference), samples);
  return {largest_error(everything(flow), everything(definition)),
          largest_error(everything(flow), everything(fine))};
}

ProgrammerConfig flow_config(const char* rule, Drive drive, const ControlPath& control, int64_t layers) {
  ProgrammerConfig config;
  config.channels = 2;
  config.outputs = 2;
  config.rule = rule;
  config.drive = drive;
  config.control.path = control;
  config.hidden_size = 6;
  config.heads = 2;
  config.layers = layers;
  return config;
}

constexpr const char* kFlowRules[] = {"hebb", "oja", "delta_pre", "delta_post"};

// under a signal that is constant between observations there is no method error
TEST(Engine, FlowIsTheLimitOfSmallSteps) {
  struct Setting {
    ControlPath control;
    Drive drive;
  };
  for (const Setting& setting :
       {Setting{Hold{}, Drive::X}, {LogSignatures{}, Drive::X}, {Linear{}, Drive::Derivative}}) {
    for (const char* rule : kFlowRules) {
      const ProgrammerConfig config = flow_config(rule, setting.drive, setting.control, 1);
      const FlowErrors errors = flow_errors(config, random_samples(config, 3, 5), 0);
      EXPECT_LT(errors.definition, 1e-11) << rule;
      // ten times the tolerance of the solve
      EXPECT_LT(errors.fine, 1e-9) << rule;
    }
  }
}

// W and outputs with steps of at most this size
Tensor flow_result(ProgrammerConfig config, const std::vector<Sample>& samples, const Method& method,
                   double max_step) {
  config.solver.method = method;
  config.solver.steps = ObservationSteps{.max_step = max_step};
  const at::NoGradGuard no_grad;
  const ModelOutput output = model_with(config, Backend::Cpu).forward(input_of(samples));
  return at::cat({output.outputs.flatten(), at::stack(output.last.w, 1).flatten()});
}

// under any other one half the step leaves a quarter of the error; also in deep models, unless they read
// derivatives of layers below, which jump where a unit of the feed-forward net switches
TEST(Engine, FlowHasOrderTwo) {
  for (const ControlPath& control : {ControlPath(HermiteCubic{}), ControlPath(NaturalCubic{})}) {
    for (const Drive drive : {Drive::X, Drive::DerivativeKeys, Drive::DerivativeValues, Drive::Derivative}) {
      for (const int64_t layers : {1, 2}) {
        for (const char* rule : kFlowRules) {
          const ProgrammerConfig config = flow_config(rule, drive, control, layers);
          const std::vector<Sample> samples = random_samples(config, 3, 5);
          const Tensor fine = flow_result(config, samples, rk4(), 0.002);
          const auto error = [&](double max_step) {
            return relative_error(flow_result(config, samples, Flow{}, max_step), fine);
          };
          const double coarse = error(0.04), half = error(0.02);
          if (layers == 1 || drive == Drive::X) {
            EXPECT_LT(half, coarse / 3.2) << rule << ", " << layers << " layers: " << coarse;
          }
          EXPECT_LT(half, 1e-3) << rule << ", " << layers << " layers";
        }
      }
    }
  }
}

TEST(Engine, FlowRefusesWhatHasNoSolution) {
  ProgrammerConfig config;
  config.solver.method = Flow{};
  EXPECT_NO_THROW(check_config(config));
  const auto refused = [&](const std::string& key, const std::string& value) {
    return error_message([&] { check_config(with_setting(config, key, value)); });
  };
  EXPECT_EQ(refused("rule", "oja_softmax"),
            "[config] solver.method flow needs another rule: oja_softmax has no closed solution");
  EXPECT_EQ(refused("learning_rate", "raw"),
            "[config] solver.method flow needs learning_rate sigmoid: a negative rate grows without bound");
  EXPECT_EQ(refused("solver.gradient", "adjoint"),
            "[config] solver.method flow needs solver.gradient exact or checkpointed");
  EXPECT_EQ(refused("solver.steps", "adaptive"),
            "[config] solver.method flow needs steps that are not adaptive");
}

TEST(Engine, TheAutomaticMethodIsFlowWhereThereIsOne) {
  const auto chosen = [](const std::string& key, const std::string& value) {
    ProgrammerConfig config;
    const ModelConfig made =
        Model(key.empty() ? ModelConfig(config) : with_setting(config, key, value)).config();
    return method_name(*solver_of(made)->method);
  };
  EXPECT_EQ(chosen("", ""), "flow");
  EXPECT_EQ(chosen("rule", "delta_post"), "flow");
  EXPECT_EQ(chosen("rule", "oja_softmax"), "rk4");
  EXPECT_EQ(chosen("learning_rate", "raw"), "rk4");
  EXPECT_EQ(chosen("solver.gradient", "adjoint"), "rk4");
  EXPECT_EQ(chosen("solver.steps", "shared_grid"), "rk4");
  EXPECT_EQ(chosen("solver.method", "heun3"), "heun3");
}

TEST(Engine, AnInputOfZeroLengthMovesNothing) {
  ModelInput input = {.series = shared_times(at::arange(4, at::kDouble), random({2, 4, 1}, 1))};
  input.output_times = {at::zeros({2}, at::kDouble), at::arange(3, at::kLong)};
  const Model model = model_with({}, Backend::Cpu);
  const ModelOutput output = model.forward(input);
  EXPECT_TRUE(at::isfinite(output.outputs).all().item<bool>());
  const std::vector<Tensor> grads =
      vector_jacobian({output.outputs.sum()}, model.parameter_tensors(), {at::ones({}, at::kDouble)});
  for (const Tensor& grad : grads) EXPECT_TRUE(at::isfinite(grad).all().item<bool>());
}

}  // namespace
}  // namespace fastweights::testing

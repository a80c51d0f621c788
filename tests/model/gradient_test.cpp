#include "fastweights/gradcheck.h"

#include "fastweights/model.h"
#include "model/config_names.h"
#include "model/gradients.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::expect_adjoint_converges;
using testing::expect_exact_gradients;
using testing::expect_gradients_of;
using testing::LossOf;
using testing::random;

// batch 3, channels 6, heads 2, key width 4, value width 5, hidden 9, outputs 7: no two alike
ProgrammerConfig small_config() {
  ProgrammerConfig config;
  config.channels = 6;
  config.outputs = 7;
  config.hidden_size = 9;
  config.heads = 2;
  config.key_width = 4;
  config.value_width = 5;
  config.feed_forward_size = 11;
  config.time_unit = 0.7;
  return config;
}

// ragged and irregular, with missing values, but for the first channel, which a rectilinear path takes as
// time
struct Size {
  std::vector<int64_t> lengths;
  double amplitude;
};

RaggedSeries observations(const Size& size) {
  std::vector<Tensor> times, values;
  for (size_t b = 0; b < size.lengths.size(); ++b) {
    const Tensor t = testing::irregular_times(size.lengths[b], 10 + b);
    const Tensor x = size.amplitude * random({size.lengths[b], 5}, 20 + b);
    times.push_back(t);
    values.push_back(at::cat({t.unsqueeze(1), testing::with_missing(x, 0.2, 30 + b)}, 1));
  }
  return ragged(times, values);
}

Model small_model(const ProgrammerConfig& config, const std::vector<Rule>& custom_rules = {}) {
  return Model(config, {.seed = 5, .type = at::kDouble, .custom_rules = custom_rules});
}

ModelInput input_of(const ProgrammerConfig& config, const Size& size) {
  ModelInput input = {.series = observations(size)};
  if (config.static_features > 0) input.static_features = random({3, config.static_features}, 40);
  return input;
}

// going on from full weights of all layers at the first observations
ModelInput started(ModelInput input, const ProgrammerConfig& config) {
  const Tensor begins = input.series.times.index_select(0, input.series.offsets.slice(0, 0, -1));
  input.start = FastWeightState{random({config.layers, 3, 2, 5, 4}, 60).unbind(0), begins};
  return input;
}

// the loss of a model as a function of a tensor of its input
LossOf loss_of(const Model& model, const std::function<ModelInput(const Tensor&)>& with) {
  return [model, with](const SolverConfig& solver, const Tensor& x) {
    Model copy = model;
    copy.set_solver(solver);
    return random_loss(3)(copy.forward(with(x)).outputs);
  };
}

LossOf loss_of_values(const Model& model, const ModelInput& input) {
  return loss_of(model, [input](const Tensor& values) {
    ModelInput moved = input;
    moved.series.values = values;
    return moved;
  });
}

// differences take any signal. The adjoint shows its order only where steps are short against the changes of
// the slow net, whose norm is sharp where it divides by little: few steps will do for a gentle signal.
const Size kLively = {{7, 4, 5}, 1}, kGentle = {{3, 2, 2}, 0.4}, kWindows = {{5, 2, 3}, 1};

// half of the hidden units always on and half always off, so that the field has no kinks: at a kink inside a
// step no method has its order
void keep_hidden_units(const Model& model) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : model.parameters()) {
    const bool deep = name.rfind("layers.", 0) == 0 && name.find(".ff.in.bias") != std::string::npos;
    if (!deep && name != "map.0.bias") continue;
    const Tensor even = at::arange(parameter.size(0), at::kLong) % 2 == 0;
    parameter.copy_(at::where(even, at::full_like(parameter, 9), at::full_like(parameter, -9)));
  }
}

struct RuleAndDrive {
  std::string rule;
  Drive drive;
};

class ModelGradientOf : public ::testing::TestWithParam<RuleAndDrive> {
 protected:
  static ProgrammerConfig config() {
    ProgrammerConfig config = small_config();
    config.rule = GetParam().rule;
    config.drive = GetParam().drive;
    return config;
  }
};

TEST_P(ModelGradientOf, ParametersEqualsCentralDifferences) {
  const ProgrammerConfig c = config();
  expect_exact_gradients(small_model(c), input_of(c, kLively));
}

TEST_P(ModelGradientOf, ParametersByTheAdjointIsAsGoodAsTheSteps) {
  const ProgrammerConfig c = config();
  expect_adjoint_converges(small_model(c), input_of(c, kGentle));
}

TEST_P(ModelGradientOf, ValuesEqualsCentralDifferences) {
  const ProgrammerConfig c = config();
  const ModelInput input = input_of(c, kGentle);
  expect_gradients_of(loss_of_values(small_model(c), input), input.series.values);
}

std::vector<RuleAndDrive> rules_and_drives() {
  std::vector<RuleAndDrive> cases;
  for (const Rule& rule : all_rules()) {
    for (Drive drive : {Drive::X, Drive::DerivativeKeys, Drive::DerivativeValues, Drive::Derivative}) {
      cases.push_back({rule.name, drive});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(ModelGradient, ModelGradientOf, ::testing::ValuesIn(rules_and_drives()),
                         [](const auto& info) {
                           return info.param.rule + "_driven_by_" + name_of(info.param.drive);
                         });

TEST(ModelGradient, OfATensorMap) {
  ProgrammerConfig config = small_config();
  config.tensor_map = true;
  config.key_width = config.value_width = 0;
  config.initial = InitialWeights::FirstObservation;
  config.map_hidden_size = 8;
  const ModelInput input = input_of(config, kGentle);
  const Model model = small_model(config);
  expect_exact_gradients(model, input);
  keep_hidden_units(model);
  // units that are off have no gradient, the parameters as a whole have
  expect_adjoint_converges(model, input);
  expect_gradients_of(loss_of_values(model, input), input.series.values);
}

// parameters and values of one model
void expect_all_gradients(const ProgrammerConfig& config, const std::vector<std::string>& silent = {}) {
  const Model model = small_model(config);
  expect_exact_gradients(model, input_of(config, {{4, 2, 3}, 1}), silent);
  keep_hidden_units(model);
  ModelInput input =
      input_of(config, std::holds_alternative<LogSignatures>(config.control.path) ? kWindows : kGentle);
  // an empty W gives nothing to divide by
  if (config.layers > 1) input = started(input, config);
  expect_adjoint_converges(model, input);
  expect_gradients_of(loss_of_values(model, input), input.series.values);
}

TEST(ModelGradient, ThroughEveryControlPath) {
  for (const ControlPath& kind :
       std::vector<ControlPath>{NaturalCubic{}, HermiteCubic{}, Linear{}, Rectilinear{}, Hold{}}) {
    SCOPED_TRACE(name_of(kind));
    ProgrammerConfig config = small_config();
    config.control.path = kind;
    config.rule = "delta_post";
    config.drive = std::holds_alternative<Hold>(kind) ? Drive::X : Drive::DerivativeKeys;
    expect_all_gradients(config);
  }
}

TEST(ModelGradient, ThroughLogSignatures) {
  for (int64_t depth : {1, 2, 3}) {
    for (Drive drive : {Drive::X, Drive::Derivative}) {
      for (WindowClock clock : {WindowClock::Windows, WindowClock::Time}) {
        SCOPED_TRACE(name_of(drive) + " " + name_of(clock) + " " + std::to_string(depth));
        ProgrammerConfig config = small_config();
        const PointWindows windows = {.increments = 2, .tail = WindowTail::Keep};
        config.control.path = LogSignatures{.depth = depth, .windows = windows, .clock = clock};
        config.drive = drive;
        expect_all_gradients(config);
      }
    }
  }
}

struct Deep {
  int64_t layers;
  LayerInput layer_input;
  Drive drive;
};

class ModelGradientOfDeep : public ::testing::TestWithParam<Deep> {};

TEST_P(ModelGradientOfDeep, ModelsEqualsCentralDifferences) {
  const Deep deep = GetParam();
  for (bool residual : {false, true}) {
    SCOPED_TRACE(residual ? "residual" : "plain");
    ProgrammerConfig config = small_config();
    // more evaluations meet a corner of a unit of the feed-forward nets, where there is no derivative
    config.solver.steps = ObservationSteps{.parts = 1};
    config.layers = deep.layers;
    config.layer_input = deep.layer_input;
    config.drive = deep.drive;
    config.residual = residual;
    // as many as W gives
    if (residual) config.hidden_size = 10;
    // the last layer reads the derivative of FFN(W q) alone: constants are lost in it, and what stands before
    // the ReLU only says which units are on
    std::vector<std::string> silent;
    if (deep.drive == Drive::Derivative && deep.layer_input == LayerInput::Weights) {
      const std::string ff = "layers." + std::to_string(deep.layers - 2) + ".ff.";
      silent = {ff + "norm.bias", ff + "in.bias", ff + "out.bias"};
    }
    if (deep.layers == 2) {
      expect_all_gradients(config, silent);
    } else {
      // nothing is new for the adjoint
      expect_exact_gradients(small_model(config), input_of(config, {{4, 2, 3}, 1}), silent);
    }
  }
}

std::vector<Deep> deep_models() {
  std::vector<Deep> cases;
  for (int64_t layers : {2, 3}) {
    for (LayerInput layer_input : {LayerInput::Weights, LayerInput::Update}) {
      for (Drive drive : {Drive::X, Drive::Derivative}) cases.push_back({layers, layer_input, drive});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(ModelGradient, ModelGradientOfDeep, ::testing::ValuesIn(deep_models()),
                         [](const auto& info) {
                           return name_of(info.param.layer_input) + "_" + name_of(info.param.drive) + "_" +
                                  std::to_string(info.param.layers);
                         });

TEST(ModelGradient, WithEveryOptionOfTheSlowNetAndTheReadout) {
  const std::vector<std::pair<std::string, std::function<void(ProgrammerConfig&)>>> changes = {
      {"value norm", [](ProgrammerConfig& c) { c.value_norm = true; }},
      {"transposed read", [](ProgrammerConfig& c) { c.read = Read::Transposed; }},
      {"raw rates", [](ProgrammerConfig& c) { c.learning_rate = LearningRate::Raw; }},
      {"raw values", [](ProgrammerConfig& c) { c.value_activation = ValueActivation::None; }},
      {"sums in a fixed order", [](ProgrammerConfig& c) { c.deterministic = true; }},
      {"empty weights at first", [](ProgrammerConfig& c) { c.initial = InitialWeights::Zero; }},
      {"query at the first observation",
       [](ProgrammerConfig& c) {
         c.initial = InitialWeights::FirstObservation;
         c.query = QueryTime::FirstObservation;
       }},
      {"query at the last time", [](ProgrammerConfig& c) { c.query = QueryTime::LastOfBatch; }}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    ProgrammerConfig config = small_config();
    config.drive = Drive::DerivativeKeys;
    change(config);
    expect_all_gradients(config);
  }
}

TEST(ModelGradient, OfStaticFeatures) {
  for (const bool tensor_map : {false, true}) {
    SCOPED_TRACE(tensor_map);
    ProgrammerConfig config = small_config();
    config.tensor_map = tensor_map;
    if (tensor_map) config.key_width = config.value_width = 0;
    config.initial = InitialWeights::StaticFeatures;
    config.static_features = 8;
    config.static_hidden_size = 13;
    const Model model = small_model(config);
    const ModelInput input = input_of(config, kGentle);
    expect_exact_gradients(model, input);
    keep_hidden_units(model);
    const LossOf loss = loss_of(model, [&input](const Tensor& features) {
      ModelInput moved = input;
      moved.static_features = features;
      return moved;
    });
    expect_gradients_of(loss, input.static_features);
  }
}

TEST(ModelGradient, OfTheStateAtTheStart) {
  ProgrammerConfig config = small_config();
  config.layers = 2;
  config.rule = "oja";
  const Model model = small_model(config);
  keep_hidden_units(model);
  const ModelInput input = input_of(config, kGentle);
  const LossOf loss = loss_of(model, [&](const Tensor& w) {
    ModelInput moved = input;
    // between the first two observations of each
    const Tensor begins = input.series.times.index_select(0, input.series.offsets.slice(0, 0, -1));
    moved.start = FastWeightState{{w[0], w[1]}, begins + 0.05};
    return moved;
  });
  expect_gradients_of(loss, random({2, 3, 2, 5, 4}, 61));
}

// 4, 1 and 2 output times, at observations and between them
TEST(ModelGradient, OfSeveralOutputsPerSample) {
  for (Drive drive : {Drive::X, Drive::DerivativeKeys}) {
    SCOPED_TRACE(name_of(drive));
    ProgrammerConfig config = small_config();
    config.drive = drive;
    config.layers = 2;
    const Model model = small_model(config);
    keep_hidden_units(model);
    ModelInput input = started(input_of(config, {{4, 2, 3}, 0.2}), config);
    const Tensor t = input.series.times;
    const Tensor outputs = at::stack({t[0], t[0] * 0.4 + t[1] * 0.6, t[2], t[3], t[4] * 0.5 + t[5] * 0.5,
                                      t[6] * 0.1 + t[7] * 0.9, t[7] * 0.3 + t[8] * 0.7});
    input.output_times = RaggedTimes{outputs, at::tensor({0, 4, 5, 7}, at::kLong)};
    ASSERT_EQ(model.forward(input).outputs.size(0), 7);
    expect_adjoint_converges(model, input);
    expect_gradients_of(loss_of_values(model, input), input.series.values);
  }
}

TEST(ModelGradient, WithDropout) {
  ProgrammerConfig config = small_config();
  config.drive = Drive::Derivative;
  config.layers = 2;
  config.value_dropout = 0.4;
  config.dropout = 0.3;
  const Model model = small_model(config);
  keep_hidden_units(model);
  const ModelInput input = started(input_of(config, kGentle), config);
  const LossOf loss = [&](const SolverConfig& solver, const Tensor& values) {
    Model copy = model;
    copy.set_solver(solver);
    ModelInput moved = input;
    moved.series.values = values;
    return random_loss(3)(copy.forward(moved, {.mode = Mode::Train, .seed = 7}).outputs);
  };
  expect_gradients_of(loss, input.series.values);
}

TEST(ModelGradient, OfARuleOfOnesOwn) {
  // a rule that forgets
  const Rule own = {"decaying", KeyForm::Raw, ValueForm::Tanh,
                    [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
                      return outer_product(beta * v, at::tanh(k)) - beta.unsqueeze(-1) * at::tanh(w);
                    }};
  ProgrammerConfig config = small_config();
  config.rule = own.name;
  const Model model = small_model(config, {own});
  expect_exact_gradients(model, input_of(config, kGentle));
  expect_adjoint_converges(model, input_of(config, kGentle));
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "fastweights/model.h"
#include "fastweights/published.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;

using Settings = std::vector<std::pair<std::string, std::string>>;

ModelConfig configured(const Settings& settings) {
  ModelConfig config = {.channels = 3, .outputs = 2};
  for (const auto& [key, value] : settings) config = with_setting(config, key, value);
  return config;
}

std::string named(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += key + "=" + value + " ";
  return text;
}

struct Refused {
  Settings settings;
  std::string sentence;  // how it begins
};

void expect_refused(const std::vector<Refused>& cases) {
  for (const Refused& c : cases) {
    const std::string found = error_message([&] { check_config(configured(c.settings)); });
    EXPECT_EQ(found.find(c.sentence), 0u) << named(c.settings) << ": " << found;
    // a model does not come into being either
    EXPECT_EQ(error_message([&] { Model(configured(c.settings)); }), found);
  }
}

void expect_fine(const std::vector<Settings>& cases) {
  for (const Settings& settings : cases) {
    EXPECT_EQ(error_message([&] { check_config(configured(settings)); }), "") << named(settings);
  }
}

const Settings kMap = {{"architecture", "tensor_map"}};

Settings map_with(const std::string& key, const std::string& value) {
  Settings settings = kMap;
  settings.emplace_back(key, value);
  return settings;
}

TEST(ModelConfigCheck, SizesThatAreNone) {
  std::vector<Refused> cases;
  for (const std::string key : {"channels", "outputs", "hidden_size", "heads", "static_hidden_size", "layers",
                                "control.window_increments", "control.depth"}) {
    for (const char* value : {"0", "-1", "-9223372036854775808"}) {
      Settings settings = {{key, value}};
      if (key.find("control.") == 0) settings.insert(settings.begin(), {"control.kind", "log_signature"});
      cases.push_back({settings, "[config] " + key + " must be at least 1, got " + value});
    }
  }
  cases.push_back({{{"control.kind", "rectilinear"}, {"control.time_channel", "-1"}},
                   "[config] control.time_channel must be at least 0, got -1"});
  for (const char* key : {"map_hidden_size", "map_layers"})
    cases.push_back({map_with(key, "0"), std::string("[config] ") + key + " must be at least 1, got 0"});
  for (const char* key : {"static_features", "key_width", "value_width", "feed_forward_size"}) {
    cases.push_back({{{key, "-1"}}, std::string("[config] ") + key + " must be at least 0, got -1"});
  }
  for (const char* key : {"channels", "outputs", "hidden_size", "heads", "layers", "key_width"}) {
    cases.push_back({{{key, "9223372036854775807"}},
                     std::string("[config] ") + key + " must be at most 100000000, got 9223372036854775807"});
  }
  expect_refused(cases);
}

TEST(ModelConfigCheck, SizesThatNoMemoryHolds) {
  expect_refused({
      {{{"hidden_size", "100000000"}},
       "[config] these sizes need about 1.200000012e+17 parameters, 480000 TB; the limit is 1000000000; "
       "reduce hidden_size, which is 100000000"},
      {{{"outputs", "100000000"}}, "[config] these sizes need about "},
      {{{"channels", "100000000"}, {"hidden_size", "1"}, {"heads", "1"}, {"initial", "first_observation"}},
       "[config] these sizes need about "},
      {{{"layers", "100000"}}, "[config] layers must be at most 1000, got 100000"},
      {{{"layers", "1000"}, {"hidden_size", "4096"}}, "[config] these sizes need about "},
      {{{"feed_forward_size", "100000000"}}, "[config] these sizes need about "},
      {{{"key_width", "100000000"}, {"value_width", "100000000"}, {"heads", "100000000"}},
       "[config] these sizes need about "},
      {{{"initial", "static_features"}, {"static_features", "100000000"}},
       "[config] these sizes need about "},
      {{{"initial", "static_features"}, {"static_features", "1"}, {"static_hidden_size", "100000000"}},
       "[config] these sizes need about "},
      {map_with("hidden_size", "100000000"), "[config] these sizes need about "},
      {map_with("channels", "100000000"), "[config] these sizes need about "},
      {map_with("map_layers", "100000"), "[config] map_layers must be at most 1000, got 100000"},
      {map_with("map_hidden_size", "100000000"), "[config] these sizes need about "},
      {{{"hidden_size", "2"}, {"heads", "1"}, {"key_width", "100000"}, {"value_width", "100000"}},
       "[config] these sizes need about 10000000000 fast weights for every sample, 40 GB; the limit is "
       "1000000000; reduce key_width, which is 100000"},
  });
  expect_fine({{{"hidden_size", "4096"}, {"heads", "16"}}, {{"channels", "1000000"}}});
}

TEST(ModelConfigCheck, NumbersOutsideTheirRange) {
  std::vector<Refused> cases;
  for (const char* key : {"dropout", "value_dropout"}) {
    for (const char* value : {"1", "-0.25", "7"}) {
      cases.push_back(
          {{{key, value}}, std::string("[config] ") + key + " must be at least 0 and below 1, got "});
    }
  }
  const std::pair<std::string, std::string> adaptive = {"solver.steps", "adaptive"};
  for (const char* value : {"0", "-1"}) {
    cases.push_back({{{"time_unit", value}}, "[config] time_unit must be positive, got "});
    for (const std::string key : {"solver.rtol", "solver.atol"})
      cases.push_back({{{"solver.method", "dopri5"}, adaptive, {key, value}},
                       "[config] " + key + " must be positive, got "});
  }
  cases.push_back({{{"control.kind", "log_signature"}, {"control.window_duration", "-1"}},
                   "[config] control.window_duration must be positive, or 0"});
  for (const std::string key : {"max_step", "first_step", "smallest_step", "max_steps"})
    cases.push_back({{{"solver.method", "dopri5"}, adaptive, {"solver." + key, "-1"}},
                     "[config] solver." + key + " must be "});
  cases.push_back({{{"solver.steps", "shared_grid"}, {"solver.step_size", "-1"}},
                   "[config] solver.step_size must not be negative, got -1"});
  cases.push_back(
      {{{"solver.max_step", "-1"}}, "[config] solver.max_step must be positive, or 0 for no limit"});
  cases.push_back({{{"solver.memory_limit", "-1"}}, "[config] solver.memory_limit must not be negative"});
  cases.push_back({{{"solver.steps", "shared_grid"}, {"solver.shortening", "-1"}},
                   "[config] solver.shortening must not be negative"});
  expect_refused(cases);
}

TEST(ModelConfigCheck, NumbersThatAreNotFinite) {
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    const std::vector<std::function<double&(FastWeights&)>> members = {
        [](FastWeights& c) -> double& { return c.dropout; },
        [](FastWeights& c) -> double& { return c.value_dropout; },
        [](FastWeights& c) -> double& { return c.time_unit; }};
    const auto expect_named = [](const FastWeights& options) {
      EXPECT_NE(error_message([&] { check_config({.architecture = options}); }).find(" must "),
                std::string::npos)
          << to_json({.architecture = options});
    };
    for (const auto& member : members) {
      FastWeights options;
      member(options) = bad;
      expect_named(options);
    }
    expect_named({.control = {.path = LogSignatures{.windows = DurationWindows{bad}}}});
    const FixedSteps shortened = {.edges = StageEdges::Shortened, .shortening = bad};
    for (const ModelSteps& steps :
         std::vector<ModelSteps>{ObservationSteps{.max_step = bad}, RegularSteps{.size = bad},
                                 FixedSteps{.size = bad}, shortened})
      expect_named({.solver = {.steps = steps}});
    for (const ModelSteps& steps :
         std::vector<ModelSteps>{AdaptiveSteps{.rtol = bad}, AdaptiveSteps{.atol = bad},
                                 AdaptiveSteps{.first_step = bad}, AdaptiveSteps{.smallest_step = bad}})
      expect_named({.solver = {.method = dopri5(), .steps = steps}});
  }
}

TEST(ModelConfigCheck, HeadsThatDoNotDivideTheModel) {
  expect_refused(
      {{{{"hidden_size", "10"}, {"heads", "3"}},
        "[config] hidden_size 10 is not divisible by heads 3; choose other values, or set key_width "
        "and value_width"},
       {{{"hidden_size", "10"}, {"heads", "3"}, {"key_width", "5"}},
        "[config] hidden_size 10 is not divisible by heads 3"}});
  expect_fine({{{"hidden_size", "10"}, {"heads", "3"}, {"key_width", "5"}, {"value_width", "2"}}});
}

TEST(ModelConfigCheck, RulesThatAreNone) {
  expect_refused({{{{"rule", "delta_prae"}},
                   "[config] rule cannot be 'delta_prae'; the nearest is 'delta_pre', and custom rules must "
                   "be passed in "
                   "custom_rules"},
                  {{{"rule", "\"\""}}, "[config] rule cannot be ''"},
                  {{{"rule", "delta_post"}, {"value_activation", "none"}},
                   "[config] value_activation none contradicts rule delta_post"}});
  const auto own = [](const Rule& rule) {
    ModelConfig config;
    fast_weights(config).rule = rule.name;
    fast_weights(config).value_activation = ValueActivation::None;
    return error_message([&] { check_config(config, {rule}); });
  };
  EXPECT_EQ(own({.name = "", .slope = hebb().slope}), "[config] the custom rule '' needs a name and a slope");
  EXPECT_EQ(own({.name = "mine"}), "[config] the custom rule 'mine' needs a name and a slope");
  EXPECT_EQ(own({.name = "hebb", .slope = hebb().slope}),
            "[config] there is a rule 'hebb' already; choose another name");
  EXPECT_EQ(own({.name = "mine", .value = ValueForm::Raw, .slope = hebb().slope}),
            "[config] value_activation none contradicts rule mine, whose values have no tanh");
  EXPECT_EQ(own({.name = "mine", .slope = hebb().slope}), "");
  const Rule twice = {.name = "mine", .slope = hebb().slope};
  EXPECT_EQ(error_message([&] {
              check_config({}, {twice, twice});
            }),
            "[config] there is a rule 'mine' already; choose another name");
}

TEST(ModelConfigCheck, ControlsThatTheDriveCannotRead) {
  std::vector<Refused> cases;
  for (const char* drive : {"derivative_keys", "derivative_values", "derivative"}) {
    cases.push_back(
        {{{"drive", drive}, {"control.kind", "hold"}},
         std::string("[config] drive ") + drive + " needs x'(t), and control.kind hold has none"});
  }
  cases.push_back({map_with("control.kind", "hold"),
                   "[config] drive of a tensor map needs x'(t), and control.kind hold has none"});
  for (const char* drive : {"derivative_keys", "derivative_values"}) {
    cases.push_back({{{"drive", drive}, {"control.kind", "log_signature"}},
                     std::string("[config] drive ") + drive +
                         " distinguishes x from x', and with control.kind "
                         "log_signature both are the log-signature"});
  }
  cases.push_back({{{"control.kind", "rectilinear"}, {"control.time_channel", "3"}},
                   "[config] control.time_channel must be below channels 3, got 3"});
  cases.push_back({{{"control.kind", "log_signature"}, {"control.depth", "6"}},
                   "[config] control.depth 6 is too large for channels 3: "});
  cases.push_back({{{"control.kind", "log_signature"}, {"control.depth", "4"}, {"channels", "5000"}},
                   "[config] control.depth 4 is too large for channels 5000: "});
  // 5000 * 4999 / 2 + 5000
  cases.push_back(
      {{{"control.kind", "log_signature"}, {"channels", "5000"}},
       "[config] control.depth 2 makes log-signatures of 12502500 coefficients from channels 5000"});
  expect_refused(cases);
  expect_fine({{{"control.kind", "rectilinear"}, {"control.time_channel", "2"}},
               {{"control.kind", "log_signature"}, {"control.depth", "5"}},
               {{"control.kind", "log_signature"}, {"drive", "derivative"}},
               {{"control.kind", "hold"}}});
}

TEST(ModelConfigCheck, MethodsThatTheStepsCannotUse) {
  expect_refused(
      {{{{"solver.method", "rk5"}}, "[config] solver.method cannot be 'rk5'; the nearest is 'rk4'"},
       {{{"solver.method", "dopri"}}, "[config] solver.method cannot be 'dopri'; the nearest is 'dopri5'"},
       {{{"solver.steps", "adaptive"}},
        "[config] solver.method rk4 has no error estimate, which solver.steps adaptive needs; take dopri5"},
       {{{"solver.steps", "adaptive"}, {"solver.method", "explicit_adams"}},
        "[config] solver.method explicit_adams has no error estimate"},
       {{{"solver.method", "explicit_adams"}},
        "[config] solver.method explicit_adams needs equal steps, not solver.steps observations"},
       {{{"solver.method", "implicit_adams"}},
        "[config] solver.method implicit_adams needs equal steps, not solver.steps observations"},
       {{{"solver.steps", "fixed"}}, "[config] solver.steps fixed needs solver.step_size above 0"},
       {{{"solver.edges", "shortened"}},
        "[config] solver.edges shortened needs solver.steps shared_grid, not observations"},
       {{{"solver.stage_times", "single"}},
        "[config] solver.stage_times would not be used here; it needs solver.steps shared_grid"},
       {{{"solver.steps", "shared_grid"}, {"control.kind", "log_signature"}},
        "[config] solver.steps shared_grid with control.kind log_signature needs a solver.step_size"},
       {{{"solver.steps", "shared_grid"}, {"control.kind", "rectilinear"}},
        "[config] solver.steps shared_grid with control.kind rectilinear needs a solver.step_size"}});
}

TEST(ModelConfigCheck, StartsThatDoNotFit) {
  expect_refused(
      {{{{"initial", "static_features"}}, "[config] initial static_features needs static_features above 0"},
       {{{"static_features", "2"}},
        "[config] static_features 2 would not be read with initial rule; set initial to "
        "static_features"},
       {{{"query", "first_observation"}},
        "[config] query first_observation needs initial first_observation, not rule"}});
}

TEST(ModelConfigCheck, LayersThatDoNotFit) {
  expect_refused(
      {{{{"value_norm", "true"}}, "[config] value_norm needs values with a projection of their own"},
       {{{"layer_input", "update"}}, "[config] layer_input update needs layers above 1"},
       {{{"residual", "true"}, {"value_width", "5"}},
        "[config] residual adds hidden_size 32 to the reads of W, whose width is 20"},
       {{{"residual", "true"}, {"key_width", "5"}, {"read", "transposed"}},
        "[config] residual adds hidden_size 32 to the reads of W, whose width is 20"}});
  expect_fine({{{"residual", "true"}, {"key_width", "5"}}});
}

TEST(ModelConfigCheck, ChoicesThatATensorMapDoesNotHave) {
  expect_fine({kMap});
  expect_refused(
      {{map_with("initial", "rule"), "[config] a tensor map has no rule; initial must be zero"},
       {{{"architecture", "tensor_map"}, {"initial", "first_observation"}, {"query", "first_observation"}},
        "[config] a tensor map does not support query first_observation"}});
  for (const char* key : {"rule", "drive", "heads", "layers", "read", "residual", "value_norm",
                          "value_dropout", "key_width", "learning_rate", "value_activation"}) {
    expect_refused({{map_with(key, "1"),
                     std::string("[config] ") + key + " would not be used with architecture tensor_map"}});
  }
  expect_refused(
      {{{{"map_layers", "3"}}, "[config] map_layers would not be used with architecture fast_weights"}});
}

TEST(ModelConfigCheck, SamplesThatWouldDependOnTheirBatch) {
  expect_refused({{{{"deterministic", "true"}, {"query", "last_of_batch"}},
                   "[config] deterministic contradicts query last_of_batch"},
                  {{{"deterministic", "true"},
                    {"solver.method", "dopri5"},
                    {"solver.steps", "adaptive"},
                    {"solver.error_control", "joint"}},
                   "[config] deterministic contradicts solver.error_control joint"},
                  {{{"deterministic", "true"}, {"solver.steps", "shared_grid"}},
                   "[config] deterministic contradicts solver.steps shared_grid"}});
}

// what was asked for and would be ignored: the choice alone, and where it is read
TEST(ModelConfigCheck, ChoicesThatNothingWouldRead) {
  const Settings adaptive = {{"solver.method", "dopri5"}, {"solver.steps", "adaptive"}};
  const Settings windows = {{"control.kind", "log_signature"}};
  const Settings fixed = {{"solver.steps", "fixed"}, {"solver.step_size", "0.5"}};
  struct Case {
    Settings choice, unread, read;
  };
  const std::vector<Case> cases = {
      {{{"static_hidden_size", "5"}}, {}, {{"static_features", "2"}, {"initial", "static_features"}}},
      {{{"control.end_filling", "end_point"}}, {}, {{"control.kind", "natural_cubic"}}},
      {{{"control.time_channel", "1"}}, {}, {{"control.kind", "rectilinear"}}},
      {{{"control.depth", "3"}}, {}, windows},
      {{{"control.window_increments", "3"}}, {}, windows},
      {{{"control.window_duration", "3"}}, {}, windows},
      {{{"control.window_tail", "drop"}}, {}, windows},
      {{{"control.clock", "time"}}, {}, windows},
      {{{"control.last_window", "twice"}}, {}, windows},
      {{{"control.window_increments", "3"}},
       {{"control.kind", "log_signature"}, {"control.window_duration", "2"}},
       windows},
      {{{"control.window_tail", "drop"}},
       {{"control.kind", "log_signature"}, {"control.window_duration", "2"}},
       windows},
      {{{"solver.step_size", "0.5"}}, {}, {{"solver.steps", "fixed"}}},
      {{{"solver.step_size", "0.5"}}, adaptive, {{"solver.steps", "shared_grid"}}},
      {{{"solver.max_step", "0.5"}}, fixed, {}},
      {{{"solver.max_step", "0.5"}}, {{"solver.steps", "shared_grid"}}, adaptive},
      {{{"solver.rtol", "1e-3"}}, {}, adaptive},
      {{{"solver.atol", "1e-3"}}, {{"solver.method", "dopri5"}}, adaptive},
      {{{"solver.shortening", "1e-3"}}, {}, {{"solver.steps", "shared_grid"}, {"solver.edges", "shortened"}}},
      {{{"solver.memory_limit", "1000"}}, adaptive, {{"solver.gradient", "checkpointed"}}},
      {{{"solver.memory_limit", "1000"}},
       {{"solver.gradient", "adjoint"}},
       {{"solver.gradient", "checkpointed"}}},
      {{{"solver.first_step_gradient", "through"}},
       {},
       {{"solver.method", "dopri5"}, {"solver.steps", "adaptive"}, {"solver.error_control", "joint"}}},
      {{{"solver.first_step_gradient", "through"}},
       adaptive,
       {{"solver.method", "dopri5"}, {"solver.steps", "adaptive"}, {"solver.error_control", "joint"}}},
  };
  for (const Case& c : cases) {
    const auto joined = [&](Settings settings) {
      settings.insert(settings.end(), c.choice.begin(), c.choice.end());
      return settings;
    };
    expect_fine({c.unread, joined(c.read)});
    expect_refused(
        {{joined(c.unread), "[config] " + c.choice[0].first + " would not be used here; it needs "}});
  }
}

TEST(ModelConfigCheck, PublishedModelsAreFine) {
  for (const std::string& model : published::speech_models()) {
    check_config(published::speech(model));
    check_config(published::sepsis(model, published::Intensity::On));
    check_config(published::sepsis(model, published::Intensity::Off));
  }
  for (const std::string& model : published::eigenworms_models()) {
    for (const int64_t depth : {1, 2, 3}) check_config(published::eigenworms(model, depth));
  }
}

}  // namespace
}  // namespace fastweights

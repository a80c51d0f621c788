#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "base/random.h"
#include "fastweights/model.h"
#include "fastweights/published.h"
#include "model/config_members.h"
#include "model/random_configs.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::members;
using testing::RandomConfigs;
using testing::same_members;

TEST(ModelConfig, ComesBackFromJsonInEveryMember) {
  RandomConfigs random(1);
  for (int i = 0; i < 500; ++i) {
    const ModelConfig config = random.config();
    const ModelConfig back = config_from_json(to_json(config));
    ASSERT_TRUE(same_members(back, config)) << to_json(config);
    ASSERT_TRUE(back == config);
  }
  // 6 + 2 + 2 + 2 + 2 + 2 of control, 4 + 3 + 2 + 2 + 2 + 3 of solver, 2 + 2 + 3 + 2 of field and rows,
  // 4 + 4 + 2 + 4 + 3 + 2 + 2 + 2 of the rest
  EXPECT_EQ(random.enumerators_seen(), 64u);
}

TEST(ModelConfig, EqualityLooksAtEveryMember) {
  RandomConfigs random(2);
  int different = 0;
  for (int i = 0; i < 200; ++i) {
    // single members of another configuration, through JSON with one key
    const FastWeights options = random.fast_weights(), other = random.fast_weights();
    FastWeights changed = options;
    switch (i % 5) {
      case 0:
        changed.control = other.control;
        break;
      case 1:
        changed.solver = other.solver;
        break;
      case 2:
        changed.time_unit = other.time_unit;
        break;
      case 3:
        changed.unused_layer = other.unused_layer;
        break;
      default:
        changed.rule = other.rule;
    }
    const bool same = members(changed) == members(options);
    EXPECT_EQ(ModelConfig{.architecture = changed} == ModelConfig{.architecture = options}, same);
    different += same ? 0 : 1;
  }
  EXPECT_GT(different, 100);
}

TEST(ModelConfig, AbsentKeysKeepTheirDefaults) {
  EXPECT_TRUE(same_members(config_from_json("{}"), ModelConfig{}));
  EXPECT_TRUE(same_members(config_from_json(R"({"control": {}, "solver": {}})"), ModelConfig{}));
  ModelConfig expected;
  expected.channels = 7;
  fast_weights(expected).control.path = Hold{};
  EXPECT_TRUE(config_from_json(R"({"control": {"kind": "hold"}, "channels": 7})") == expected);
}

std::string read_error(const std::string& text) {
  return error_message([&] { config_from_json(text); });
}

TEST(ModelConfig, AnUnknownKeyIsNamedWithTheNearestOne) {
  EXPECT_EQ(read_error(R"({"chanels": 3})"), "[config] unknown key 'chanels'; the nearest is 'channels'");
  EXPECT_EQ(read_error(R"({"control": {"knd": "hold"}})"),
            "[config] unknown key 'control.knd'; the nearest is 'control.kind'");
  EXPECT_EQ(read_error(R"({"solver": {"stepsize": 1}})"),
            "[config] unknown key 'solver.stepsize'; the nearest is 'solver.step_size'");
  // of another group
  EXPECT_EQ(read_error(R"({"solver": {"channels": 1}})").find("[config] unknown key 'solver.channels'"), 0u);
  EXPECT_EQ(read_error(R"({"": 1})").find("[config] unknown key ''"), 0u);
  // a key of a megabyte does not come back whole
  EXPECT_LT(read_error("{\"" + std::string(100'000, 'k') + "\": 1}").size(), 300u);
}

TEST(ModelConfig, WrongTypesAreNamedWithTheKey) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"channels": "3"})", "[config] channels must be an integer, got \"3\""},
      {R"({"channels": 3.5})", "[config] channels must be an integer, got 3.5"},
      {R"({"channels": 18446744073709551615})",
       "[config] channels must be an integer, got 18446744073709551615"},
      {R"({"channels": 9223372036854775808})",
       "[config] channels must be an integer, got 9223372036854775808"},
      {R"({"channels": 1000000000000000000000})", "[config] channels must be an integer, got 1e+21"},
      {R"({"channels": null})", "[config] channels must be an integer, got null"},
      {R"({"channels": [3]})", "[config] channels must be an integer, got [3]"},
      {R"({"channels": true})", "[config] channels must be an integer, got true"},
      {R"({"dropout": "0.1"})", "[config] dropout must be a number, got \"0.1\""},
      {R"({"solver": {"steps": "adaptive", "rtol": null}})",
       "[config] solver.rtol must be a number, got null"},
      {R"({"residual": 1})", "[config] residual must be true or false, got 1"},
      {R"({"residual": "true"})", "[config] residual must be true or false, got \"true\""},
      {R"({"rule": 7})", "[config] rule must be a name in quotes, got 7"},
      {R"({"drive": 0})", "[config] drive must be a name in quotes, got 0"},
      {R"({"control": {"kind": ["hold"]}})",
       "[config] control.kind must be a name in quotes, got [\"hold\"]"},
      {R"({"control": "hold"})", "[config] control must be an object { ... }, got \"hold\""},
      {R"({"solver": []})", "[config] solver must be an object { ... }, got []"},
      {"null", "[config] a configuration must be an object { ... }, got null"},
      {"[]", "[config] a configuration must be an object { ... }, got []"},
      {"3", "[config] a configuration must be an object { ... }, got 3"}};
  for (const auto& [text, sentence] : cases) EXPECT_EQ(read_error(text), sentence);
  // the largest whole number that there is
  EXPECT_EQ(config_from_json(R"({"channels": 9223372036854775807})").channels, INT64_MAX);
}

TEST(ModelConfig, TextThatIsNotJsonIsNamedAsSuch) {
  for (const std::string text :
       {"", " ", "{", "{\"channels\": }", "{\"channels\": NaN}", "{\"dropout\": Infinity}",
        "{\"dropout\": -Infinity}", "{\"dropout\": 1e999}", "{channels: 3}", "{'channels': 3}",
        "{\"channels\": 3,}", "{\"channels\": 3} {}", "channels = 3", "{\"rule\": \"\xff\"}", "\x00\x01",
        "{\"rule\": \"line\nbreak\"}"}) {
    EXPECT_EQ(read_error(text).find("[config] this is not JSON: "), 0u) << text << ": " << read_error(text);
  }
  EXPECT_EQ(read_error("{\"dropout\": 1e999}"), "[config] this is not JSON: number overflow parsing '1e999'");
}

TEST(ModelConfig, AKeyThatComesTwiceIsAnError) {
  EXPECT_EQ(read_error(R"({"channels": 3, "heads": 1, "channels": 3})"),
            "[config] the key 'channels' comes twice");
  EXPECT_EQ(read_error(R"({"control": {"depth": 3, "depth": 2}})"), "[config] the key 'depth' comes twice");
  EXPECT_EQ(read_error(R"({"control": {}, "control": {}})"), "[config] the key 'control' comes twice");
  // the same word in another object is another key
  EXPECT_EQ(
      read_error(R"({"control": {"kind": "hold"}, "solver": {"kind": 1}})").find("[config] unknown key"), 0u);
}

TEST(ModelConfig, DeepNestingIsAnErrorAndNoCrash) {
  for (const int depth : {10, 100, 1'000'000}) {
    const std::string lists = "{\"channels\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
    EXPECT_EQ(read_error(lists), "[config] objects and lists are nested deeper than 8 levels");
    EXPECT_EQ(error_message([&] { with_setting({}, "channels", lists); }),
              "[config] objects and lists are nested deeper than 8 levels");
  }
}

TEST(ModelConfig, OneSettingChangesOneMember) {
  ModelConfig base;
  base.channels = 5;
  fast_weights(base).solver.steps = AdaptiveSteps{.rtol = 1e-3};
  ModelConfig expected = base;
  fast_weights(expected).control.path = Linear{};
  EXPECT_TRUE(with_setting(base, "control.kind", "linear") == expected);
  EXPECT_TRUE(with_setting(base, "control.kind", "\"linear\"") == expected);
  EXPECT_TRUE(with_setting(base, "control", R"({"kind": "linear"})") == expected);
  expected = base;
  fast_weights(expected).layers = 2;
  EXPECT_TRUE(with_setting(base, "layers", "2") == expected);
  expected = base;
  fast_weights(expected).residual = true;
  EXPECT_TRUE(with_setting(base, "residual", "true") == expected);
  expected = base;
  std::get<AdaptiveSteps>(fast_weights(expected).solver.steps).rtol = 2.5e-7;
  EXPECT_TRUE(with_setting(base, "solver.rtol", "2.5e-7") == expected);
  expected = base;
  fast_weights(expected).rule = "mine";
  EXPECT_TRUE(with_setting(base, "rule", "mine") == expected);
}

TEST(ModelConfig, SettingsThatDoNotFitAreNamed) {
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {"layrs", "2", "[config] unknown key 'layrs'; the nearest is 'layers'"},
      {"solver.kind", "2", "[config] unknown key 'solver.kind'"},
      {"nothing.kind", "2", "[config] unknown key 'nothing'"},
      {"control.kind.more", "2", "[config] control.kind must be a name in quotes"},
      {"rule.more", "2", "[config] rule must be a name in quotes"},
      {"", "2", "[config] unknown key ''"},
      {".", "2", "[config] unknown key ''"},
      {"layers", "two", "[config] layers must be an integer, got \"two\""},
      {"layers", "", "[config] layers must be an integer, got \"\""},
      {"layers", "2.5", "[config] layers must be an integer, got 2.5"},
      {"layers", "1e17", "[config] layers must be an integer, got 1e+17"},
      {"layers", "1e999", "[config] layers must be an integer, got \"1e999\""},
      {"layers", "\xff", "[config] layers must be an integer, got \"\xef\xbf\xbd\""},
      {"dropout", "nan", "[config] dropout must be a number, got \"nan\""},
      {"dropout", "inf", "[config] dropout must be a number, got \"inf\""},
      {"control", R"({"kind": "hold", "kind": "hold"})", "[config] the key 'kind' comes twice"},
      {"residual", "yes", "[config] residual must be true or false, got \"yes\""}};
  for (const auto& [key, value, sentence] : cases) {
    EXPECT_EQ(error_message([&, &key = key, &value = value] { with_setting({}, key, value); }).find(sentence),
              0u)
        << key << " " << value;
  }
}

TEST(ModelConfig, SwitchingTheArchitectureKeepsWhatBothHave) {
  ModelConfig config = {.channels = 3, .architecture = FastWeights{.rule = "oja", .hidden_size = 12}};
  fast_weights(config).solver.steps = ObservationSteps{.max_step = 0.5};
  const ModelConfig changed = with_setting(config, "architecture", "neural_cde");
  EXPECT_EQ(changed.channels, 3);
  const auto& cde = changed.architecture.get<NeuralCde>();
  EXPECT_EQ(cde.hidden_size, 12);
  EXPECT_EQ(std::get<ObservationSteps>(cde.solver.steps).max_step, 0.5);
  EXPECT_EQ(error_message([&] { with_setting(changed, "rule", "hebb"); }),
            "[config] rule would not be used with architecture neural_cde");
  EXPECT_EQ(error_message([&] { changed.architecture.get<FastWeights>(); }),
            "[model] expected architecture fast_weights, got neural_cde");
}

TEST(ModelConfig, SwitchingAnAlternativeForgetsTheOptionsOfTheOther) {
  ModelConfig config;
  fast_weights(config).control.path = NaturalCubic{EndFilling::EndPoint};
  fast_weights(config).solver.steps = FixedSteps{.size = 2, .edges = StageEdges::Shortened};
  const ModelConfig linear = with_setting(config, "control.kind", "linear");
  EXPECT_TRUE(std::holds_alternative<Linear>(fast_weights(linear).control.path));
  const ModelConfig cubic = with_setting(linear, "control.kind", "natural_cubic");
  EXPECT_EQ(std::get<NaturalCubic>(fast_weights(cubic).control.path).end_filling, EndFilling::WholeGap);
  const ModelConfig regular = with_setting(config, "solver", R"({"step_size": 0.5, "steps": "fixed"})");
  EXPECT_EQ(std::get<RegularSteps>(fast_weights(regular).solver.steps).size, 0.5);
  EXPECT_EQ(error_message([&] { with_setting(regular, "solver.shortening", "0"); }),
            "[config] solver.shortening would not be used here; it needs solver.steps shared_grid");
  EXPECT_EQ(
      error_message([&] { with_setting(regular, "solver.max_step", "1"); }),
      "[config] solver.max_step would not be used here; it needs solver.steps observations or adaptive");
}

TEST(ModelConfig, AMethodThatNoFileCouldNameIsRefused) {
  Tableau mine = rk4();
  mine.name = "mine";
  EXPECT_EQ(error_message([&] { check_config({.architecture = FastWeights{.solver = {.method = mine}}}); }),
            "[config] solver.method 'mine' is not a method of the library, and a file could not name it");
  mine.name = "rk4";
  EXPECT_NO_THROW(check_config({.architecture = FastWeights{.solver = {.method = mine}}}));
  mine.b[0] += 0.5;
  EXPECT_NE(error_message([&] { check_config({.architecture = FastWeights{.solver = {.method = mine}}}); }),
            "");
}

// as version 0.1 wrote it: the keys of all architectures
TEST(ModelConfig, ReadsTheFlatFormOfVersion01) {
  const ModelConfig gru = config_from_json(
      R"({"channels": 4, "outputs": 2, "system": "gru_d", "rule": "delta_pre", "drive": "x", "heads": 4,
          "control": {"kind": "hold", "depth": 2}, "map_layers": 2, "hidden_size": 7,
          "rows": {"known_channels": 1, "order": "ode_first"}, "solver": {"method": "rk4"}})");
  const auto& options = gru.architecture.get<GapGru>();
  EXPECT_EQ(options.form, GapForm::Decay);
  EXPECT_EQ(options.hidden_size, 7);
  EXPECT_EQ(options.rows.known_channels, 1);
  const ModelConfig fast = config_from_json(
      R"({"system": "fast_weights", "heads": 4, "map_layers": 2,
          "control": {"kind": "log_signature", "end_filling": "whole_gap", "never_observed": "zero",
                      "time_channel": 0, "depth": 3, "window_increments": 4, "window_duration": 2.5,
                      "window_tail": "keep", "clock": "time", "last_window": "once"},
          "solver": {"method": "dopri5", "steps": "adaptive", "max_step": 0, "step_size": 0, "rtol": 1e-3,
                     "atol": 1e-8, "edges": "as_is", "shortening": 1e-5, "stage_times": "double",
                     "error_control": "joint", "first_step_gradient": "none", "gradient": "exact",
                     "memory_limit": 0}})");
  const auto& windows = std::get<LogSignatures>(fast_weights(fast).control.path);
  EXPECT_EQ(windows.depth, 3);
  EXPECT_EQ(std::get<DurationWindows>(windows.windows).duration, 2.5);
  const auto& steps = std::get<AdaptiveSteps>(fast_weights(fast).solver.steps);
  EXPECT_EQ(steps.rtol, 1e-3);
  EXPECT_EQ(steps.control, ErrorControl::Joint);
  const ModelConfig map = config_from_json(
      R"({"system": "fast_weights", "rule": "delta_pre", "drive": "tensor_map", "initial": "zero",
          "map_layers": 3, "heads": 4})");
  EXPECT_EQ(map.architecture.get<TensorMap>().map_layers, 3);
}

TEST(ModelConfig, TextThatJsonCannotHoldIsNamed) {
  ModelConfig config;
  fast_weights(config).rule = "\xff";
  EXPECT_EQ(error_message([&] { to_json(config); }).find("[config] a name in the configuration is not UTF-8"),
            0u);
}

// a JSON text, damaged in a few places
std::string damaged(std::string text, Random& random) {
  static const std::string kPieces[] = {"{",    "}",     "[",  "]",    ",",     ":",        "\"",  "null",
                                        "true", "1e999", "-1", "3.5",  "\\u00", "\xff",     "NaN", "\"kind\"",
                                        "0",    "\n",    "//", "1e-9", "{}",    "\"rule\"", "\\",  "\x00"};
  const uint64_t changes = 1 + random.next() % 4;
  for (uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = random.next() % text.size(), count = random.next() % 12;
    switch (random.next() % 4) {
      case 0:
        text[at] = static_cast<char>(random.next());
        break;
      case 1:
        text.erase(at, count);
        break;
      case 2:
        text.insert(at, kPieces[random.next() % std::size(kPieces)]);
        break;
      default:
        text.insert(at, text.substr(random.next() % text.size(), 4 * count));
    }
  }
  return text;
}

// whatever the text, it is a configuration or std::invalid_argument; what is accepted can be written again
TEST(ModelConfig, DamagedTextIsAnErrorOrAnotherConfiguration) {
  RandomConfigs configs(3);
  Random random(4);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = damaged(to_json(i % 2 == 0 ? configs.config() : ModelConfig{}), random);
    try {
      const ModelConfig config = config_from_json(text);
      ASSERT_TRUE(config_from_json(to_json(config)) == config) << text;
      ++accepted;
    } catch (const std::invalid_argument& error) {
      ASSERT_EQ(std::string(error.what()).find("[config] "), 0u) << text;
      ++refused;
    }
  }
  // damage inside a number or a name leaves a configuration
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace fastweights

#include "selftest/engine_cases.h"

#include "model/programmer_config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <tuple>

#include "fastweights/model.h"
#include "kernels/instruction_set.h"
#include "model/config_names.h"
#include "model/parts.h"
#include "nn/features.h"

namespace fastweights {
namespace {

ProgrammerConfig case_config() {
  ProgrammerConfig config;
  config.channels = 2;
  config.hidden_size = 6;
  config.heads = 2;
  return config;
}

const CaseBatch kBatch = {.lengths = {5, 3}};

TEST(EngineCases, TheForcedBackendIsTheOneThatRan) {
  const std::string forced = std::string("cpu-") + kernels::name(kernels::instruction_set());
  if (const char* wanted = std::getenv("FASTWEIGHTS_ISA")) {
    EXPECT_EQ(forced, std::string("cpu-") + wanted);
  }
  for (const EngineErrors& errors : engine_errors(case_config(), kBatch, {at::kFloat, at::kDouble}))
    EXPECT_EQ(errors.backend, forced);
  for (const SelftestResult& result : engine_results({"a case", case_config(), kBatch})) {
    EXPECT_TRUE(result.passed()) << result.name << ": " << result.error;
    EXPECT_EQ(result.name.rfind(forced + ": a case, float", 0), 0u) << result.name;
  }
  ProgrammerConfig config = case_config();
  config.backend = Backend::Reference;
  const RaggedSeries series =
      shared_times(at::arange(4, at::kDouble), at::linspace(-1, 1, 8, at::kFloat).view({4, 2}));
  EXPECT_EQ(Model(config).forward({.series = series}).backend, "reference");
}

TEST(EngineCases, SeeTheRoundingOfFloat32) {
  // a comparison of something with itself would see none
  const EngineErrors errors = engine_errors(case_config(), kBatch, {at::kFloat})[0];
  EXPECT_GT(errors.outputs, 1e-9);
  EXPECT_GT(errors.weights, 1e-9);
  EXPECT_GT(errors.gradients, 1e-9);
  EXPECT_FALSE(errors.worst_gradient.empty());
}

TEST(EngineCases, AnEngineThatCannotIsAnErrorAndNoPass) {
  ProgrammerConfig config = case_config();
  config.key_width = 2;
  config.value_width = 3;
  EXPECT_THROW(engine_errors(config, kBatch, {at::kDouble}), std::invalid_argument);
}

TEST(EngineCases, AMemoryLimitMeansSeveralBlocksOfTime) {
  int64_t limited = 0;
  for (const EngineCase& c : engine_cases()) {
    if (c.config.solver.memory_limit == 0) continue;
    ++limited;
    for (const EngineErrors& errors : engine_errors(c.config, c.batch, {at::kFloat, at::kDouble}))
      EXPECT_GT(errors.blocks, 1) << c.name;
  }
  EXPECT_GT(limited, 1);
}

TEST(EngineCases, MeetSlowNetsThatCollapseAndOthers) {
  std::set<std::pair<Drive, bool>> found;
  for (const EngineCase& c : engine_cases()) {
    if (c.config.layers > 1) continue;
    const ModelParts parts = make_parts(c.config, {});
    found.insert({c.config.drive, nn::collapses(parts.layers[0], parts.wiring)});
  }
  for (const Drive drive : {Drive::X, Drive::DerivativeKeys, Drive::DerivativeValues}) {
    EXPECT_TRUE(found.contains({drive, true})) << name_of(drive);
    EXPECT_TRUE(found.contains({drive, false})) << name_of(drive);
  }
}

TEST(EngineCases, MeetEveryRuleDriveControlAndWidth) {
  std::set<std::pair<std::string, Drive>> rules;
  std::set<std::string> controls;
  std::set<std::string> methods, names;
  std::set<int64_t> widths;
  for (const EngineCase& c : engine_cases()) {
    rules.insert({c.config.rule, c.config.drive});
    controls.insert(name_of(c.config.control.path));
    methods.insert(method_name(*c.config.solver.method));
    widths.insert(c.config.hidden_size / c.config.heads);
    EXPECT_TRUE(names.insert(c.name).second) << "twice: " << c.name;
  }
  for (const Rule& rule : all_rules()) {
    for (const auto& [drive, name] : names_of(Drive::X)) {
      EXPECT_TRUE(rules.contains({rule.name, drive})) << rule.name << ", " << name;
    }
  }
  for (const auto& [name, control] : alternatives_of(ControlPath()))
    EXPECT_TRUE(controls.contains(name)) << name;
  for (const char* method : {"euler", "midpoint", "heun3", "rk4", "flow"})
    EXPECT_TRUE(methods.contains(method));
  for (const int64_t width : {1, 3, 4, 5, 8, 10, 16, 20, 23, 32})
    EXPECT_TRUE(widths.contains(width)) << width;
}

bool is_allowed(const ProgrammerConfig& config) {
  try {
    check_config(config);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

TEST(EngineCases, MeetTheFlowOfEveryRuleWithEveryDriveControlWidthAndDepth) {
  std::set<std::tuple<std::string, std::string, std::string>> found;
  std::set<std::pair<std::string, int64_t>> widths, depths;
  for (const EngineCase& c : engine_cases()) {
    if (!std::holds_alternative<Flow>(*c.config.solver.method)) continue;
    found.insert({c.config.rule, name_of(c.config.drive), name_of(c.config.control.path)});
    widths.insert({c.config.rule, c.config.hidden_size / c.config.heads});
    depths.insert({name_of(c.config.drive), c.config.layers});
  }
  for (const char* rule : {"hebb", "oja", "delta_pre", "delta_post"}) {
    for (const auto& [drive, drive_name] : names_of(Drive::X)) {
      for (const auto& [control_name, control] : alternatives_of(ControlPath())) {
        ProgrammerConfig config = case_config();
        config.rule = rule;
        config.drive = drive;
        config.control.path = control;
        config.solver.method = Flow{};
        EXPECT_EQ(found.contains({rule, drive_name, control_name}), is_allowed(config))
            << rule << ", " << drive_name << ", " << control_name;
      }
      EXPECT_TRUE(depths.contains({drive_name, 1}) && depths.contains({drive_name, 2})) << drive_name;
    }
    for (const int64_t width : {1, 3, 4, 5, 8, 10, 16, 20, 23, 32})
      EXPECT_TRUE(widths.contains({rule, width})) << rule << ", " << width;
  }
}

}  // namespace
}  // namespace fastweights

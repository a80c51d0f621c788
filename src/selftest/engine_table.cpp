#include <functional>

#include "base/error.h"
#include "model/config_names.h"
#include "selftest/engine_cases.h"

namespace fastweights {
namespace {

// heads of 7 series need more lanes than a register has, and do not fill the last one; the shortest series
// is a single step
const std::vector<int64_t> kLengths = {2, 9, 5, 7, 3, 8, 6};

ProgrammerConfig small_model(int64_t width) {
  ProgrammerConfig c;
  c.channels = 3;
  c.outputs = 2;
  c.heads = width == 1 ? 5 : 3;
  c.hidden_size = c.heads * width;
  c.feed_forward_size = 7;
  c.time_unit = 0.9;
  return c;
}

// every rule with every drive, every control with every method that differs in its stages, all widths
struct Combination {
  const char* rule;
  Drive drive;
  ControlPath control;
  const char* method;
  int64_t width;  // of a head
};

const std::vector<Combination> kCombinations = {
    {"hebb", Drive::X, NaturalCubic{}, "rk4", 1},
    {"oja", Drive::DerivativeKeys, NaturalCubic{}, "euler", 3},
    {"oja_softmax", Drive::DerivativeValues, NaturalCubic{}, "midpoint", 4},
    {"delta_pre", Drive::Derivative, NaturalCubic{}, "heun3", 5},
    {"delta_post", Drive::X, HermiteCubic{}, "rk4", 8},
    {"hebb", Drive::DerivativeKeys, HermiteCubic{}, "heun3", 10},
    {"oja", Drive::DerivativeValues, HermiteCubic{}, "midpoint", 16},
    {"oja_softmax", Drive::Derivative, HermiteCubic{}, "euler", 20},
    {"delta_pre", Drive::X, Linear{}, "midpoint", 23},
    {"delta_post", Drive::DerivativeKeys, Linear{}, "rk4", 32},
    {"hebb", Drive::DerivativeValues, Linear{}, "euler", 5},
    {"oja", Drive::Derivative, Linear{}, "heun3", 8},
    {"oja_softmax", Drive::DerivativeKeys, Rectilinear{}, "rk4", 10},
    {"delta_pre", Drive::DerivativeValues, Rectilinear{}, "euler", 16},
    {"delta_post", Drive::Derivative, Rectilinear{}, "midpoint", 20},
    {"hebb", Drive::Derivative, Rectilinear{}, "heun3", 23},
    {"oja", Drive::X, Hold{}, "rk4", 4},
    {"oja_softmax", Drive::X, Hold{}, "midpoint", 32},
    {"delta_pre", Drive::X, Hold{}, "heun3", 10},
    {"delta_post", Drive::X, Hold{}, "euler", 3},
    {"delta_post", Drive::X, LogSignatures{}, "rk4", 8},
    {"hebb", Drive::X, LogSignatures{}, "euler", 20},
    {"oja", Drive::X, LogSignatures{}, "midpoint", 5},
    {"oja_softmax", Drive::Derivative, LogSignatures{}, "rk4", 1},
    {"delta_post", Drive::Derivative, LogSignatures{}, "heun3", 23},
    {"delta_pre", Drive::DerivativeKeys, NaturalCubic{}, "rk4", 20},
    {"delta_post", Drive::DerivativeValues, HermiteCubic{}, "rk4", 16},
};

EngineCase combined(const Combination& row, int64_t layers) {
  ProgrammerConfig c = small_model(row.width);
  c.layers = layers;
  c.rule = row.rule;
  c.drive = row.drive;
  c.control.path = row.control;
  if (auto* windows = std::get_if<LogSignatures>(&c.control.path))
    windows->windows = PointWindows{.increments = 2, .tail = WindowTail::Keep};
  c.solver.method = method(row.method);
  const std::string name = message(row.rule, ", ", name_of(row.drive), ", ", name_of(row.control), ", ",
                                   row.method, ", width ", row.width, layers == 1 ? "" : ", two layers");
  return {name, c, {.lengths = kLengths, .outputs = CaseOutputs::Between, .missing = 0.25}};
}

// the flow of every rule that has one with every drive and control that go together; widths and depths take
// turns, since all products would take minutes
std::vector<EngineCase> flow_cases() {
  constexpr int64_t kWidths[] = {4, 5, 8, 3, 10, 1, 16, 20, 23, 32};
  std::vector<EngineCase> cases;
  for (const char* rule : {"hebb", "oja", "delta_pre", "delta_post"}) {
    for (const auto& [drive, drive_name] : names_of(Drive::X)) {
      for (const auto& [name, control] : alternatives_of(ControlPath())) {
        // hold has no x', and x is x' in windows of log-signatures
        if (std::holds_alternative<Hold>(control) && drive != Drive::X) continue;
        if (std::holds_alternative<LogSignatures>(control) && drive != Drive::X && drive != Drive::Derivative)
          continue;
        const auto index = static_cast<int64_t>(cases.size());
        cases.push_back(combined({rule, drive, control, "flow", kWidths[index % std::size(kWidths)]},
                                 /*layers=*/1 + index / 2 % 2));
      }
    }
  }
  return cases;
}

// one more choice each, beside those above; a slow net with fewer units than channels does not collapse
struct Special {
  const char* name;
  const char* rule;
  Drive drive;
  int64_t width;
  std::function<void(ProgrammerConfig&)> change;
};

const std::vector<Special> kSpecials = {
    {"two layers on W", "delta_pre", Drive::X, 4, [](ProgrammerConfig& c) { c.layers = 2; }},
    {"two layers on W and dW/dt", "oja", Drive::DerivativeKeys, 5, [](ProgrammerConfig& c) { c.layers = 2; }},
    {"two layers on dW/dt", "delta_post", Drive::X, 8,
     [](ProgrammerConfig& c) {
       c.layers = 2;
       c.layer_input = LayerInput::Update;
     }},
    {"three layers, W^T q, residual", "oja_softmax", Drive::X, 3,
     [](ProgrammerConfig& c) {
       c.layers = 3;
       c.residual = true;
       c.read = Read::Transposed;
     }},
    {"a norm on values", "delta_post", Drive::Derivative, 8,
     [](ProgrammerConfig& c) { c.value_norm = true; }},
    {"W^T q, raw rates and values", "hebb", Drive::DerivativeValues, 4,
     [](ProgrammerConfig& c) {
       c.read = Read::Transposed;
       c.learning_rate = LearningRate::Raw;
       c.value_activation = ValueActivation::None;
     }},
    {"deterministic", "delta_pre", Drive::DerivativeKeys, 10,
     [](ProgrammerConfig& c) { c.deterministic = true; }},
    // a mask of zeros and twos is the same in both types
    {"dropout of values", "delta_pre", Drive::DerivativeKeys, 5,
     [](ProgrammerConfig& c) { c.value_dropout = 0.5; }},
    {"dropout of values in two layers", "oja", Drive::X, 4,
     [](ProgrammerConfig& c) {
       c.value_dropout = 0.5;
       c.layers = 2;
     }},
    // a slow net with so many channels for its units does not collapse
    {"17 channels into 9 units", "delta_post", Drive::X, 3, [](ProgrammerConfig& c) { c.channels = 17; }},
    {"33 channels into 9 units, linear", "delta_pre", Drive::DerivativeKeys, 3,
     [](ProgrammerConfig& c) {
       c.channels = 33;
       c.control.path = Linear{};
     }},
    {"33 channels into 9 units, linear", "oja", Drive::DerivativeValues, 3,
     [](ProgrammerConfig& c) {
       c.channels = 33;
       c.control.path = Linear{};
     }},
    {"static features, steps of 0.4", "delta_pre", Drive::DerivativeKeys, 20,
     [](ProgrammerConfig& c) {
       c.initial = InitialWeights::StaticFeatures;
       c.static_features = 2;
       c.static_hidden_size = 5;
       c.solver.steps = RegularSteps{.size = 0.4};
     }},
    {"W(t0) = 0, intervals cut", "oja", Drive::X, 16,
     [](ProgrammerConfig& c) {
       c.initial = InitialWeights::Zero;
       c.solver.steps = ObservationSteps{.max_step = 0.6};
     }},
    // less than any block needs, and so many steps that W at the beginnings of blocks is little beside them
    {"several blocks of time", "delta_post", Drive::DerivativeKeys, 5,
     [](ProgrammerConfig& c) {
       c.solver.method = midpoint();
       c.solver.steps = ObservationSteps{.max_step = 0.02};
       c.solver.memory_limit = 1;
     }},
    {"several blocks of time, two layers", "delta_pre", Drive::X, 4,
     [](ProgrammerConfig& c) {
       c.layers = 2;
       c.solver.method = euler();
       c.solver.steps = ObservationSteps{.max_step = 0.05};
       c.solver.memory_limit = 1;
     }},
};

EngineCase special(const Special& row, const Method& method) {
  ProgrammerConfig c = small_model(row.width);
  c.rule = row.rule;
  c.drive = row.drive;
  c.solver.method = method;
  row.change(c);
  return {message(row.rule, ", ", name_of(row.drive), ", ", method_name(*c.solver.method), ", width ",
                  row.width, ", ", row.name),
          c,
          {.lengths = kLengths, .outputs = CaseOutputs::Between, .missing = 0.25}};
}

// specials that choose a method themselves are not run twice
bool has_flow(const Special& row) {
  ProgrammerConfig c = small_model(row.width);
  row.change(c);
  return !c.solver.method && std::string(row.rule) != "oja_softmax" &&
         c.learning_rate == LearningRate::Sigmoid;
}

}  // namespace

std::vector<EngineCase> engine_cases() {
  std::vector<EngineCase> cases;
  for (const Combination& row : kCombinations) cases.push_back(combined(row, /*layers=*/1));
  for (const Special& row : kSpecials) {
    cases.push_back(special(row, rk4()));
    if (has_flow(row)) cases.push_back(special(row, Flow{}));
  }
  for (EngineCase& flow : flow_cases()) cases.push_back(std::move(flow));
  return cases;
}

}  // namespace fastweights

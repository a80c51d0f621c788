#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "fastweights/error.h"
#include "fastweights/logsignature.h"
#include "fastweights/model_config.h"
#include "model/config_names.h"

namespace fastweights {
namespace {

// numbers per window that a slow net could still read
constexpr int64_t kLargestSignal = 1'000'000;

void check_at_least(const char* key, int64_t value, int64_t smallest) {
  FW_CHECK(value >= smallest, "[config] ", key, " must be at least ", smallest, ", got ", value);
  // far above anything that fits in memory, far below what overflows when sizes are multiplied
  FW_CHECK(value <= 100'000'000, "[config] ", key, " must be at most 100000000, got ", value);
}

void check_positive(const char* key, double value) {
  FW_CHECK(value > 0 && std::isfinite(value), "[config] ", key, " must be positive, got ", value);
}

void check_rate(const char* key, double value) {
  FW_CHECK(value >= 0 && value < 1, "[config] ", key, " must be at least 0 and below 1, got ", value);
}

void check_sizes(const ModelConfig& c) {
  check_at_least("channels", c.channels, 1);
  check_at_least("static_features", c.static_features, 0);
  check_at_least("outputs", c.outputs, 1);
  check_at_least("hidden_size", c.hidden_size, 1);
  check_at_least("heads", c.heads, 1);
  check_at_least("key_width", c.key_width, 0);
  check_at_least("value_width", c.value_width, 0);
  check_at_least("feed_forward_size", c.feed_forward_size, 0);
  check_at_least("static_hidden_size", c.static_hidden_size, 1);
  check_at_least("layers", c.layers, 1);
  check_at_least("map_hidden_size", c.map_hidden_size, 1);
  check_at_least("map_layers", c.map_layers, 1);
  check_rate("dropout", c.dropout);
  check_rate("value_dropout", c.value_dropout);
  check_positive("time_unit", c.time_unit);
  const bool divided = (c.key_width == 0 || c.value_width == 0) && c.drive != Drive::TensorMap;
  FW_CHECK(!divided || c.hidden_size % c.heads == 0, "[config] hidden_size ", c.hidden_size,
           " is not divisible by heads ", c.heads,
           "; choose other numbers, or set key_width and value_width");
}

void check_rule(const ModelConfig& c, const std::vector<Rule>& own_rules) {
  std::vector<std::string> known;
  for (const Rule& rule : all_rules()) known.push_back(rule.name);
  for (const Rule& rule : own_rules) {
    FW_CHECK(std::find(known.begin(), known.end(), rule.name) == known.end(), "[config] there is a rule '",
             rule.name, "' already; give your own another name");
    FW_CHECK(!rule.name.empty() && rule.slope, "[config] your own rule '", rule.name,
             "' needs a name and a slope");
    known.push_back(rule.name);
  }
  FW_CHECK(std::find(known.begin(), known.end(), c.rule) != known.end(), "[config] rule cannot be '", c.rule,
           "'; the nearest is '", nearest(c.rule, known), "'");
  FW_CHECK(c.value_activation == ValueActivation::Tanh || c.rule != "delta_post",
           "[config] value_activation none contradicts rule delta_post, which takes the tanh after the "
           "subtraction; take delta_pre");
}

void check_control(const ModelConfig& c) {
  const ControlConfig& control = c.control;
  const std::string drive = name_of(c.drive);
  FW_CHECK(control.kind != ControlKind::Hold || c.drive == Drive::X, "[config] drive ", drive,
           " needs x'(t), and control.kind hold has none; take linear, hermite_cubic or natural_cubic, or "
           "drive x");
  const bool mixed = c.drive == Drive::DerivativeKeys || c.drive == Drive::DerivativeValues;
  FW_CHECK(control.kind != ControlKind::LogSignature || !mixed, "[config] drive ", drive,
           " tells x from x', and with control.kind log_signature both are the log-signature; take drive x "
           "or derivative");
  check_at_least("control.time_channel", control.time_channel, 0);
  FW_CHECK(control.kind != ControlKind::Rectilinear || control.time_channel < c.channels,
           "[config] control.time_channel must be below channels ", c.channels, ", got ",
           control.time_channel);
  FW_CHECK(control.window_duration >= 0 && std::isfinite(control.window_duration),
           "[config] control.window_duration must be positive, or 0 for windows of points, got ",
           control.window_duration);
  check_at_least("control.window_increments", control.window_increments, 1);
  check_at_least("control.depth", control.depth, 1);
  if (control.kind != ControlKind::LogSignature) {
    FW_CHECK(control.last_window == LastWindow::Once,
             "[config] control.last_window twice needs control.kind log_signature, got ",
             name_of(control.kind));
  }
  int64_t size = 0;
  try {
    size = signal_size(c);
  } catch (const std::invalid_argument& error) {
    FW_CHECK(false, "[config] control.depth ", control.depth, " is too much for channels ", c.channels, ": ",
             error.what());
  }
  FW_CHECK(size <= kLargestSignal, "[config] control.depth ", control.depth, " makes log-signatures of ",
           size, " numbers from channels ", c.channels, "; more than ", kLargestSignal, " cannot be meant");
}

void check_method(const SolverConfig& s) {
  std::vector<std::string> known = {"explicit_adams", "implicit_adams"};
  for (const Tableau& method : all_tableaux()) known.push_back(method.name);
  FW_CHECK(std::find(known.begin(), known.end(), s.method) != known.end(),
           "[config] solver.method cannot be '", s.method, "'; the nearest is '", nearest(s.method, known),
           "'");
  const Method chosen = method(s.method);
  const Tableau* tableau = std::get_if<Tableau>(&chosen);
  FW_CHECK(s.steps != StepRule::Adaptive || (tableau && tableau->adaptive()), "[config] solver.method ",
           s.method, " has no error estimate, which solver.steps adaptive needs; take dopri5");
  const bool equal = s.steps == StepRule::Fixed || s.steps == StepRule::SharedGrid;
  FW_CHECK(tableau || equal, "[config] solver.method ", s.method, " needs equal steps, not solver.steps ",
           name_of(s.steps), "; take fixed, or a Runge-Kutta method");
}

void check_solver(const ModelConfig& c) {
  const SolverConfig& s = c.solver;
  check_method(s);
  const bool shared = s.steps == StepRule::SharedGrid;
  FW_CHECK(s.step_size >= 0 && std::isfinite(s.step_size),
           "[config] solver.step_size must not be negative, got ", s.step_size);
  FW_CHECK(s.steps != StepRule::Fixed || s.step_size > 0,
           "[config] solver.steps fixed needs solver.step_size above 0");
  check_positive("solver.rtol", s.rtol);
  check_positive("solver.atol", s.atol);
  FW_CHECK(s.max_step >= 0 && std::isfinite(s.max_step),
           "[config] solver.max_step must be positive, or 0 for no limit, got ", s.max_step);
  FW_CHECK(s.memory_limit >= 0, "[config] solver.memory_limit must not be negative, got ", s.memory_limit);
  FW_CHECK(s.shortening >= 0 && std::isfinite(s.shortening),
           "[config] solver.shortening must not be negative, got ", s.shortening);
  FW_CHECK(shared || s.edges != StageEdges::Shortened,
           "[config] solver.edges shortened needs solver.steps shared_grid, not ", name_of(s.steps));
  FW_CHECK(shared || s.stage_times == StageTimes::Double,
           "[config] solver.stage_times single needs solver.steps shared_grid, not ", name_of(s.steps));
  const bool path = c.control.kind != ControlKind::LogSignature && c.control.kind != ControlKind::Rectilinear;
  FW_CHECK(!shared || path || s.step_size > 0, "[config] solver.steps shared_grid with control.kind ",
           name_of(c.control.kind), " needs a solver.step_size: the smallest gap is that of observations");
}

void check_initial(const ModelConfig& c) {
  const bool from_static = c.initial == InitialWeights::StaticFeatures;
  FW_CHECK(!from_static || c.static_features > 0,
           "[config] initial static_features needs static_features above 0");
  FW_CHECK(from_static || c.static_features == 0, "[config] static_features ", c.static_features,
           " would not be read with initial ", name_of(c.initial), "; set initial to static_features");
  FW_CHECK(c.query != QueryTime::FirstObservation || c.initial == InitialWeights::FirstObservation,
           "[config] query first_observation needs initial first_observation, not ", name_of(c.initial));
}

// a tensor map has neither rule nor slow net
void check_tensor_map(const ModelConfig& c) {
  FW_CHECK(c.initial != InitialWeights::Rule,
           "[config] drive tensor_map has no rule; initial must be zero, static_features or "
           "first_observation");
  FW_CHECK(c.layers == 1, "[config] drive tensor_map has one layer, got layers ", c.layers);
  FW_CHECK(c.query != QueryTime::FirstObservation && c.read == Read::Plain && !c.residual && !c.value_norm,
           "[config] drive tensor_map takes neither query first_observation nor read transposed, residual or "
           "value_norm");
  FW_CHECK(c.value_dropout == 0, "[config] drive tensor_map has no values for value_dropout");
}

void check_layers(const ModelConfig& c) {
  FW_CHECK(!c.value_norm || c.drive != Drive::X,
           "[config] value_norm needs values with a projection of their own, which drive x does not have");
  FW_CHECK(c.layers > 1 || c.layer_input == LayerInput::Weights,
           "[config] layer_input update needs layers above 1");
  const int64_t keys = c.key_width > 0 ? c.key_width : c.hidden_size / c.heads;
  const int64_t values = c.value_width > 0 ? c.value_width : c.hidden_size / c.heads;
  const int64_t width = c.heads * (c.read == Read::Plain ? values : keys);
  FW_CHECK(!c.residual || width == c.hidden_size, "[config] residual adds hidden_size ", c.hidden_size,
           " numbers to what W gives, ", width, "; they must be as many");
}

void check_deterministic(const ModelConfig& c) {
  if (!c.deterministic) return;
  FW_CHECK(c.query != QueryTime::LastOfBatch,
           "[config] deterministic contradicts query last_of_batch: a sample would depend on its batch");
  FW_CHECK(
      c.solver.error_control != ErrorControl::Joint || c.solver.steps != StepRule::Adaptive,
      "[config] deterministic contradicts solver.error_control joint: a sample would depend on its batch");
  FW_CHECK(c.solver.steps != StepRule::SharedGrid,
           "[config] deterministic contradicts solver.steps shared_grid: a sample would depend on its batch");
  FW_CHECK(c.solver.method != "implicit_adams",
           "[config] deterministic contradicts solver.method implicit_adams, whose corrector looks at the "
           "whole batch");
}

}  // namespace

int64_t signal_size(const ModelConfig& config) {
  if (config.control.kind != ControlKind::LogSignature) return config.channels;
  return logsignature_size(config.channels, {.depth = config.control.depth});
}

void check_config(const ModelConfig& config, const std::vector<Rule>& own_rules) {
  check_sizes(config);
  check_rule(config, own_rules);
  check_control(config);
  check_solver(config);
  check_initial(config);
  if (config.drive == Drive::TensorMap) {
    check_tensor_map(config);
  } else {
    check_layers(config);
  }
  check_deterministic(config);
}

}  // namespace fastweights

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "fastweights/logsignature.h"
#include "fastweights/model_config.h"
#include "model/config_checks.h"
#include "model/config_names.h"

namespace fastweights {

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

namespace {

// numbers per window that a slow net could still read
constexpr int64_t kLargestSignal = 1'000'000;
// parameters, and fast weights of one sample: gigabytes
constexpr double kMostNumbers = 1e9;

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

// sizes as numbers that cannot overflow
struct Widths {
  double hidden, signal, keys, values, read, feed_forward;  // keys, values, read: of all heads
};

Widths widths_of(const ModelConfig& c) {
  const auto width = [&](int64_t given) {
    return static_cast<double>(c.heads) * static_cast<double>(given > 0 ? given : c.hidden_size / c.heads);
  };
  const auto hidden = static_cast<double>(c.hidden_size);
  const double keys = width(c.key_width), values = width(c.value_width);
  return {.hidden = hidden,
          .signal = static_cast<double>(signal_size(c)),
          .keys = keys,
          .values = values,
          .read = c.read == Read::Plain ? values : keys,
          .feed_forward = c.feed_forward_size > 0 ? static_cast<double>(c.feed_forward_size) : 4 * hidden};
}

// entries of the weight matrices of the layers, or of the tensor map
double layer_numbers(const ModelConfig& c, const Widths& w) {
  const auto layers = static_cast<double>(c.layers - 1), heads = static_cast<double>(c.heads);
  if (c.drive == Drive::TensorMap) {
    const double state = w.hidden * w.signal, wide = static_cast<double>(c.map_hidden_size);
    if (c.map_layers == 1) return state * state * w.signal;
    return state * wide + static_cast<double>(c.map_layers - 2) * wide * wide + wide * state * w.signal;
  }
  const double programme = w.keys + heads + w.keys + w.values;
  const double own_values = c.value_norm ? w.values * w.values : 0;
  return w.hidden * (w.signal + programme) + w.signal * w.values + own_values +
         layers * (w.read * (programme + 2 * w.feed_forward) + own_values);
}

void check_memory(const ModelConfig& c) {
  const Widths w = widths_of(c);
  const bool is_map = c.drive == Drive::TensorMap;
  const double state = is_map
                           ? w.hidden * w.signal
                           : static_cast<double>(c.layers) * w.keys * w.values / static_cast<double>(c.heads);
  double parameters =
      layer_numbers(c, w) + w.hidden * (w.read + 2 * w.feed_forward + static_cast<double>(c.outputs));
  if (c.initial == InitialWeights::FirstObservation) {
    parameters += static_cast<double>(c.channels) * (is_map ? state : w.signal);
  }
  if (c.initial == InitialWeights::StaticFeatures) {
    const double numbers = is_map ? state : w.keys + w.values + static_cast<double>(c.heads);
    parameters +=
        static_cast<double>(c.static_hidden_size) * (static_cast<double>(c.static_features) + numbers);
  }
  FW_CHECK(parameters <= kMostNumbers, "[config] these sizes mean about ", parameters,
           " parameters; more than ", kMostNumbers, " cannot be meant");
  FW_CHECK(state <= kMostNumbers, "[config] these sizes mean ", state,
           " fast weights for every sample; more than ", kMostNumbers, " cannot be meant");
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
           "'; the nearest is '", nearest(c.rule, known), "', and a rule of your own must be given, too");
  FW_CHECK(c.value_activation == ValueActivation::Tanh || c.rule != "delta_post",
           "[config] value_activation none contradicts rule delta_post, which takes the tanh after the "
           "subtraction; take delta_pre");
  for (const Rule& rule : own_rules) {
    FW_CHECK(
        c.value_activation == ValueActivation::Tanh || rule.name != c.rule || rule.value == ValueForm::Tanh,
        "[config] value_activation none contradicts rule ", c.rule, ", whose values have no tanh");
  }
}

}  // namespace

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
  int64_t size = 0;
  try {
    size = signal_size(c);
  } catch (const std::invalid_argument& error) {
    FW_CHECK(false, "[config] control.depth ", control.depth, " is too much for channels ", c.channels, ": ",
             error.what());
  }
  FW_CHECK(control.kind != ControlKind::LogSignature || size <= kLargestSignal, "[config] control.depth ",
           control.depth, " makes log-signatures of ", size, " numbers from channels ", c.channels,
           "; more than ", kLargestSignal, " cannot be meant");
}

namespace {

void check_method(const SolverConfig& s) {
  std::vector<std::string> known = {"explicit_adams", "implicit_adams", kExactFlow};
  for (const Tableau& method : all_tableaux()) known.push_back(method.name);
  FW_CHECK(std::find(known.begin(), known.end(), s.method) != known.end(),
           "[config] solver.method cannot be '", s.method, "'; the nearest is '", nearest(s.method, known),
           "'");
  if (s.method == kExactFlow) return;
  const Method chosen = method(s.method);
  const Tableau* tableau = std::get_if<Tableau>(&chosen);
  FW_CHECK(s.steps != StepRule::Adaptive || (tableau && tableau->adaptive()), "[config] solver.method ",
           s.method, " has no error estimate, which solver.steps adaptive needs; take dopri5");
  // steps fixed end at outputs, too, and are no longer equal there
  const bool equal = s.steps == StepRule::SharedGrid;
  FW_CHECK(tableau || equal, "[config] solver.method ", s.method, " needs equal steps, not solver.steps ",
           name_of(s.steps), "; take shared_grid, or a Runge-Kutta method");
}

// the solution itself needs a linear rule, and nothing that changes inside a step
void check_exact_flow(const ModelConfig& c) {
  if (c.solver.method != kExactFlow) return;
  FW_CHECK(c.drive != Drive::TensorMap && (c.rule == "hebb" || c.rule == "oja" || c.rule == "delta_pre"),
           "[config] solver.method exact_flow needs a rule that is linear in W: hebb, oja or delta_pre");
  const ControlKind kind = c.control.kind;
  const bool constant = kind == ControlKind::LogSignature || kind == ControlKind::Hold;
  const bool straight = kind == ControlKind::Linear || kind == ControlKind::Rectilinear;
  FW_CHECK(constant || (straight && c.drive == Drive::Derivative),
           "[config] solver.method exact_flow needs a signal that is constant between observations: "
           "control.kind log_signature or hold, or linear or rectilinear with drive derivative");
  FW_CHECK(c.layers == 1,
           "[config] solver.method exact_flow needs layers 1: what a second layer reads moves");
  FW_CHECK(c.solver.steps == StepRule::Observations && c.solver.edges == StageEdges::Inside,
           "[config] solver.method exact_flow needs solver.steps observations and solver.edges inside");
  FW_CHECK(c.solver.gradient != Gradient::Adjoint,
           "[config] solver.method exact_flow has an exact gradient and no adjoint");
}

}  // namespace

void check_solver(const ModelConfig& c) {
  const SolverConfig& s = c.solver;
  check_method(s);
  check_exact_flow(c);
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

namespace {

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

// What was asked for and would not be read. Left at its default nothing was asked for; solver.edges and
// solver.error_control may wait for another solver.steps, as in the published models; time_unit comes from
// the data, whatever the control.
struct Unread {
  const char* key;
  bool asked, read;
  const char* needs;
};

std::vector<Unread> unread_choices(const ModelConfig& c) {
  const ModelConfig d;
  const bool map = c.drive == Drive::TensorMap;
  const char* rules = "a drive other than tensor_map, which has no rule";
  return {{"rule", c.rule != d.rule, !map, rules},
          {"key_width", c.key_width != d.key_width, !map, rules},
          {"value_width", c.value_width != d.value_width, !map, rules},
          {"learning_rate", c.learning_rate != d.learning_rate, !map, rules},
          {"value_activation", c.value_activation != d.value_activation, !map, rules},
          {"map_hidden_size", c.map_hidden_size != d.map_hidden_size, map, "drive tensor_map"},
          {"map_layers", c.map_layers != d.map_layers, map, "drive tensor_map"},
          {"static_hidden_size", c.static_hidden_size != d.static_hidden_size, c.static_features > 0,
           "static_features above 0"}};
}

std::vector<Unread> unread_choices(const ControlConfig& c) {
  const ControlConfig d;
  const bool windows = c.kind == ControlKind::LogSignature, points = c.window_duration == 0;
  const char* signature = "control.kind log_signature";
  const char* by_points = "windows of points, so control.window_duration 0";
  return {{"control.end_filling", c.end_filling != d.end_filling, c.kind == ControlKind::NaturalCubic,
           "control.kind natural_cubic"},
          {"control.time_channel", c.time_channel != d.time_channel, c.kind == ControlKind::Rectilinear,
           "control.kind rectilinear"},
          {"control.depth", c.depth != d.depth, windows, signature},
          {"control.window_increments", c.window_increments != d.window_increments, windows, signature},
          {"control.window_duration", c.window_duration != d.window_duration, windows, signature},
          {"control.window_tail", c.window_tail != d.window_tail, windows, signature},
          {"control.clock", c.clock != d.clock, windows, signature},
          {"control.last_window", c.last_window != d.last_window, windows, signature},
          {"control.window_increments", c.window_increments != d.window_increments, points, by_points},
          {"control.window_tail", c.window_tail != d.window_tail, points, by_points}};
}

std::vector<Unread> unread_choices(const SolverConfig& c) {
  const SolverConfig d;
  const bool adaptive = c.steps == StepRule::Adaptive;
  const bool regular = c.steps == StepRule::Fixed || c.steps == StepRule::SharedGrid;
  const bool through = adaptive && c.error_control == ErrorControl::Joint && c.gradient == Gradient::Exact;
  return {{"solver.step_size", c.step_size != d.step_size, regular, "solver.steps fixed or shared_grid"},
          {"solver.max_step", c.max_step != d.max_step, !regular, "solver.steps observations or adaptive"},
          {"solver.rtol", c.rtol != d.rtol, adaptive, "solver.steps adaptive"},
          {"solver.atol", c.atol != d.atol, adaptive, "solver.steps adaptive"},
          {"solver.shortening", c.shortening != d.shortening, c.edges == StageEdges::Shortened,
           "solver.edges shortened"},
          {"solver.first_step_gradient", c.first_step_gradient != d.first_step_gradient, through,
           "solver.steps adaptive, error_control joint and gradient exact"},
          {"solver.memory_limit", c.memory_limit != d.memory_limit,
           c.gradient == Gradient::Checkpointed || (c.gradient == Gradient::Exact && !adaptive),
           "solver.gradient checkpointed, or exact without adaptive steps"}};
}

template <typename Config>
void check_unread(const Config& config) {
  for (const Unread& choice : unread_choices(config)) {
    FW_CHECK(!choice.asked || choice.read, "[config] ", choice.key, " would not be used here; it needs ",
             choice.needs);
  }
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
}

}  // namespace

int64_t signal_size(const ModelConfig& config) {
  if (config.control.kind != ControlKind::LogSignature) return config.channels;
  return logsignature_size(config.channels, {.depth = config.control.depth});
}

void check_parts_read(const ModelConfig& config) {
  check_unread(config.control);
  check_unread(config.solver);
}

void check_config(const ModelConfig& config, const std::vector<Rule>& own_rules) {
  check_keys_read(config);
  if (config.system != System::FastWeights) return check_system(config);
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
  check_unread(config);
  check_parts_read(config);
  check_memory(config);
  check_deterministic(config);
}

}  // namespace fastweights

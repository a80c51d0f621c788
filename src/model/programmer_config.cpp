#include "model/programmer_config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "model/config_checks.h"
#include "model/config_names.h"
#include "ops/scan/plan.h"

namespace fastweights {
namespace {

void check_sizes(const ProgrammerConfig& c) {
  check_at_least("heads", c.heads, 1);
  check_at_least("key_width", c.key_width, 0);
  check_at_least("value_width", c.value_width, 0);
  check_at_least("feed_forward_size", c.feed_forward_size, 0);
  check_layers("layers", c.layers, 1);
  check_at_least("map_hidden_size", c.map_hidden_size, 1);
  check_layers("map_layers", c.map_layers, 1);
  check_rate("value_dropout", c.value_dropout);
  const bool divided = (c.key_width == 0 || c.value_width == 0) && !c.tensor_map;
  FW_CHECK(!divided || c.hidden_size % c.heads == 0, "[config] hidden_size ", c.hidden_size,
           " is not divisible by heads ", c.heads, "; choose other values, or set key_width and value_width");
}

// sizes as floating-point values, which cannot overflow
struct Widths {
  double hidden, signal, keys, values, read, feed_forward;  // keys, values, read: of all heads
};

Widths widths_of(const ProgrammerConfig& c) {
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
double layer_parameters(const ProgrammerConfig& c, const Widths& w) {
  const auto layers = static_cast<double>(c.layers - 1), heads = static_cast<double>(c.heads);
  if (c.tensor_map) {
    const double state = w.hidden * w.signal, wide = static_cast<double>(c.map_hidden_size);
    if (c.map_layers == 1) return state * state * w.signal;
    return state * wide + static_cast<double>(c.map_layers - 2) * wide * wide + wide * state * w.signal;
  }
  const double program = w.keys + heads + w.keys + w.values;
  const double own_values = c.value_norm ? w.values * w.values : 0;
  return w.hidden * (w.signal + program) + w.signal * w.values + own_values +
         layers * (w.read * (program + 2 * w.feed_forward) + own_values);
}

void check_memory(const ProgrammerConfig& c) {
  const Widths w = widths_of(c);
  const bool is_map = c.tensor_map;
  const double state = is_map
                           ? w.hidden * w.signal
                           : static_cast<double>(c.layers) * w.keys * w.values / static_cast<double>(c.heads);
  double parameters =
      layer_parameters(c, w) + w.hidden * (w.read + 2 * w.feed_forward + static_cast<double>(c.outputs));
  if (c.initial == InitialWeights::FirstObservation) {
    parameters += static_cast<double>(c.channels) * (is_map ? state : w.signal);
  }
  if (c.initial == InitialWeights::StaticFeatures) {
    const double outputs = is_map ? state : w.keys + w.values + static_cast<double>(c.heads);
    parameters +=
        static_cast<double>(c.static_hidden_size) * (static_cast<double>(c.static_features) + outputs);
  }
  std::vector<SizeKey> keys = {{"hidden_size", c.hidden_size}, {"channels", c.channels},
                               {"outputs", c.outputs},         {"static_features", c.static_features},
                               {"layers", c.layers},           {"feed_forward_size", c.feed_forward_size},
                               {"key_width", c.key_width},     {"value_width", c.value_width}};
  if (c.tensor_map) keys.emplace_back("map_hidden_size", c.map_hidden_size);
  if (c.initial == InitialWeights::StaticFeatures)
    keys.emplace_back("static_hidden_size", c.static_hidden_size);
  check_count(parameters, "parameters", keys);
  check_count(state, "fast weights for every sample", keys);
}

void check_rule(const ProgrammerConfig& c, const std::vector<Rule>& custom_rules) {
  std::vector<std::string> known;
  for (const Rule& rule : all_rules()) known.push_back(rule.name);
  for (const Rule& rule : custom_rules) {
    FW_CHECK(std::find(known.begin(), known.end(), rule.name) == known.end(), "[config] there is a rule '",
             rule.name, "' already; choose another name");
    FW_CHECK(!rule.name.empty() && rule.slope, "[config] the custom rule '", rule.name,
             "' needs a name and a slope");
    known.push_back(rule.name);
  }
  const Rule* rule = find_rule(c.rule, custom_rules);
  FW_CHECK(rule, "[config] rule cannot be '", c.rule, "'", suggestion(c.rule, known),
           ", and custom rules must be passed in custom_rules");
  FW_CHECK(c.value_activation == ValueActivation::Tanh || rule->value == ValueForm::Tanh,
           "[config] value_activation none contradicts rule ", c.rule, ", whose values have no tanh");
}

void check_drive(const ProgrammerConfig& c) {
  const ControlPath& path = c.control.path;
  const std::string drive = c.tensor_map ? "of a tensor map" : name_of(c.drive);
  FW_CHECK(!std::holds_alternative<Hold>(path) || c.drive == Drive::X, "[config] drive ", drive,
           " needs x'(t), and control.kind hold has none; take linear, hermite_cubic or natural_cubic, or "
           "drive x");
  const bool mixed = c.drive == Drive::DerivativeKeys || c.drive == Drive::DerivativeValues;
  FW_CHECK(!std::holds_alternative<LogSignatures>(path) || !mixed, "[config] drive ", drive,
           " distinguishes x from x', and with control.kind log_signature both are the log-signature; take "
           "drive x "
           "or derivative");
}

// why this model has no flow, or an empty text
std::string flow_refusal(const ProgrammerConfig& c, const std::vector<Rule>& custom_rules) {
  const Rule* rule = c.tensor_map ? nullptr : find_rule(c.rule, custom_rules);
  if (!rule) return "a rule";
  if (!has_flow(*rule)) return "another rule: " + rule->name + " has no closed solution";
  if (c.learning_rate != LearningRate::Sigmoid && rule->slope.kernel != RuleKernel::Hebb)
    return "learning_rate sigmoid: a negative rate grows without bound";
  if (std::holds_alternative<AdaptiveSteps>(c.solver.steps)) return "steps that are not adaptive";
  if (c.solver.gradient == Gradient::Adjoint) return "solver.gradient exact or checkpointed";
  return "";
}

void check_flow(const ProgrammerConfig& c, const std::vector<Rule>& custom_rules) {
  if (!std::holds_alternative<Flow>(method_of(c.solver))) return;
  const std::string refusal = flow_refusal(c, custom_rules);
  FW_CHECK(refusal.empty(), "[config] solver.method flow needs ", refusal);
}

void check_initial(const ProgrammerConfig& c) {
  const bool from_static = c.initial == InitialWeights::StaticFeatures;
  FW_CHECK(!from_static || c.static_features > 0,
           "[config] initial static_features needs static_features above 0");
  FW_CHECK(from_static || c.static_features == 0, "[config] static_features ", c.static_features,
           " would not be read with initial ", name_of(c.initial), "; set initial to static_features");
  FW_CHECK(c.static_hidden_size == FastWeights{}.static_hidden_size || c.static_features > 0,
           "[config] static_hidden_size would not be used here; it needs static_features above 0");
  FW_CHECK(c.query != QueryTime::FirstObservation || c.initial == InitialWeights::FirstObservation,
           "[config] query first_observation needs initial first_observation, not ", name_of(c.initial));
}

// a tensor map has no rule
void check_tensor_map(const ProgrammerConfig& c) {
  FW_CHECK(c.initial != InitialWeights::Rule,
           "[config] a tensor map has no rule; initial must be zero, static_features or first_observation");
  FW_CHECK(c.query != QueryTime::FirstObservation,
           "[config] a tensor map does not support query first_observation");
}

void check_layers(const ProgrammerConfig& c) {
  FW_CHECK(!c.value_norm || c.drive != Drive::X,
           "[config] value_norm needs values with a projection of their own, which drive x does not have");
  FW_CHECK(c.layers > 1 || c.layer_input == LayerInput::Weights,
           "[config] layer_input update needs layers above 1");
  const int64_t keys = c.key_width > 0 ? c.key_width : c.hidden_size / c.heads;
  const int64_t values = c.value_width > 0 ? c.value_width : c.hidden_size / c.heads;
  const int64_t width = c.heads * (c.read == Read::Plain ? values : keys);
  FW_CHECK(!c.residual || width == c.hidden_size, "[config] residual adds hidden_size ", c.hidden_size,
           " to the reads of W, whose width is ", width, "; the two must be equal");
}

void check_deterministic(const ProgrammerConfig& c) {
  if (!c.deterministic) return;
  FW_CHECK(c.query != QueryTime::LastOfBatch,
           "[config] deterministic contradicts query last_of_batch: a sample would depend on its batch");
  const auto* adaptive = std::get_if<AdaptiveSteps>(&c.solver.steps);
  FW_CHECK(
      !adaptive || adaptive->control != ErrorControl::Joint,
      "[config] deterministic contradicts solver.error_control joint: a sample would depend on its batch");
  FW_CHECK(!std::holds_alternative<FixedSteps>(c.solver.steps),
           "[config] deterministic contradicts solver.steps shared_grid: a sample would depend on its batch");
}

}  // namespace

const Rule* find_rule(const std::string& name, const std::vector<Rule>& custom_rules) {
  for (const std::vector<Rule>* rules : {&all_rules(), &custom_rules}) {
    for (const Rule& rule : *rules) {
      if (rule.name == name) return &rule;
    }
  }
  return nullptr;
}

ProgrammerConfig::ProgrammerConfig(const ModelConfig& config)
    : channels(config.channels), static_features(config.static_features), outputs(config.outputs) {
  if (const auto* map = config.architecture.get_if<TensorMap>()) {
    tensor_map = true;
    drive = Drive::Derivative;
    control = map->control;
    solver = map->solver;
    backend = map->backend;
    hidden_size = map->hidden_size;
    feed_forward_size = map->feed_forward_size;
    static_hidden_size = map->static_hidden_size;
    map_hidden_size = map->map_hidden_size;
    map_layers = map->map_layers;
    initial = map->initial;
    query = map->query;
    dropout = map->dropout;
    time_unit = map->time_unit;
    deterministic = map->deterministic;
    unused_layer = map->unused_layer;
  } else {
    static_cast<FastWeights&>(*this) = fast_weights(config);
  }
}

ProgrammerConfig::operator ModelConfig() const {
  ModelConfig config = {.channels = channels, .static_features = static_features, .outputs = outputs};
  if (tensor_map) {
    config.architecture = TensorMap{.control = control,
                                    .solver = solver,
                                    .backend = backend,
                                    .hidden_size = hidden_size,
                                    .feed_forward_size = feed_forward_size,
                                    .static_hidden_size = static_hidden_size,
                                    .map_hidden_size = map_hidden_size,
                                    .map_layers = map_layers,
                                    .initial = initial,
                                    .query = query,
                                    .dropout = dropout,
                                    .time_unit = time_unit,
                                    .deterministic = deterministic,
                                    .unused_layer = unused_layer};
  } else {
    config.architecture = static_cast<const FastWeights&>(*this);
  }
  return config;
}

namespace {

// whether keys, values and rates may change between two observations
bool varies(const ProgrammerConfig& c) {
  const ControlPath& path = c.control.path;
  const bool constant = std::holds_alternative<Hold>(path) || std::holds_alternative<LogSignatures>(path);
  const bool straight = std::holds_alternative<Linear>(path) || std::holds_alternative<Rectilinear>(path);
  return c.layers > 1 || !(constant || (straight && c.drive == Drive::Derivative));
}

}  // namespace

SolverConfig chosen_solver(const ProgrammerConfig& config, const std::vector<Rule>& custom_rules) {
  SolverConfig solver = config.solver;
  if (!solver.method) {
    const bool flows =
        flow_refusal(config, custom_rules).empty() && !std::holds_alternative<FixedSteps>(solver.steps);
    solver.method = flows ? Method(Flow{}) : Method(rk4());
  }
  auto* between = std::get_if<ObservationSteps>(&solver.steps);
  if (between && between->parts == 0)
    between->parts = std::holds_alternative<Flow>(*solver.method) && varies(config) ? 2 : 1;
  return solver;
}

void check_programmer(const ProgrammerConfig& config, const std::vector<Rule>& custom_rules) {
  check_shared(config.shared());
  check_sizes(config);
  check_rule(config, custom_rules);
  check_drive(config);
  check_solver(config.solver, config.control);
  check_flow(config, custom_rules);
  check_initial(config);
  if (config.tensor_map) {
    check_tensor_map(config);
  } else {
    check_layers(config);
  }
  check_memory(config);
  check_deterministic(config);
}

}  // namespace fastweights

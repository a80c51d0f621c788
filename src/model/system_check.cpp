#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/config_checks.h"
#include "model/config_fields.h"

namespace fastweights {
namespace {

using Keys = std::vector<std::string>;

// what a system reads besides sizes, dropout and time_unit; a group's name stands for all of its keys
Keys keys_of(System system) {
  const Keys rule = {"rule", "heads", "feed_forward_size"};
  const auto with = [](Keys keys, const Keys& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  switch (system) {
    case System::FastWeights:
      return {};
    case System::NeuralCde:
      return {"control", "solver", "field", "backend"};
    case System::GruOde:
    case System::DirectGruOde:
      return {"control", "solver", "backend"};
    case System::OdeRnn:
      return {"control", "solver", "field", "rows.input", "rows.values_only", "rows.known_channels"};
    case System::GruDt:
    case System::GruD:
      return {"control", "rows.input", "rows.values_only", "rows.known_channels"};
    case System::Gru:
    case System::Lstm:
    case System::Lem:
      return {"control", "layers"};
    case System::LatentOde:
      return {"control", "solver", "field", "latent", "rows.known_channels"};
    case System::LinearTransformer:
    case System::DeltaNet:
      return {"control", "heads", "layers", "feed_forward_size", "backend"};
    case System::RecurrentFwp:
      return {"control", "heads", "layers", "feed_forward_size"};
    case System::OdeRfwp:
      return with(rule, {"control", "solver", "field", "rows.order", "rows.known_channels"});
    case System::LatentOdeRfwp:
      return with(rule,
                  {"control", "solver", "field", "rows.order", "rows.known_channels", "latent.divergence"});
  }
  return {};
}

bool is_key(const std::string& key, const std::string& name) {
  return key == name || key.rfind(name + ".", 0) == 0;
}

// keys whose values differ, with dots between groups
void add_changed(const Json& given, const Json& plain, const std::string& where, Keys& changed) {
  for (const auto& [key, value] : given.items()) {
    if (value.is_object()) {
      add_changed(value, plain[key], where + key + ".", changed);
    } else if (value != plain[key]) {
      changed.push_back(where + key);
    }
  }
}

}  // namespace

bool reads_key(System system, const std::string& key) {
  if (system == System::FastWeights)
    return !is_key(key, "field") && !is_key(key, "rows") && !is_key(key, "latent");
  static const Keys kAlways = {"system",      "channels", "static_features",    "outputs",
                               "hidden_size", "dropout",  "static_hidden_size", "time_unit"};
  const Keys own = keys_of(system);
  const auto names_it = [&](const std::string& name) { return is_key(key, name); };
  return std::any_of(kAlways.begin(), kAlways.end(), names_it) ||
         std::any_of(own.begin(), own.end(), names_it);
}

namespace {

bool is_continuous(System system) {
  return system == System::NeuralCde || system == System::GruOde || system == System::DirectGruOde;
}

void check_field(const FieldConfig& field) {
  check_at_least("field.hidden_size", field.hidden_size, 1);
  check_at_least("field.layers", field.layers, 0);
  FW_CHECK(field.layers <= 1000, "[config] field.layers must be at most 1000, got ", field.layers);
}

void check_published_rows(const ModelConfig& c) {
  const bool published = c.rows.input != RowInput::Masked;
  check_at_least("rows.known_channels", c.rows.known_channels, 0);
  FW_CHECK(c.rows.known_channels < c.channels, "[config] rows.known_channels must be below channels ",
           c.channels, ", got ", c.rows.known_channels);
  FW_CHECK(published || !c.rows.values_only, "[config] rows.values_only needs rows.input published");
  FW_CHECK(!published || c.channels % 2 == 1,
           "[config] rows.input published takes time, counts and values: an odd number of channels, got ",
           c.channels);
}

void check_continuous(const ModelConfig& c) {
  FW_CHECK(c.solver.method != kExactFlow, "[config] solver.method exact_flow needs system fast_weights");
  FW_CHECK(c.backend == Backend::Auto || c.backend == Backend::Reference,
           "[config] backend must be auto or reference with system ", name_of(c.system),
           ", which has no kernels");
  const bool derivative = c.system != System::DirectGruOde;
  FW_CHECK(!derivative || c.control.kind != ControlKind::Hold, "[config] system ", name_of(c.system),
           " needs x'(t), and control.kind hold has none; take linear, hermite_cubic or natural_cubic");
  FW_CHECK(c.system != System::GruOde || c.control.kind != ControlKind::LogSignature,
           "[config] system gru_ode needs a path, not control.kind log_signature");
}

void check_rows(const ModelConfig& c) {
  FW_CHECK(c.backend != Backend::Cuda, "[config] backend cuda needs system fast_weights");
  const ControlKind kind = c.control.kind;
  FW_CHECK(kind != ControlKind::LogSignature && kind != ControlKind::Rectilinear, "[config] system ",
           name_of(c.system), " goes from row to row, and control.kind ", name_of(kind),
           " has no values there; take hold");
}

// gigabytes of parameters are a slip; sizes as numbers that cannot overflow
void check_parameter_count(const ModelConfig& c) {
  constexpr double kMostNumbers = 1e9;
  const auto d = static_cast<double>(c.hidden_size), layers = static_cast<double>(c.layers),
             inputs = 1 + 2 * static_cast<double>(c.channels),
             wide = static_cast<double>(c.field.hidden_size);
  const auto signal = static_cast<double>(signal_size(c));
  const double ff = c.feed_forward_size > 0 ? static_cast<double>(c.feed_forward_size) : 4 * d;
  double count = 4 * d * (inputs + signal + layers * d + static_cast<double>(c.outputs)) +
                 static_cast<double>(c.static_hidden_size) * (static_cast<double>(c.static_features) + d);
  if (reads_key(c.system, "heads")) count += 2 * layers * d * ff;
  if (reads_key(c.system, "latent.size")) {
    const auto latent = static_cast<double>(c.latent.size);
    count += latent * (2 * d + 2 * wide + signal + 2 * static_cast<double>(c.outputs));
  }
  if (reads_key(c.system, "field")) {
    const bool matrix = c.system == System::NeuralCde && c.field.form == FieldForm::Full;
    const double out = matrix ? d * signal : d + signal;
    count +=
        c.field.layers == 0 ? d * out : wide * (d + static_cast<double>(c.field.layers - 1) * wide + out);
  }
  FW_CHECK(count <= kMostNumbers, "[config] these sizes mean about ", count, " parameters; more than ",
           kMostNumbers, " cannot be meant");
}

}  // namespace

void check_keys_read(const ModelConfig& config) {
  Keys changed;
  add_changed(json_of(config), json_of(ModelConfig{}), "", changed);
  for (const std::string& key : changed) {
    FW_CHECK(reads_key(config.system, key), "[config] ", key, " would not be used with system ",
             name_of(config.system));
  }
}

void check_system(const ModelConfig& c) {
  check_at_least("channels", c.channels, 1);
  check_at_least("static_features", c.static_features, 0);
  check_at_least("outputs", c.outputs, 1);
  check_at_least("hidden_size", c.hidden_size, 1);
  check_at_least("heads", c.heads, 1);
  check_at_least("feed_forward_size", c.feed_forward_size, 0);
  check_at_least("static_hidden_size", c.static_hidden_size, 1);
  check_at_least("layers", c.layers, 1);
  check_at_least("latent.size", c.latent.size, 1);
  check_rate("dropout", c.dropout);
  check_positive("time_unit", c.time_unit);
  check_field(c.field);
  check_published_rows(c);
  FW_CHECK(std::isfinite(c.latent.divergence) && c.latent.divergence >= 0 &&
               std::isfinite(c.latent.reconstruction) && c.latent.reconstruction >= 0,
           "[config] latent.divergence and latent.reconstruction must not be negative, got ",
           c.latent.divergence, " and ", c.latent.reconstruction);
  check_control(c);
  check_solver(c);
  check_parts_read(c);
  if (is_continuous(c.system)) {
    check_continuous(c);
  } else {
    check_rows(c);
  }
  check_parameter_count(c);
  FW_CHECK(!reads_key(c.system, "heads") || c.hidden_size % c.heads == 0, "[config] hidden_size ",
           c.hidden_size, " is not divisible by heads ", c.heads);
}

}  // namespace fastweights

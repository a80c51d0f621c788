#include "base/error.h"
#include "fastweights/model.h"
#include "model/architecture_spec.h"
#include "model/programmer.h"

/// The registry's rows of fast weight programmers in continuous time.

namespace fastweights {
namespace {

void visit_options(FastWeights& o, Fields& visit) {
  visit("rule", o.rule);
  visit("drive", o.drive);
  visit("control", o.control);
  visit("solver", o.solver);
  visit("backend", o.backend);
  visit("hidden_size", o.hidden_size);
  visit("heads", o.heads);
  visit("key_width", o.key_width);
  visit("value_width", o.value_width);
  visit("feed_forward_size", o.feed_forward_size);
  visit("static_hidden_size", o.static_hidden_size);
  visit("layers", o.layers);
  visit("layer_input", o.layer_input);
  visit("residual", o.residual);
  visit("value_norm", o.value_norm);
  visit("initial", o.initial);
  visit("query", o.query);
  visit("read", o.read);
  visit("learning_rate", o.learning_rate);
  visit("value_activation", o.value_activation);
  visit("dropout", o.dropout);
  visit("value_dropout", o.value_dropout);
  visit("time_unit", o.time_unit);
  visit("deterministic", o.deterministic);
  visit("unused_layer", o.unused_layer);
}

void visit_options(TensorMap& o, Fields& visit) {
  visit("control", o.control);
  visit("solver", o.solver);
  visit("backend", o.backend);
  visit("hidden_size", o.hidden_size);
  visit("feed_forward_size", o.feed_forward_size);
  visit("static_hidden_size", o.static_hidden_size);
  visit("map_hidden_size", o.map_hidden_size);
  visit("map_layers", o.map_layers);
  visit("initial", o.initial);
  visit("query", o.query);
  visit("dropout", o.dropout);
  visit("time_unit", o.time_unit);
  visit("deterministic", o.deterministic);
  visit("unused_layer", o.unused_layer);
}

enum class Reads { Path, PathAndDerivative, Windows };

// rules on data of this shape
template <Reads reads>
Architecture for_data(const std::string& rule, const DataShape& shape) {
  FastWeights o = fitted(FastWeights{.rule = rule}, shape);
  o.heads = 16;
  o.feed_forward_size = 128;
  o.value_dropout = shape.dropout;
  if (shape.static_features > 0) o.initial = InitialWeights::StaticFeatures;
  if (reads == Reads::Windows || needs_windows(shape)) {
    read_in_windows(o, shape);
  } else if (reads == Reads::PathAndDerivative) {
    o.drive = Drive::DerivativeKeys;
  }
  return o;
}

std::vector<NamedModel> models_by_rule() {
  std::vector<NamedModel> models;
  const auto add = [&](const std::string& name, const std::string& rule, const std::string& writes) {
    const std::string source = "Irie et al. 2022", start = "fast weights by " + writes;
    models.push_back({name + "-cde", start + ", keys from x'(t), values from x(t)", source,
                      [rule](const DataShape& s) { return for_data<Reads::PathAndDerivative>(rule, s); }});
    models.push_back({name + "-ode", start + ", all from x(t)", source,
                      [rule](const DataShape& s) { return for_data<Reads::Path>(rule, s); }});
    models.push_back({name + "-rde", start + " on log-signatures of windows", source,
                      [rule](const DataShape& s) { return for_data<Reads::Windows>(rule, s); }});
  };
  add("delta", "delta_pre", "the delta rule");
  add("oja", "oja", "Oja's rule");
  add("hebb", "hebb", "Hebb's rule");
  return models;
}

template <typename Options>
std::shared_ptr<const Network> make(const ModelConfig& config, const Options&, const ModelOptions& options) {
  return std::make_shared<FastWeightProgrammer>(config, options);
}

template <typename Options>
ArchitectureType programmer_type(const std::string& name, const std::vector<NamedModel>& models) {
  ArchitectureType type = make_architecture_type<Options>({.names = {{name, Options{}}},
                                                           .fields = visit_options,
                                                           .check = nullptr,
                                                           .make = make<Options>,
                                                           .solver = [](Options& o) { return &o.solver; },
                                                           .models = models});
  type.check = [](const ModelConfig& config, const std::vector<Rule>& custom_rules) {
    check_programmer(ProgrammerConfig(config), custom_rules);
  };
  type.devices = Devices::CpuAndCuda;
  return type;
}

}  // namespace

const ArchitectureType& architecture_type(const FastWeights&) {
  static const ArchitectureType kType = programmer_type<FastWeights>("fast_weights", models_by_rule());
  return kType;
}

const ArchitectureType& architecture_type(const TensorMap&) {
  static const ArchitectureType kType = programmer_type<TensorMap>("tensor_map", {});
  return kType;
}

}  // namespace fastweights

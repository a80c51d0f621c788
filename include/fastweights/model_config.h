#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/architecture.h"
#include "fastweights/baselines.h"
#include "fastweights/fitted.h"
#include "fastweights/tensor.h"

/// The configuration of a model: sizes that every model has, and one architecture with its options.

namespace fastweights {

/// W(t0): the rule at t0 with W = 0; zero; static features through a network; or the rule at a learned
/// projection of the first observation (for a tensor map: that projection itself).
enum class InitialWeights { Rule, Zero, StaticFeatures, FirstObservation };

/// The time at which the query is computed from the signal: at the output; at the last time of the whole
/// batch, as published; or the query is computed from the projected first observation.
enum class QueryTime { Output, LastOfBatch, FirstObservation };

/// What the next layer of a deep model reads: W q (the paper), or dW/dt q (the published code; its final
/// readout uses W).
enum class LayerInput { Weights, Update };

struct FastWeights {
  std::string rule = "delta_pre";
  Drive drive = Drive::X;
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;

  int64_t hidden_size = 32;       ///< d
  int64_t heads = 4;              ///< H
  int64_t key_width = 0;          ///< 0: d / H
  int64_t value_width = 0;        ///< 0: d / H
  int64_t feed_forward_size = 0;  ///< 0: 4 d
  int64_t static_hidden_size = 256;
  int64_t layers = 1;
  LayerInput layer_input = LayerInput::Weights;
  bool residual = false;    ///< around the fast weights; deep models
  bool value_norm = false;  ///< a LayerNorm and one more layer on values that have a projection of their own

  InitialWeights initial = InitialWeights::Rule;
  QueryTime query = QueryTime::Output;
  Read read = Read::Plain;
  LearningRate learning_rate = LearningRate::Sigmoid;
  ValueActivation value_activation = ValueActivation::Tanh;
  double dropout = 0;          ///< in the readout
  double value_dropout = 0;    ///< on values, the same at all times
  double time_unit = 1;        ///< times are divided by this; the median gap of the data is a good choice
  bool deterministic = false;  ///< batch-invariant: a sample's bits do not depend on its batch
  bool unused_layer = false;   ///< the published code's initial_network, which is never read
};

/// dW/dt = F(W) x'(t) with a network F of W itself, and no rule. The size of F limits it to small models; the
/// paper includes it for comparison.
struct TensorMap {
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;
  int64_t hidden_size = 32;  ///< d, rows of W
  int64_t feed_forward_size = 0;
  int64_t static_hidden_size = 256;
  int64_t map_hidden_size = 32;
  int64_t map_layers = 2;
  InitialWeights initial = InitialWeights::Zero;  ///< not Rule
  QueryTime query = QueryTime::Output;            ///< not FirstObservation
  double dropout = 0;
  double time_unit = 1;
  bool deterministic = false;
  bool unused_layer = false;
};

const ArchitectureType& architecture_type(const FastWeights&);
const ArchitectureType& architecture_type(const TensorMap&);

// The configuration of a model: sizes that every model has, and one architecture with its options.

struct ModelConfig {
  int64_t channels = 1;         ///< C of the series
  int64_t static_features = 0;  ///< per sample, constant in time
  int64_t outputs = 1;
  Architecture architecture = FastWeights{};

  bool operator==(const ModelConfig&) const;
};

/// Checks that the options are consistent; the message names the key. Pass the custom rules of the model.
void check_config(const ModelConfig& config, const std::vector<Rule>& custom_rules = {});

/// All keys, with two spaces of indentation.
std::string to_json(const ModelConfig& config);

/// Absent keys keep their defaults. An unknown key or name is an error that names the nearest valid one.
/// Also reads configurations of version 0.1.
ModelConfig config_from_json(const std::string& text);

/// The configuration with one key changed: with_setting(config, "control.kind", "linear").
ModelConfig with_setting(const ModelConfig& config, const std::string& key, const std::string& value);

/// The options of a fast weight programmer; throws for other architectures.
inline FastWeights& fast_weights(ModelConfig& config) { return config.architecture.get<FastWeights>(); }
inline const FastWeights& fast_weights(const ModelConfig& config) {
  return config.architecture.get<FastWeights>();
}

/// The options of the solver, or null for an architecture without one.
SolverConfig* solver_of(ModelConfig& config);
const SolverConfig* solver_of(const ModelConfig& config);

/// An architecture as functions on its own options; make_architecture_type() creates its row of the registry,
/// for the CPU: one that supports GPUs sets ArchitectureType::devices.
template <typename Options>
struct ArchitectureSpec {
  /// Names in JSON with the default options of each; most architectures have one.
  std::vector<std::pair<std::string, Options>> names;
  /// Returns which of the names applies; not needed if there is only one.
  std::string (*name)(const Options&) = nullptr;
  void (*fields)(Options&, Fields&);
  /// Throws std::invalid_argument with the key and the reason.
  void (*check)(const ModelConfig&, const Options&);
  std::shared_ptr<const Network> (*make)(const ModelConfig&, const Options&, const ModelOptions&);
  /// Returns the member that holds the solver, if there is one.
  SolverConfig* (*solver)(Options&) = nullptr;
  /// Only for an architecture that is fitted to all data at once; network.h defines FitData.
  std::string (*fit)(const ModelConfig&, const Options&, const Network&, const FitData&) = nullptr;
  Tasks tasks = Tasks::All;
  /// Names for `--model` and RunSetup::model.
  std::vector<NamedModel> models;
};

template <typename Options>
ArchitectureType make_architecture_type(const ArchitectureSpec<Options>& spec) {
  ArchitectureType type;
  for (const auto& [name, options] : spec.names) type.names.push_back(name);
  type.name = [spec](const Architecture& a) {
    return spec.name ? spec.name(a.get<Options>()) : spec.names[0].first;
  };
  type.defaults = [spec](const std::string& name) -> Architecture {
    for (const auto& [known, options] : spec.names) {
      if (known == name) return options;
    }
    return spec.names[0].second;
  };
  type.fields = [spec](Architecture& a, Fields& visit) { spec.fields(a.get<Options>(), visit); };
  type.check = [spec](const ModelConfig& config, const std::vector<Rule>&) {
    spec.check(config, config.architecture.get<Options>());
  };
  type.make = [spec](const ModelConfig& config, const ModelOptions& options) {
    return spec.make(config, config.architecture.get<Options>(), options);
  };
  if (spec.solver) type.solver = [spec](Architecture& a) { return spec.solver(a.get<Options>()); };
  if (spec.fit)
    type.fit = [spec](const ModelConfig& config, const Network& network, const FitData& data) {
      return spec.fit(config, config.architecture.get<Options>(), network, data);
    };
  type.tasks = spec.tasks;
  type.models = spec.models;
  return type;
}

}  // namespace fastweights

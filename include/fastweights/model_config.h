#pragma once

#include <string>
#include <vector>

#include "fastweights/architecture.h"
#include "fastweights/baselines.h"
#include "fastweights/fast_weights.h"

/// The configuration of a model: sizes that every model has, and one architecture with its options.

namespace fastweights {

struct ModelConfig {
  int64_t channels = 1;         ///< C of the series
  int64_t static_features = 0;  ///< per sample, constant in time
  int64_t outputs = 1;
  Architecture architecture = FastWeights{};

  bool operator==(const ModelConfig&) const;
};

/// Checks that the options are consistent; the message names the key. Custom rules are passed.
void check_config(const ModelConfig& config, const std::vector<Rule>& own_rules = {});

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

}  // namespace fastweights

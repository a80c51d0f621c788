#pragma once

#include "model/shared_options.h"

namespace fastweights {

/// Sizes and options of a fast weight programmer, or of a tensor map, which has no rule, in one struct.
struct ProgrammerConfig : FastWeights {
  int64_t channels = 1, static_features = 0, outputs = 1;
  bool tensor_map = false;
  int64_t map_hidden_size = 32, map_layers = 2;  // tensor map

  ProgrammerConfig() = default;
  /// An error for other architectures.
  ProgrammerConfig(const ModelConfig& config);  // NOLINT: the same options
  operator ModelConfig() const;                 // NOLINT: the same options
  SharedOptions shared() const { return shared_options(*this, *this); }
};

inline int64_t signal_size(const ProgrammerConfig& config) {
  return signal_size(config.channels, config.control);
}

/// The rule of that name among those of the library and the program; null if neither has it.
const Rule* find_rule(const std::string& name, const std::vector<Rule>& custom_rules);

/// The solver with what the configuration leaves to be chosen: method, and parts of a step.
SolverConfig chosen_solver(const ProgrammerConfig& config, const std::vector<Rule>& custom_rules);

void check_programmer(const ProgrammerConfig& config, const std::vector<Rule>& custom_rules);

}  // namespace fastweights

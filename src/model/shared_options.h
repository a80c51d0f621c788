#pragma once

#include "fastweights/model_config.h"

/// What code that serves all architectures needs to know: signal, schedule, checks of an input.

namespace fastweights {

struct SharedOptions {
  std::string architecture = {};
  int64_t channels = 1, static_features = 0, outputs = 1;
  ControlConfig control = {};
  SolverConfig solver = {};
  int64_t hidden_size = 1, static_hidden_size = 1;
  int64_t known_channels = 0;
  double dropout = 0, time_unit = 1;
  bool deterministic = false;
};

/// The method of architectures that have no flow.
inline Method method_of(const SolverConfig& solver) { return solver.method.value_or(rk4()); }

/// The size of the signal that a model reads: channels, or the size of a log-signature.
int64_t signal_size(int64_t channels, const ControlConfig& control);

/// `sizes` has the channels, static features and outputs.
template <typename Sizes, typename Options>
SharedOptions shared_options(const Sizes& sizes, const Options& o) {
  SharedOptions shared;
  shared.channels = sizes.channels;
  shared.static_features = sizes.static_features;
  shared.outputs = sizes.outputs;
  shared.control = o.control;
  shared.hidden_size = o.hidden_size;
  shared.static_hidden_size = o.static_hidden_size;
  shared.dropout = o.dropout;
  shared.time_unit = o.time_unit;
  if constexpr (requires { o.solver; }) shared.solver = o.solver;
  if constexpr (requires { o.deterministic; }) shared.deterministic = o.deterministic;
  if constexpr (requires { o.rows; }) shared.known_channels = o.rows.known_channels;
  if constexpr (requires { sizes.architecture.name(); }) shared.architecture = sizes.architecture.name();
  return shared;
}

}  // namespace fastweights

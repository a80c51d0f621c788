#pragma once

#include "base/json_fields.h"
#include "fastweights/model_config.h"
#include "model/config_names.h"

namespace fastweights {

// the keys, once: reading and writing both go through these lists

inline void visit_fields(ControlConfig& c, Fields& visit) {
  visit("kind", c.kind);
  visit("end_filling", c.end_filling);
  visit("never_observed", c.never_observed);
  visit("time_channel", c.time_channel);
  visit("depth", c.depth);
  visit("window_increments", c.window_increments);
  visit("window_duration", c.window_duration);
  visit("window_tail", c.window_tail);
  visit("clock", c.clock);
  visit("last_window", c.last_window);
}

inline void visit_fields(SolverConfig& c, Fields& visit) {
  visit("method", c.method);
  visit("steps", c.steps);
  visit("max_step", c.max_step);
  visit("step_size", c.step_size);
  visit("rtol", c.rtol);
  visit("atol", c.atol);
  visit("edges", c.edges);
  visit("shortening", c.shortening);
  visit("stage_times", c.stage_times);
  visit("error_control", c.error_control);
  visit("first_step_gradient", c.first_step_gradient);
  visit("gradient", c.gradient);
  visit("memory_limit", c.memory_limit);
}

inline void visit_fields(FieldConfig& c, Fields& visit) {
  visit("hidden_size", c.hidden_size);
  visit("layers", c.layers);
}

inline void visit_fields(RowConfig& c, Fields& visit) {
  visit("input", c.input);
  visit("values_only", c.values_only);
  visit("known_channels", c.known_channels);
}

/// Options that nearly all architectures have, in front of and after their own.
template <typename Options>
void visit_common(Options& o, Fields& visit) {
  visit("hidden_size", o.hidden_size);
  visit("static_hidden_size", o.static_hidden_size);
  visit("dropout", o.dropout);
  visit("time_unit", o.time_unit);
}

}  // namespace fastweights

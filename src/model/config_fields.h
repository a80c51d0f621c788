#pragma once

#include "base/json_fields.h"
#include "fastweights/model_config.h"
#include "model/config_names.h"

namespace fastweights {

// the keys, once: reading and writing both go through these lists

template <typename Visit>
void visit_fields(ControlConfig& c, Visit& visit) {
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

template <typename Visit>
void visit_fields(SolverConfig& c, Visit& visit) {
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

template <typename Visit>
void visit_fields(FieldConfig& c, Visit& visit) {
  visit("hidden_size", c.hidden_size);
  visit("layers", c.layers);
  visit("form", c.form);
  visit("end", c.end);
  visit("tied", c.tied);
}

template <typename Visit>
void visit_fields(RowConfig& c, Visit& visit) {
  visit("input", c.input);
  visit("values_only", c.values_only);
  visit("known_channels", c.known_channels);
  visit("order", c.order);
}

template <typename Visit>
void visit_fields(LatentConfig& c, Visit& visit) {
  visit("size", c.size);
  visit("divergence", c.divergence);
  visit("reconstruction", c.reconstruction);
}

template <typename Visit>
void visit_fields(ModelConfig& c, Visit& visit) {
  visit("channels", c.channels);
  visit("static_features", c.static_features);
  visit("outputs", c.outputs);
  visit("system", c.system);
  visit("rule", c.rule);
  visit("drive", c.drive);
  visit("control", c.control);
  visit("solver", c.solver);
  visit("backend", c.backend);
  visit("hidden_size", c.hidden_size);
  visit("heads", c.heads);
  visit("key_width", c.key_width);
  visit("value_width", c.value_width);
  visit("feed_forward_size", c.feed_forward_size);
  visit("static_hidden_size", c.static_hidden_size);
  visit("layers", c.layers);
  visit("layer_input", c.layer_input);
  visit("residual", c.residual);
  visit("value_norm", c.value_norm);
  visit("map_hidden_size", c.map_hidden_size);
  visit("map_layers", c.map_layers);
  visit("field", c.field);
  visit("rows", c.rows);
  visit("latent", c.latent);
  visit("initial", c.initial);
  visit("query", c.query);
  visit("read", c.read);
  visit("learning_rate", c.learning_rate);
  visit("value_activation", c.value_activation);
  visit("dropout", c.dropout);
  visit("value_dropout", c.value_dropout);
  visit("time_unit", c.time_unit);
  visit("deterministic", c.deterministic);
  visit("unused_layer", c.unused_layer);
}

}  // namespace fastweights

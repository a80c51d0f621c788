#pragma once

#include "base/json_fields.h"
#include "fastweights/model_config.h"
#include "model/config_names.h"

namespace fastweights {

// the keys, once: reading and writing both go through these lists

inline void visit_fields(NaturalCubic& c, Fields& visit) { visit("end_filling", c.end_filling); }
inline void visit_fields(HermiteCubic&, Fields&) {}
inline void visit_fields(Linear&, Fields&) {}
inline void visit_fields(Rectilinear& c, Fields& visit) { visit("time_channel", c.time_channel); }
inline void visit_fields(Hold&, Fields&) {}
void visit_fields(LogSignatures& c, Fields& visit);

inline void visit_fields(ObservationSteps& c, Fields& visit) {
  visit("parts", c.parts);
  visit("max_step", c.max_step);
  visit("edges", c.edges);
}

inline void visit_fields(RegularSteps& c, Fields& visit) {
  visit("step_size", c.size);
  visit("edges", c.edges);
}

inline void visit_fields(FixedSteps& c, Fields& visit) {
  visit("step_size", c.size);
  visit("edges", c.edges);
  visit("shortening", c.shortening);
  visit("stage_times", c.stage_times);
}

void visit_fields(AdaptiveSteps& c, Fields& visit);

inline void visit_fields(FieldConfig& c, Fields& visit) {
  visit("hidden_size", c.hidden_size);
  visit("layers", c.layers);
}

inline void visit_fields(RowConfig& c, Fields& visit) {
  visit("input", c.input);
  visit("values_only", c.values_only);
  visit("known_channels", c.known_channels);
}

inline void visit_fields(FittedRows& c, Fields& visit) { visit("known_channels", c.known_channels); }

/// Options that nearly all architectures have, in front of and after their own.
template <typename Options>
void visit_common(Options& o, Fields& visit) {
  visit("hidden_size", o.hidden_size);
  visit("static_hidden_size", o.static_hidden_size);
  visit("dropout", o.dropout);
  visit("time_unit", o.time_unit);
}

}  // namespace fastweights

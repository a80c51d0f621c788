#pragma once

#include "base/json_fields.h"
#include "fastweights/run.h"

namespace fastweights {

/// Preset and settings of a run.
Settings all_settings(const RunSetup& setup);

/// The configuration of a run without its model.
RunConfig config_of(const RunSetup& setup);

/// The model that a run of these data has without any settings.
ModelConfig default_model(const std::string& name, const RunData& data);

/// The metric that selects a model with this number of outputs unless a setting names another.
std::string default_metric(TaskKind kind, int64_t outputs);

/// The metric that selects the model of a run.
std::string selection_metric(const RunConfig& config);

/// Settings as one object, and back.
Json settings_json(const Settings& settings);
Settings settings_from_json(const Json& json);
/// The value of a setting as people read it: text without quotes.
std::string shown_value(const Setting& setting);

}  // namespace fastweights

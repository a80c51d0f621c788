#pragma once

#include "base/json_fields.h"
#include "fastweights/run.h"

namespace fastweights {

/// Preset and settings of a run.
Settings all_settings(const RunSetup& setup);

/// The configuration of a run without its model.
RunConfig config_of(const RunSetup& setup);

/// The metric that selects a model unless a setting names another.
std::string default_metric(TaskKind kind, const Preparation& preparation);

/// Settings as one object, and back.
Json settings_json(const Settings& settings);
Settings settings_from_json(const Json& json);

}  // namespace fastweights

#pragma once

#include "base/json_fields.h"
#include "fastweights/run.h"

namespace fastweights {

/// Preset and settings of a run.
Settings all_settings(const RunSetup& setup);

/// Settings as one object, and back.
Json settings_json(const Settings& settings);
Settings settings_from_json(const Json& json);

}  // namespace fastweights

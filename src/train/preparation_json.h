#pragma once

#include "base/json_fields.h"
#include "fastweights/data.h"

/// A preparation in the metadata of a model file.

namespace fastweights {

Json preparation_json(const Preparation& p);
/// Also of earlier versions.
Preparation preparation_from(const Json& json);

/// First guesses and errors of naive forecasts: one per channel, with a season if any guess has waves.
bool has_valid_guesses(const Preparation& p);

}  // namespace fastweights

#pragma once

#include "base/json_fields.h"
#include "fastweights/calibration.h"

/// A calibration in a model file, in result.json, and in the folder of folds.

namespace fastweights {

Json calibration_json(const Calibration& c);
/// Also of earlier versions.
Calibration calibration_from(const Json& json);

/// Finite, with a positive scale, and with one bias per output or none.
bool fits_outputs(const Calibration& c, int64_t outputs);

}  // namespace fastweights

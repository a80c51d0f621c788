#pragma once

#include "fastweights/trained_model.h"

namespace fastweights {

/// An error that names the channel, feature, target or class, if a model file could not hold its name or
/// scale.
void check_trained(const TrainedModel& trained);

}  // namespace fastweights

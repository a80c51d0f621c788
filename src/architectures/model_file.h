#pragma once

#include "fastweights/model.h"
#include "fastweights/tensor.h"

namespace fastweights {

/// Contents of a model file: parameters, format and configuration.
NamedTensors model_file(const Model& model);

}  // namespace fastweights

#pragma once

#include "fastweights/tensor.h"

namespace fastweights {

/// Parameters under their present names: files before version 0.2 call `program` `programme`.
NamedTensors with_present_names(NamedTensors file);

}  // namespace fastweights

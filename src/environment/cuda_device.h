#pragma once

#include "fastweights/environment.h"

namespace fastweights {

/// The first CUDA device, or the reason why none is usable.
BackendInfo cuda_backend();

}  // namespace fastweights

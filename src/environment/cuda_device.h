#pragma once

#include "fastweights/environment.h"

namespace fastweights {

/// What the CUDA runtime says about the first device, or why there is none.
BackendInfo cuda_backend();

}  // namespace fastweights

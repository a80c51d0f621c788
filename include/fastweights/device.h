#pragma once

#include <string>

#include "fastweights/tensor.h"

namespace fastweights {

/// "cpu", "cuda", or "auto", which is cuda where it can be used. To ask for one that cannot is an error that
/// says why.
at::Device find_device(const std::string& name);

}  // namespace fastweights

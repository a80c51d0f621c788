#pragma once

#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

/// All values of a tensor.
std::vector<double> values_of(const Tensor& x);
/// The same with four digits, which are enough for a picture.
std::vector<double> rounded(const Tensor& x);

}  // namespace fastweights

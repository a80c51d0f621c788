#pragma once

#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

/// Classes, channels or targets that a page shows of very many.
constexpr int64_t kMostClasses = 50;

/// All values of a tensor.
std::vector<double> values_of(const Tensor& x);
/// The same with four digits, which are enough for a picture.
std::vector<double> rounded(const Tensor& x);

}  // namespace fastweights

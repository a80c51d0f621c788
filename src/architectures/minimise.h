#pragma once

#include <functional>
#include <utility>

#include "fastweights/tensor.h"

namespace fastweights {

/// The value at x, and the gradient there.
using Objective = std::function<std::pair<double, Tensor>(const Tensor& x)>;

/// The minimum of a smooth convex function, by L-BFGS (Nocedal and Wright 2006, algorithm 7.5) with
/// backtracking, to a gradient of 1e-6 in the maximum norm or for `most` steps.
Tensor minimise(const Objective& objective, const Tensor& start, int64_t most = 500);

}  // namespace fastweights

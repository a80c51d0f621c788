#pragma once

#include "fastweights/solve.h"
#include "solve/adaptive.h"

namespace fastweights {

/// A method is data, and data may be anybody's: whether its numbers fit together.
void check_method(const Method& method);

/// solve() behind the checks of its arguments; the norm is for states that are made of parts.
Solution solve_checked(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options,
                       const ErrorNorm& norm);

}  // namespace fastweights

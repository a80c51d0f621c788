#pragma once

#include "fastweights/solve.h"
#include "solve/adaptive.h"

namespace fastweights {

/// Checks that the coefficients of a method are consistent; users may define their own.
void check_method(const Method& method);

/// solve() after the checks of its arguments; the norm is for states that consist of parts.
Solution solve_checked(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options,
                       const ErrorNorm& norm);

}  // namespace fastweights

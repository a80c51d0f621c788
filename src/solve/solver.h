#pragma once

#include "fastweights/solve.h"
#include "solve/adaptive.h"

namespace fastweights {

/// solve() behind the checks of its arguments; the norm is for states that are made of parts.
Solution solve_checked(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options,
                       const ErrorNorm& norm);

}  // namespace fastweights

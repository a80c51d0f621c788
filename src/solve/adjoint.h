#pragma once

#include "fastweights/solve.h"

namespace fastweights {

/// Solves without recording; backward solves the continuous adjoint equation from one output time to the one
/// before, with the stored outputs as starting values, as torchdiffeq's odeint_adjoint does.
Solution adjoint_solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options);

}  // namespace fastweights

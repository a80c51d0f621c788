#pragma once

#include "solve/augmented.h"

namespace fastweights {

/// The backward pass of a solve on given steps: over the same steps, from the last to the first. Every output
/// must be a step time of its sample.
AdjointPass given_adjoint(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options);

}  // namespace fastweights

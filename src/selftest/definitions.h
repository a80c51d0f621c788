#pragma once

#include <vector>

#include "fastweights/tensor.h"

/// Textbook definitions in plain LibTorch operations, differentiable by autograd: what the fast code must
/// equal.

namespace fastweights {

/// Natural cubic spline through (times [L], values [L, C]) at `query` [Q] inside the range: [Q, C]. Solves
/// the dense system for the second derivatives.
Tensor natural_cubic_definition(const Tensor& times, const Tensor& values, const Tensor& query);

/// A truncated tensor series with constant part 1 (or 0): level l, flattened to C^l entries, at [l - 1].
using TensorSeries = std::vector<Tensor>;

/// Signature of the piecewise linear path through points [L, C] by Chen's identity.
TensorSeries signature_definition(const Tensor& points, int64_t depth);

/// x - x^2/2 + x^3/3 - ... of a series 1 + x.
TensorSeries logarithm_definition(const TensorSeries& x);

}  // namespace fastweights

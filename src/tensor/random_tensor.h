#pragma once

#include "base/random.h"
#include "fastweights/tensor.h"

namespace fastweights {

/// Uniform numbers between low and high, drawn in the order of memory; on the CPU. Drawn in float64 and then
/// rounded to `type`.
Tensor uniform(at::IntArrayRef shape, double low, double high, Random& random, at::ScalarType type);

/// What dropout multiplies with: 0 with probability `rate`, otherwise 1 / (1 - rate), so that the mean stays.
Tensor dropout_mask(at::IntArrayRef shape, double rate, Random& random, at::ScalarType type);
/// The same bits on a GPU, in float32. `more_seed` [1] int64 there, unless undefined, is added to the
/// generator's seed.
Tensor device_dropout_mask(at::IntArrayRef shape, double rate, Random& random, const at::Device& device,
                           const Tensor& more_seed = {});

}  // namespace fastweights

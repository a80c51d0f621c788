#pragma once

#include "base/random.h"
#include "fastweights/tensor.h"

namespace fastweights {

/// Uniform between low and high, on the CPU; drawn in the order of memory, in float64, then rounded to
/// `type`.
Tensor uniform(at::IntArrayRef shape, double low, double high, Random& random, at::ScalarType type);

/// A dropout mask: 0 with probability `rate`, otherwise 1 / (1 - rate), so that the mean stays.
Tensor dropout_mask(at::IntArrayRef shape, double rate, Random& random, at::ScalarType type);
/// The same bits on a GPU, in float32. `device_seed`, int64 [1] on the device or undefined, is added to the
/// generator's seed.
Tensor device_dropout_mask(at::IntArrayRef shape, double rate, Random& random, const at::Device& device,
                           const Tensor& device_seed = {});

}  // namespace fastweights

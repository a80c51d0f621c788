#pragma once

#include "base/random.h"
#include "fastweights/tensor.h"

namespace fastweights {

/// Uniform numbers between low and high, drawn in the order of memory; on the CPU. Drawn in float64 and then
/// rounded to `type`.
Tensor uniform(at::IntArrayRef shape, double low, double high, Random& random, at::ScalarType type);

/// What dropout multiplies with: 0 with probability `rate`, otherwise 1 / (1 - rate), so that the mean stays.
Tensor dropout_mask(at::IntArrayRef shape, double rate, Random& random, at::ScalarType type,
                    const at::Device& device = at::kCPU);

/// While it lives, generators of masks on a GPU begin as much later as the number [1] int64 on the device
/// says: work that was recorded draws other masks each time.
class SeedOnDevice {
 public:
  explicit SeedOnDevice(const Tensor& seed);
  ~SeedOnDevice();
  SeedOnDevice(const SeedOnDevice&) = delete;
  SeedOnDevice& operator=(const SeedOnDevice&) = delete;
  static const Tensor& current();
};

}  // namespace fastweights

#pragma once

#include "fastweights/device.h"

namespace fastweights {

/// Lets matrix products of a GPU use TF32, or not, for a scope, and restores the setting found. The setting
/// is LibTorch's and process-wide, so scopes of different settings must not overlap in time; a training step
/// holds one, and two trainings in turn do not see each other.
class Tf32Guard {
 public:
  explicit Tf32Guard(Tf32 use);
  ~Tf32Guard();
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  at::Float32MatmulPrecision before_;
};

}  // namespace fastweights

#pragma once

#include <map>
#include <string>

#include "fastweights/tensor.h"

/// Tensors of a checkpoint by name. Errors say which one is absent or has another shape.

namespace fastweights {

using CheckpointTensors = std::map<std::string, Tensor>;

/// A list [count] of this type.
Tensor saved_list(const CheckpointTensors& tensors, const std::string& name, size_t count,
                  at::ScalarType type);

/// A copy of a tensor that has the shape of `like`.
Tensor saved_like(const CheckpointTensors& tensors, const std::string& name, const Tensor& like);

}  // namespace fastweights

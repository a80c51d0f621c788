#pragma once

#include "fastweights/network.h"
#include "fastweights/optimise.h"

/// Adam as an optimiser of a network's parameters.

namespace fastweights {

/// On the CPU by tensor operations, on a GPU in one launch for all parameters.
std::unique_ptr<Optimiser> make_adam(const Network& network, const AdamOptions& options);

/// Adam's state in a checkpoint, by the names of the parameters.
std::map<std::string, Tensor> adam_tensors(const NamedParameters& parameters, const AdamState& state);
AdamState adam_state(const NamedParameters& parameters, const std::map<std::string, Tensor>& tensors);

}  // namespace fastweights

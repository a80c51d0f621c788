#pragma once

#include "nn/fast_weight_layer.h"
#include "ops/scan/cuda/device_program.h"

/// The slow net on a GPU.

namespace fastweights::nn {

/// Whether to collapse the net into one linear map, where that is less work.
enum class Collapse { Never, WhereLess };

/// Whether one kernel projects the signal and activates the projections, which are then never stored. It
/// takes nets of few channels and has no gradient for the signal.
bool fuses_projection(const FastWeightLayer& layer, const Wiring& wiring);

/// Keys, values and rates of a layer from x, value and derivative [N, C].
ProgramTensors program_on_device(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                                 const DeviceRows& rows, const ProgramForms& forms, Collapse collapse);

}  // namespace fastweights::nn

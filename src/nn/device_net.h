#pragma once

#include "nn/fast_weight_layer.h"
#include "ops/scan/device_programme.h"

/// The slow net on a GPU.

namespace fastweights::nn {

/// Whether to collapse the net, where that is less work.
enum class Collapse { Never, WhereLess };

/// Keys, values and rates of a layer from x, value and derivative [N, C].
ProgrammeTensors programme_on_device(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                                     const DeviceRows& rows, const ProgrammeForms& forms, Collapse collapse);

}  // namespace fastweights::nn

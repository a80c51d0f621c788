#pragma once

#include "nn/fast_weight_layer.h"
#include "ops/scan/device_programme.h"

/// The slow net on a GPU.

namespace fastweights::nn {

/// Whether to collapse the net, where that is less work.
enum class Collapse { Never, WhereLess };

/// Whether a collapsed layer's numbers are nowhere in memory: there is a kernel for nets of few channels,
/// which gives no gradient of the signal.
bool keeps_no_numbers(const FastWeightLayer& layer, const Wiring& wiring);

/// Keys, values and rates of a layer from x, value and derivative [N, C].
ProgrammeTensors programme_on_device(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                                     const DeviceRows& rows, const ProgrammeForms& forms, Collapse collapse);

}  // namespace fastweights::nn

#pragma once

#include "ops/scan/features.h"

/// Program of a step on a GPU: from a signal, or from the slow net's projections, to what enters the rule.

namespace fastweights {

/// The N rows of a signal, on the device.
struct DeviceRows {
  Tensor mask = {};     // [B, H, D]: factors of the values (dropout); or undefined
  Tensor samples = {};  // [N / times] int64: the sample of each step; required with a mask
  int64_t times = 1;    // rows of one step
  Tensor steps = {};    // [1] int64: number of steps, later rows are padding; undefined: all
};

/// k [N, H, D], v [N, H, D], beta [N, H]
struct ProgramTensors {
  Tensor k, v, beta;
};

/// Keys, values and rates from the slow net's projections. Differentiable with respect to both.
struct DeviceProjections {
  Tensor projections;  // [N, H, 2 D + 1]: key, value, rate; or [N, H, D + 1] without the values
  Tensor values;       // [N, H, D] then
};
ProgramTensors device_program(const DeviceProjections& input, const DeviceRows& rows,
                              const ProgramForms& forms);

/// Whether the kernels have room for this many channels.
bool device_normalises(int64_t channels);
/// x~ r with x~ = [x; 1], r = 1 / sqrt(x~^T G x~ + eps), then a one: x [N, C] float32, gram [C + 1, C + 1]
/// float64 to [N, C + 2]. Differentiable with respect to both.
Tensor device_normalise(const Tensor& x, const Tensor& gram, double epsilon, const DeviceRows& rows);
/// r alone, [N]. Differentiable with respect to the gram.
Tensor device_scale(const Tensor& x, const Tensor& gram, double epsilon, const DeviceRows& rows);

/// The collapsed net of a Linear, a LayerNorm and a Linear (README.md, section 5): weights [d, C], biases
/// [d], the norm's [d] both, then [O, d] and [O]. Differentiable with respect to all.
struct DeviceLayers {
  Tensor in_weight, in_bias, norm_weight, norm_bias, out_weight, out_bias;
};
struct CollapsedNet {
  Tensor map;   // [O, C + 2]: of [x~ r; 1]
  Tensor gram;  // [C + 1, C + 1] float64
};
CollapsedNet device_collapse(const DeviceLayers& layers);

/// Projections of a signal: r (W x + w) + shift, or W x + w.
struct DeviceMap {
  Tensor x;       // [N, C]
  Tensor r;       // [N], or undefined
  Tensor weight;  // [O, C + 2]: W, w, shift; without r [O, C + 1]
};
/// Whether device_net is faster than a library's product, as it is for few channels.
bool device_net_pays(int64_t channels, int64_t width);
/// Keys, values and rates in one kernel, without storing projections: of one map, O = H (2 D + 1); or of two,
/// with O = H (D + 1) and H D. Differentiable with respect to scales and weights.
ProgramTensors device_net(const DeviceMap& keys, const DeviceMap& values, int64_t heads,
                          const DeviceRows& rows, const ProgramForms& forms);

}  // namespace fastweights

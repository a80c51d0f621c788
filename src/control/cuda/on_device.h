#pragma once

#include "fastweights/control.h"
#include "kernels/path.h"
#include "kernels/signature.h"

/// Paths and log-signatures on a GPU, without gradients. Values are float32 on the device; times and
/// offsets are on either side. No function synchronises.

namespace fastweights {

/// [N, C] to [N - B, K, C]. Knots are on the device; `offsets` is a copy on the CPU.
Tensor device_coefficients(kernels::PathKind kind, const Tensor& values, const RaggedTimes& knots,
                           const Tensor& offsets);

/// Doubled knots of a rectilinear path: [N, C] to [2 N - B, C]
Tensor device_rectilinear_knots(const Tensor& values, const Tensor& offsets, int64_t time_channel);

/// The last observation of each channel so far; before the first one, the first; 0 if never observed.
Tensor device_last_observations(const Tensor& values, const Tensor& offsets);

struct DevicePieces {
  Tensor knots;         // [N] float64
  Tensor offsets;       // [B + 1]
  Tensor coefficients;  // [N - B, K, C]
};

/// [M, C] at times [M] of which sample b owns offsets[b] .. offsets[b + 1] - 1.
Samples device_samples(const DevicePieces& pieces, const Tensor& times, const Tensor& offsets);

/// Coefficients [W, words] of the logarithm at the plan's words, for windows of `count` points from row
/// `first`, both [W].
Tensor device_logsignature(const kernels::SignaturePlan& plan, const Tensor& points, const Tensor& first,
                           const Tensor& count);

/// logsignature_windows() of values on the device, none of which is missing.
WindowedLogSignature device_logsignature_windows(const RaggedSeries& series, const Windows& windows,
                                                 const LogSignatureOptions& options);

}  // namespace fastweights

#pragma once

#include "nn/fast_weight_layer.h"

/// The slow net collapsed: Linear, LayerNorm and Linear are one product of a few features of the signal.
///
///     LayerNorm(A x + a) = gamma * B x~ / sqrt(|R x~|^2 + eps) + b,   x~ = [x; 1], B = [A a] less its column
///     means, R^T R = B^T B / d
///
/// so the net's numbers are S diag(gamma) B (x~ r) + (S b + c) with one scalar r per time (README.md of the
/// op scan, section 5).

namespace fastweights::nn {

/// Whether the collapsed net needs no more operations than the plain one; layers without an input projection
/// cannot collapse.
bool collapses(const FastWeightLayer& layer, const Wiring& wiring);

/// Features of the signal at x (value and derivative [R, C]): [R, F], the keys' first, the values' last,
/// which may overlap.
Tensor features(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x);
int64_t feature_count(const FastWeightLayer& layer);

/// What the features are multiplied with. K = V = D.
struct FeatureWeights {
  Tensor k;     // [H, D, I]: of the first I features
  Tensor beta;  // [H, I]
  Tensor v;     // [H, D, J]: of the last J features
};
FeatureWeights feature_weights(const FastWeightLayer& layer, const Wiring& wiring);

/// The slow net's numbers on a GPU, collapsed where that is less work, if wanted: x value and derivative [N,
/// C].
struct SlowNumbers {
  Tensor numbers;  // [N, H, K + V + 1], or [N, H, K + 1] where values come from elsewhere
  Tensor values;   // [N, H, V] then
};
enum class Collapse { Never, WhereLess };
SlowNumbers slow_numbers(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                         Collapse collapse);

}  // namespace fastweights::nn

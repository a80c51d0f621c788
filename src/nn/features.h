#pragma once

#include "nn/fast_weight_layer.h"

/// The slow net collapsed: Linear, LayerNorm and Linear are one product of a few features of the signal.
///
///     LayerNorm(A x + a) = gamma * B x~ / sqrt(|R x~|^2 + eps) + b,   x~ = [x; 1], B = [A a] less its column
///     means, R^T R = B^T B / d
///
/// so the net's projections are S diag(gamma) B (x~ r) + (S b + c) with one scalar r per time (README.md of
/// the op scan, section 5).

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

/// B^T B / d: [C + 1, C + 1]
Tensor gram(const Linear& in, Products products);
/// The net's projections as a product of [x~ r; 1]: [O, C + 2]
Tensor collapsed(const Linear& in, const LayerNorm& norm, const Linear& out, Products products);

}  // namespace fastweights::nn

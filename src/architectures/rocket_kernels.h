#pragma once

#include <cstdint>
#include <vector>

#include "architectures/filled.h"
#include "fastweights/tensor.h"

/// The transform of MiniROCKET (Dempster, Schmidt and Webb 2021, and the authors' code for several channels
/// and lengths): 84 kernels of nine weights, three of them 2 and six -1, at some dilations. A feature is the
/// proportion of a convolution's values above a bias.

namespace fastweights {

inline constexpr int64_t kRocketKernels = 84;

struct RocketPlan {
  std::vector<int64_t> dilations;
  std::vector<int64_t> features;  // of each kernel, per dilation
  bool alternate = true;          // every second convolution only where the kernel lies within the series

  /// Convolutions: each dilation with each kernel, in this order.
  int64_t convolutions() const { return kRocketKernels * static_cast<int64_t>(dilations.size()); }
  int64_t feature_count() const;
};

/// Dilations from 1 to where a kernel spans `length` rows, on a logarithmic scale.
RocketPlan rocket_plan(int64_t length, int64_t features, int64_t most_dilations);

/// 1 for the channels of each convolution: [convolutions, C]. Their number is 2^u rounded down, u uniform up
/// to log2(min(C, 9) + 1).
Tensor rocket_channels(const RocketPlan& plan, int64_t channels, uint64_t seed);

/// Quantiles of each convolution of one random series: [features] of the type.
Tensor rocket_biases(const RocketPlan& plan, const Tensor& channels, const std::vector<FilledSeries>& series,
                     uint64_t seed, at::ScalarType type);

/// [B, features] of the type of the biases.
Tensor rocket_features(const RocketPlan& plan, const Tensor& channels, const Tensor& biases,
                       const std::vector<FilledSeries>& series);

}  // namespace fastweights

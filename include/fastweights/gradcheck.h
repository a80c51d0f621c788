#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fastweights/model.h"

/// Compares gradients of a model with finite differences, and the continuous adjoint with the exact gradient.

namespace fastweights {

/// A scalar [] from the outputs [M, O] of a model.
using Loss = std::function<Tensor(const Tensor& outputs)>;

struct GradcheckOptions {
  std::vector<Gradient> modes = {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint};
  int64_t directions = 4;  ///< random directions per parameter
  double step = 1e-6;
  uint64_t seed = 1;
};

struct GradcheckRow {
  std::string name;  ///< of the parameter
  int64_t size;
  double norm;                 ///< of its gradient, in the first mode
  std::vector<double> errors;  ///< per mode: largest error of a directional derivative, relative to the norm
};

/// Moves every parameter along random directions and compares central differences with the gradient of each
/// mode. The model must be float64. `report` is called after each parameter. Adaptive steps are checked with
/// small tolerances and a step of at least 1e-4; the differences are then accurate to about 1e-6.
std::vector<GradcheckRow> gradcheck(const Model& model, const ModelInput& input, const Loss& loss,
                                    const GradcheckOptions& options = {},
                                    const std::function<void(const GradcheckRow&)>& report = {});

/// Compares the adjoint gradient of the vector field's parameters with the checkpointed one, and the latter
/// with central differences along a random direction.
struct AdjointError {
  double relative_error;    ///< |adjoint - exact| / |exact|
  double cosine;            ///< of the angle between the two
  double difference_error;  ///< of the exact gradient, relative to central differences
};
AdjointError adjoint_error(const Model& model, const ModelInput& input, const Loss& loss, uint64_t seed = 1);

/// Synthetic series: each channel is an AR(1) process of unit variance, x_n = 0.9 x_(n-1) +
/// noise.
enum class SyntheticTimes { Regular, Irregular };
struct SyntheticSeries {
  int64_t samples = 3, length = 9, channels = 2;
  /// Irregular: gaps between 0.5 and 1.5, and series of different lengths, the longest `length`.
  SyntheticTimes times = SyntheticTimes::Irregular;
  uint64_t seed = 1;
};
RaggedSeries synthetic_series(const SyntheticSeries& options);

/// Sum of weight * output with random weights, so that every parameter affects the loss.
Loss random_loss(uint64_t seed);

}  // namespace fastweights

#pragma once

#include "architectures/baseline.h"

/// Architectures whose state z follows an equation that the signal drives: z' = f(x(t), x'(t), z).
///
/// All that does not depend on z is made before the first step, for all stages of all steps at once: the
/// signal, and the projections of it that the field needs. Steps then go through samples of like number of
/// steps together. Adaptive steps, checkpoints and the adjoint are the generic solver's, which asks the field
/// at one time after another.

namespace fastweights {

class ContinuousNetwork : public Baseline {
 public:
  using Baseline::Baseline;

 protected:
  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions& options) const final;
  virtual SharedOptions shared(const ModelConfig& model) const = 0;
  /// z(t0) [B, D] from the signal there [B, C] and static features.
  virtual Tensor initial(const Tensor& first, const Tensor& static_features) const = 0;
  /// The tensors that drive() and slope() read.
  virtual std::vector<Tensor> field_parameters() const = 0;
  /// What slope() needs of the signal at some times: [R, E] from [R, C].
  virtual Tensor drive(const Samples& x) const = 0;
  /// dt f(x, x', z) [R, D]; dt [R, 1], or undefined for 1.
  virtual Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const = 0;
  /// Values that a recorded evaluation of slope() keeps for each sample.
  virtual int64_t recorded_values() const = 0;

  nn::Linear head_;

 private:
  struct Solved;
  /// None if recording would take too much memory.
  std::optional<Solved> step_through(const SharedOptions& config, const ModelBatch& batch,
                                     const Tensor& z0) const;
  Solved solve_generic(const SharedOptions& config, const ModelBatch& batch, const Tensor& z0,
                       const ForwardOptions& options) const;
};

}  // namespace fastweights

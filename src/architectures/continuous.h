#pragma once

#include "architectures/baseline.h"

/// Architectures whose state z follows an equation that the signal drives: z' = f(x(t), x'(t), z).
///
/// A batch is prepared once: steps, outputs, and the signal at all stages of all steps are on the device of
/// the network. Projections of the signal that do not depend on z are made before the first step. Steps then
/// go through samples of like number of steps together. Adaptive steps, checkpoints and the adjoint are the
/// generic solver's, which asks the field at one time after another.

namespace fastweights {

struct ContinuousBatch;
struct StageRows;

class ContinuousNetwork : public Baseline {
 public:
  using Baseline::Baseline;

  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const final;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const final;

 protected:
  virtual SharedOptions shared(const ModelConfig& model) const = 0;
  /// z(t0) [B, D] from the signal there [B, C] and static features.
  virtual Tensor initial(const Tensor& first, const Tensor& static_features) const = 0;
  /// The tensors that drive() and slope() read.
  virtual std::vector<Tensor> field_parameters() const = 0;
  /// What drive() reads: [R, C].
  virtual Tensor signal(const Samples& x) const { return x.derivative; }
  /// What slope() needs of the signal at some times: [R, E] from [R, C].
  virtual Tensor drive(const Tensor& signal) const { return signal; }
  /// dt f(x, x', z) [R, D]; dt [R, 1], or undefined for 1.
  virtual Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const = 0;
  /// Values that a recorded evaluation of slope() keeps for each sample.
  virtual int64_t recorded_values() const = 0;

  nn::Linear head_;

 private:
  friend ContinuousBatch;
  struct Solved;

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions& options) const final;
  std::shared_ptr<const ContinuousBatch> make_batch(const CheckedInput& input) const;
  StageRows make_stages(const ModelBatch& batch) const;
  bool fits(const StageRows& stages) const;
  Solved step_through(const StageRows& stages, const Tensor& z0) const;
  Solved solve_generic(const ModelBatch& batch, const Tensor& z0, const ForwardOptions& options) const;
};

}  // namespace fastweights

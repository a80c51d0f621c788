#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

/// Losses to gradients to better parameters.

namespace fastweights {

/// The gradient of a training step.
struct StepGradient {
  std::vector<Tensor> by_parameter;  // one for each parameter
  Tensor flat;                       // [P]: all of them on a GPU; otherwise undefined
  Tensor norm;                       // []: 2-norm of all of them; not finite if the loss is not
};

/// Turns gradients into better parameters; Trainer takes any. Work between begin_step() calls may be recorded
/// and replayed on a GPU.
class Optimiser {
 public:
  virtual ~Optimiser() = default;

  /// Announces a step and its learning rate.
  virtual void begin_step(double learning_rate) = 0;
  /// Changes the parameters. The gradient is scaled to the norm `clip` if it is longer (0: no limit); one
  /// whose norm is not finite must change nothing.
  virtual void apply(const StepGradient& gradient, double clip) = 0;
  /// The last step had no finite gradient and does not count.
  virtual void discard_step() {}

  /// Copies of all that is needed to resume, by name.
  virtual std::map<std::string, Tensor> state() const = 0;
  /// Takes them from among the tensors of a checkpoint; throws before it changes anything.
  virtual void set_state(const std::map<std::string, Tensor>& tensors) = 0;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  ///< what is left of the means of g and g^2 after a step
  double epsilon = 1e-8;
  /// Decoupled (AdamW): parameters lose this share, times the learning rate, in each step.
  double weight_decay = 0;
  /// Of the learning rate, one for each parameter; none: all are 1.
  std::vector<double> rate_factors = {};
};

/// What Adam remembers, parameter by parameter.
struct AdamState {
  std::vector<Tensor> first, second;  // means of g and g^2
  std::vector<int64_t> steps;
};

/// Adam as PyTorch computes it:
///   m = beta1 m + (1 - beta1) g     s = beta2 s + (1 - beta2) g^2
///   parameter -= learning_rate / (1 - beta1^t)  m / (sqrt(s) / sqrt(1 - beta2^t) + epsilon)
class Adam {
 public:
  /// The parameters are changed in place by each step.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});

  /// One gradient for each parameter; an undefined one leaves its parameter alone, means and t included.
  void step(const std::vector<Tensor>& gradients);

  /// For the steps from here on.
  void set_learning_rate(double learning_rate);
  const AdamOptions& options() const { return options_; }

  /// Copies; a later step does not change them.
  AdamState state() const;
  /// Continues from there.
  void set_state(const AdamState& state);

 private:
  AdamOptions options_;
  std::vector<Tensor> parameters_;
  AdamState state_;
};

/// weight * sum of the tensors' 2-norms, not squared; where a tensor is zero its gradient is.
Tensor norm_penalty(const std::vector<Tensor>& tensors, double weight);

/// Gradients of a loss of one element; zeros for a parameter that it does not depend on. Frees the loss's
/// graph.
std::vector<Tensor> gradients(const Tensor& loss, const std::vector<Tensor>& parameters);

}  // namespace fastweights

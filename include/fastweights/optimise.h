#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

/// Gradients of losses, and optimisers.

namespace fastweights {

/// The gradient of a training step.
struct StepGradient {
  std::vector<Tensor> by_parameter;  // one per parameter
  Tensor flat;                       // [P]: the same in one tensor, on a GPU; otherwise undefined
  Tensor norm;                       // []: 2-norm over all parameters; not finite if the loss is not
};

/// Updates parameters from gradients; Trainer accepts any class derived from this one. On a GPU, work between
/// begin_step() calls may be recorded and replayed.
class Optimiser {
 public:
  virtual ~Optimiser() = default;

  /// Announces a step and its learning rate.
  virtual void begin_step(double learning_rate) = 0;
  /// Updates the parameters. A gradient with a larger norm than `clip` is scaled to it (0: no limit); one
  /// with a non-finite norm must change nothing.
  virtual void apply(const StepGradient& gradient, double clip) = 0;
  /// Called if the last step had a non-finite gradient; it does not count.
  virtual void discard_step() {}

  /// Copies of the state to resume from, by name.
  virtual std::map<std::string, Tensor> state() const = 0;
  /// Restores the state from the tensors of a checkpoint; throws before it changes anything.
  virtual void set_state(const std::map<std::string, Tensor>& tensors) = 0;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  ///< decay of the running means of g and g^2
  double epsilon = 1e-8;
  /// Decoupled (AdamW): each step subtracts learning_rate * weight_decay * parameter.
  double weight_decay = 0;
  /// Factors of the learning rate, one per parameter; empty: all 1.
  std::vector<double> rate_factors = {};
};

/// The state of Adam per parameter.
struct AdamState {
  std::vector<Tensor> first, second;  // running means of g and g^2
  std::vector<int64_t> steps;
};

/// Adam as PyTorch computes it, for a loop of your own. It is not an Optimiser; a Trainer uses Adam if
/// TrainerOptions::optimiser is empty.
///   m = beta1 m + (1 - beta1) g     s = beta2 s + (1 - beta2) g^2
///   parameter -= learning_rate / (1 - beta1^t)  m / (sqrt(s) / sqrt(1 - beta2^t) + epsilon)
class Adam {
 public:
  /// Each step changes the parameters in place.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});

  /// One gradient per parameter; an undefined one leaves its parameter, means and t unchanged.
  void step(const std::vector<Tensor>& gradients);

  /// For all later steps.
  void set_learning_rate(double learning_rate);
  const AdamOptions& options() const { return options_; }

  /// Copies, which later steps do not change.
  AdamState state() const;
  /// Continues from the state.
  void set_state(const AdamState& state);

 private:
  AdamOptions options_;
  std::vector<Tensor> parameters_;
  AdamState state_;
};

/// weight * sum of the 2-norms of the tensors, not squared. The gradient of a zero tensor is zero.
Tensor norm_penalty(const std::vector<Tensor>& tensors, double weight);

/// Gradients of a scalar loss; zeros for a parameter that it does not depend on. Frees the graph of the loss.
std::vector<Tensor> gradients(const Tensor& loss, const std::vector<Tensor>& parameters);

}  // namespace fastweights

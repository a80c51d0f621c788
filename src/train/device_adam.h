#pragma once

#include "fastweights/optimise.h"
#include "model/programmer.h"

/// Adam for all parameters of a model on a GPU in one launch.

namespace fastweights {

class DeviceAdam {
 public:
  DeviceAdam(const FastWeightProgrammer& model, const AdamOptions& options);

  /// What is new in a step, on its way to the device.
  void begin_step(double learning_rate);
  /// The step itself, which a graph may do again. `gradient` [P] in the order of the parameters; `norm` [] is
  /// its norm: the step is as long as `clip` allows (0: any), and a norm that is not finite leaves everything
  /// as it is.
  void apply(const Tensor& gradient, const Tensor& norm, double clip) const;

  /// The last step was none: its norm was not finite.
  void take_back() { --steps_; }

  double learning_rate() const { return options_.learning_rate; }
  /// On the CPU, parameter by parameter.
  AdamState state() const;
  void set_state(const AdamState& state);

 private:
  std::vector<Tensor> by_parameter(const Tensor& flat) const;

  AdamOptions options_;
  std::vector<Tensor> parameters_;
  Tensor flat_, first_, second_;  // [P]
  Tensor factors_;                // [P] of the learning rate, or undefined
  Tensor numbers_;                // [3] float64: rate and corrections of this step
  int64_t steps_ = 0;
};

}  // namespace fastweights

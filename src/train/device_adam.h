#pragma once

#include "fastweights/network.h"
#include "fastweights/optimise.h"

/// Adam for all parameters of a network on a GPU in one launch.

namespace fastweights {

class DeviceAdam final : public Optimiser {
 public:
  DeviceAdam(const Network& network, const AdamOptions& options);

  void begin_step(double learning_rate) override;
  /// Can be recorded: it reads what begin_step() wrote on the device.
  void apply(const StepGradient& gradient, double clip) override;
  void discard_step() override { --steps_; }

  std::map<std::string, Tensor> state() const override;
  void set_state(const std::map<std::string, Tensor>& tensors) override;

 private:
  std::vector<Tensor> by_parameter(const Tensor& flat) const;

  AdamOptions options_;
  NamedParameters parameters_;
  Tensor flat_, first_, second_;  // [P]
  Tensor factors_;                // [P] of the learning rate, or undefined
  Tensor scalars_;                // [3] float64: rate and corrections of this step
  int64_t steps_ = 0;
};

}  // namespace fastweights

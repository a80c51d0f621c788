#pragma once

#include "fastweights/train.h"
#include "train/device_adam.h"

/// Training steps on a GPU: data that stay there, and nothing that the CPU waits for but the loss at the end
/// of each step.

namespace fastweights {

struct DeviceStep {
  double loss = 0, gradient_norm = 0;
  std::vector<Tensor> gradients;  // if one of them is not finite
};

class DeviceTraining {
 public:
  DeviceTraining(const FastWeightProgrammer& model, const TrainData& data, const AdamOptions& options);

  /// Which step this is; the next one is made ready while the device works.
  struct Place {
    std::vector<int64_t> samples;
    uint64_t seed;
  };
  /// `model` takes smaller blocks of time if its memory does not suffice.
  DeviceStep step(FastWeightProgrammer& model, const TrainConfig& config, const Tensor& class_weights,
                  const Place& here, const std::optional<Place>& next, double rate);

  Predictions validate(const FastWeightProgrammer& model);

  DeviceAdam& adam() { return adam_; }
  const DeviceAdam& adam() const { return adam_; }

 private:
  // a batch on the device, with the truth about it on the CPU
  struct Ready {
    Place place;
    PreparedInput input;
    Batch truth;
  };
  Ready make_ready(const FastWeightProgrammer& model, const Place& place) const;
  DeviceStep try_step(const FastWeightProgrammer& model, const TrainConfig& config,
                      const Tensor& class_weights, const std::optional<Place>& next, double rate);

  TrainData data_;  // tensors are shared
  DeviceAdam adam_;
  std::optional<PreparedInput> all_;  // the whole training set, if it stays on the device
  std::optional<Ready> ready_;
  std::optional<PreparedSet> validation_;
};

}  // namespace fastweights

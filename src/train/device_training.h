#pragma once

#include "train/prepared_set.h"
#include "train/recorded_step.h"

/// Training steps on a GPU: data that stay there, and nothing that the CPU waits for but the loss at the end
/// of each step.

namespace fastweights {

struct DeviceStep {
  double loss = 0, gradient_norm = 0;
  std::vector<Tensor> gradients;  // as they were before clipping
};

class DeviceTraining {
 public:
  DeviceTraining(const FastWeightProgrammer& model, const TrainData& data, const AdamOptions& options);

  /// Which step this is; the next one is made ready while the device works.
  struct Place {
    std::vector<int64_t> samples;
    uint64_t seed;
  };
  /// Takes shorter blocks of time if the memory of the device does not suffice.
  DeviceStep step(const FastWeightProgrammer& model, const TrainConfig& config, const Tensor& class_weights,
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
  void prepare_next(const FastWeightProgrammer& model, const Place& next);
  // a graph that can do this step, recorded now if there is none yet; null: there is none
  RecordedStep* recorded_for(const StepWork& work, const Ready& here, int64_t batch_size);
  void record(const StepWork& work, const Ready& here);
  DeviceStep try_step(const FastWeightProgrammer& model, const TrainConfig& config,
                      const Tensor& class_weights, const std::optional<Place>& next, double rate);

  TrainData data_;  // tensors are shared
  DeviceAdam adam_;
  std::optional<PreparedInput> all_;  // the whole training set, if it stays on the device
  std::optional<Ready> ready_;
  enum class Recording { Possible, Impossible };
  Recording recording_ = Recording::Possible;
  std::unique_ptr<RecordedStep> recorded_;
  int refused_ = 0;                              // batches in a row
  std::optional<FastWeightProgrammer> limited_;  // the model within less memory; parameters are shared
  enum class Kept { Unknown, No, Yes };
  Kept validation_kept_ = Kept::Unknown;
  PreparedSet validation_;
};

}  // namespace fastweights

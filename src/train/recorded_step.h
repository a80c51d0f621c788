#pragma once

#include "tensor/device.h"
#include "train/step.h"

/// A training step as a CUDA graph: a step has more than a hundred kernels, and a CPU needs longer to launch
/// those of a small model than the GPU to run them.

namespace fastweights {

/// Steps of one shape: as many samples, outputs and parameters as the first one had, up to a number of rows.
class RecordedStep {
 public:
  /// Changes no parameter. Throws if the device has too little memory.
  RecordedStep(const StepWork& work, const PreparedBatch& first, const Batch& truth, int64_t rows);

  /// Why no step on such a batch can be recorded: classes that are not all known, a network that needs the
  /// CPU in a pass, blocks or pieces of time. Empty if it can.
  static std::string refusal(const Network& network, const PreparedBatch& input, const Batch& truth);
  bool takes(const PreparedBatch& input, const Batch& truth) const;

  /// Takes a step that the optimiser has begun. The result is overwritten by the next one.
  const ComputedStep& run(const PreparedBatch& input, const Batch& truth, uint64_t seed);

 private:
  StepWork work_;
  std::shared_ptr<const PreparedBatch::Contents> batch_;
  Batch truth_;
  Tensor seed_;  // [1] on the device
  ComputedStep result_;
  DeviceGraph graph_;
};

/// Replays steps where it can, and otherwise takes them one operation after another.
class ReplayedSteps final : public StepRunner {
 public:
  /// Batches of `batch_size` of the samples of `all` are recorded.
  ReplayedSteps(const StepWork& work, const PreparedBatch& all, int64_t batch_size);

  ComputedStep run(const ReadyBatch& batch, double learning_rate) override;

 private:
  // records with this batch, or says why it cannot be done; an empty text also where a later batch can
  std::string record(const ReadyBatch& batch);
  // whether there is a graph for this batch; a line for the log if steps are not replayed from here on
  struct Attempt {
    bool ready = false;
    std::string note = {};
  };
  Attempt attempt(const ReadyBatch& batch);

  StepWork work_;
  PlainSteps plain_;
  PreparedBatch all_;
  int64_t batch_size_;
  std::unique_ptr<RecordedStep> recorded_;
  bool given_up_ = false;
  int refused_ = 0;  // batches in a row
};

}  // namespace fastweights

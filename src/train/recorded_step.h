#pragma once

#include <map>

#include "tensor/device.h"
#include "train/step.h"

/// A training step as a CUDA graph: a step has more than a hundred kernels, and a CPU needs longer to launch
/// those of a small model than the GPU to run them.

namespace fastweights {

/// Rows of all samples together.
BatchRows total_rows(const PreparedBatch& batch);

/// Steps on as many samples as the first one had, with capacity for a number of rows.
class RecordedStep {
 public:
  /// Changes no parameter. Throws if the device has too little memory.
  RecordedStep(const StepWork& work, const PreparedBatch& first, const Batch& truth, const BatchRows& rows);

  bool takes(const PreparedBatch& input, const Batch& truth) const;

  /// Takes a step that the optimiser has begun. The result is overwritten by the next one.
  const ComputedStep& run(const PreparedBatch& input, const Batch& truth, uint64_t seed);

 private:
  StepWork work_;
  std::shared_ptr<const PreparedBatch::Contents> batch_;
  Batch truth_;  // on the device; unknown where a batch has no output
  Tensor seed_;  // [1] on the device
  ComputedStep result_;
  DeviceGraph graph_;
};

/// Replays steps where it can, and otherwise takes them one operation after another.
class ReplayedSteps final : public StepRunner {
 public:
  /// Batches are selected from `all`.
  ReplayedSteps(const StepWork& work, const PreparedBatch& all);

  ComputedStep run(const ReadyBatch& batch, double learning_rate) override;

 private:
  // of batches of one size
  struct Slot {
    std::unique_ptr<RecordedStep> recorded = {};
    bool given_up = false;
    int refused = 0;  // batches in a row
  };
  // records with this batch, or says why it cannot be done; an empty text also where a later batch can
  std::string record(Slot& slot, const ReadyBatch& batch);
  // the graph for this batch, or null; a line for the log if steps are not replayed from here on
  struct Attempt {
    RecordedStep* graph = nullptr;
    std::string note = {};
  };
  Attempt attempt(const ReadyBatch& batch);

  StepWork work_;
  PlainSteps plain_;
  PreparedBatch all_;
  bool noted_ = false;             // whether the log says why
  std::map<int64_t, Slot> slots_;  // by the number of samples: whole batches, and the last one of an epoch
};

}  // namespace fastweights

#pragma once

#include "fastweights/network.h"
#include "fastweights/optimise.h"
#include "fastweights/task.h"

/// One training step: forward, loss, backward, optimiser.

namespace fastweights {

using LossFunction = std::function<Tensor(const Tensor& outputs, const Batch& batch)>;

std::vector<Tensor> tensors_of(const NamedParameters& parameters);

/// A batch on the device of the model, with the truth about it.
struct ReadyBatch {
  std::vector<int64_t> samples;
  uint64_t seed = 0;
  PreparedBatch input;
  Batch truth;
};

/// What makes a step, beside its batch.
struct StepWork {
  std::shared_ptr<const Network> network;
  std::shared_ptr<Optimiser> optimiser;
  LossFunction loss;
  double clip = 0, penalty = 0;
  int64_t memory_limit = 0;  // bytes; 0: none
};

/// On a GPU nothing of it is known to the CPU yet.
struct ComputedStep {
  StepGradient gradient;  // before clipping
  Tensor summary;         // [2]: loss of the task, norm of the gradient
  Status status = {};     // of the forward pass, if the summary is not finite; on the CPU
  bool replayed = false;
  std::string note = {};  // for the log
};

/// Forward, loss, backward. Nothing is changed yet.
ComputedStep compute_gradient(const StepWork& work, const PreparedBatch& input, const Batch& truth,
                              const PassOptions& options);

/// Takes steps.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual ComputedStep run(const ReadyBatch& batch, double learning_rate) = 0;
};

/// One operation after another.
class PlainSteps final : public StepRunner {
 public:
  explicit PlainSteps(StepWork work) : work_(std::move(work)) {}
  ComputedStep run(const ReadyBatch& batch, double learning_rate) override;

 private:
  StepWork work_;
};

}  // namespace fastweights

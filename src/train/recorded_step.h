#pragma once

#include "fastweights/train.h"
#include "model/resident.h"
#include "tensor/device.h"
#include "train/device_adam.h"

/// A training step on a GPU, and the same as a CUDA graph: a step has more than a hundred pieces of work, and
/// a CPU needs longer to issue those of a small model than the GPU to do them.

namespace fastweights {

/// What makes a step, beside its batch.
struct StepWork {
  FastWeightProgrammer model;
  double clip = 0, penalty = 0;
  Tensor class_weights;  // on the device, or undefined
};

/// Forward, loss, backward. Nothing is changed yet.
struct StepGradient {
  Tensor flat, norm;           // [P], []; a loss that is not finite makes the norm so
  Tensor numbers;              // [2]: loss and norm
  std::vector<Tensor> pieces;  // the gradient by parameters
};
StepGradient step_gradient(const StepWork& work, const PreparedInput& input, const Batch& truth,
                           const ForwardOptions& options);

/// Steps of one shape: as many samples, outputs and parameters as the first one had, up to so many rows.
class RecordedStep {
 public:
  /// Changes no parameter. Throws if the device has too little memory.
  RecordedStep(const StepWork& work, const DeviceAdam& adam, const PreparedInput& first, const Batch& truth,
               int64_t rows);

  /// Whether steps on such a batch can be recorded at all: classes that are all known, no blocks or pieces of
  /// time.
  static bool possible(const FastWeightProgrammer& model, const PreparedInput& input, const Batch& truth);
  bool takes(const PreparedInput& input, const Batch& truth) const;

  /// Does a step that Adam has begun. What it returns is overwritten by the next one.
  const StepGradient& run(const PreparedInput& input, const Batch& truth, uint64_t seed);

 private:
  StepWork work_;
  std::shared_ptr<Resident> place_;
  Batch truth_;
  Tensor seed_;  // [1] on the device
  StepGradient result_;
  DeviceGraph graph_;
};

}  // namespace fastweights

#pragma once

#include "fastweights/model.h"
#include "model/programmer_config.h"

/// Fast weight programmers in continuous time.

namespace fastweights {

struct Resident;

/// An input in the memory of a GPU, with all that does not depend on parameters: steps, and the signal at all
/// of their stages. It is made once and used for many passes.
class PreparedInput {
 public:
  explicit PreparedInput(std::shared_ptr<const Resident> resident) : resident_(std::move(resident)) {}

  int64_t samples() const;
  /// Bytes on the device.
  int64_t bytes() const;
  /// Some of its samples, in this order. Samples that depend on others (QueryTime::LastOfBatch,
  /// StepRule::SharedGrid) cannot be picked.
  PreparedInput select(const std::vector<int64_t>& samples) const;
  const Resident& resident() const { return *resident_; }

 private:
  std::shared_ptr<const Resident> resident_;
};

/// A copy shares the parameters.
class FastWeightProgrammer {
 public:
  explicit FastWeightProgrammer(const ModelConfig& config, const ModelOptions& options = {});

  /// Differentiable with respect to the parameters, the series' values, the static features and the start.
  ModelOutput forward(const ModelInput& input, const ForwardOptions& options = {}) const;

  /// The same on a GPU, in two parts: a pass on a prepared input waits for nothing and looks at nothing on
  /// the CPU, so its status is always good.
  PreparedInput prepare(const ModelInput& input) const;
  ModelOutput forward(const PreparedInput& input, const ForwardOptions& options = {}) const;
  /// Whether a training step on it is one piece of work that can be recorded as a CUDA graph; it is not where
  /// the memory wants blocks of time, or a linear rule pieces of time side by side.
  bool can_record(const PreparedInput& input) const;
  /// Whether rows that are there without being used would cost such a step time.
  bool rows_cost_time() const;

  /// What a training step on this input will take, without doing it; the definition has no plan.
  std::optional<MemoryPlan> plan(const ModelInput& input) const;
  MemoryPlan plan(const PreparedInput& input) const;

  const ProgrammerConfig& config() const;
  /// Method, steps and gradient do not belong to the parameters and may change, for this copy alone.
  void set_solver(const SolverConfig& solver);
  /// In a fixed order; changed in place they change the model.
  const NamedParameters& parameters() const&;
  NamedParameters parameters() &&;
  std::vector<Tensor> parameter_tensors() const;
  int64_t parameter_count() const;

  at::Device device() const;
  /// An error that says why this model cannot be computed where it is; the CPU can do all of them.
  void check_device() const;
  /// A copy with parameters of its own on that device.
  FastWeightProgrammer to(const at::Device& device) const;
  /// On a GPU all parameters stand in one piece of memory, in their order; on the CPU this is undefined.
  Tensor flat_parameters() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;  // shared with backward passes that are still to come
};

}  // namespace fastweights

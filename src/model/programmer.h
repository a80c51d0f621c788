#pragma once

#include "fastweights/network.h"
#include "model/parts.h"

/// Fast weight programmers in continuous time.

namespace fastweights {

class FastWeightProgrammer final : public Network {
 public:
  FastWeightProgrammer(const ProgrammerConfig& config, const ModelOptions& options);
  explicit FastWeightProgrammer(std::shared_ptr<const ModelParts> parts) : parts_(std::move(parts)) {}

  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const override;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const override;

  const NamedParameters& parameters() const override { return parts_->parameters; }
  std::shared_ptr<const Network> with_solver(const SolverConfig& solver) const override;

  at::Device device() const override { return parts_->device(); }
  void check_device() const override;
  std::shared_ptr<const Network> to(const at::Device& device) const override;

  std::optional<MemoryPlan> plan(const PreparedBatch& batch) const override;
  bool can_record(const PreparedBatch& batch) const override;
  bool padding_is_costly() const override;
  Tensor flat_parameters() const override { return parts_->flat; }

 private:
  std::shared_ptr<const ModelParts> parts_;  // shared with backward passes that are still to come
};

}  // namespace fastweights

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fastweights/model.h"
#include "fastweights/optimise.h"
#include "model/parts.h"
#include "scan_shapes.h"

/// One training step or one inference of a model, by the engine or by the definition.

namespace fastweights::bench {

/// Model: as a user calls it. Definition: keys, values and rates of all stages by batched LibTorch
/// operations, then the recurrence step by step as their composition.
enum class Way { Model, Definition };

class ScanRun {
 public:
  ScanRun(Way way, const ProgrammerConfig& config, ScanBatch batch);

  /// Forward in training mode, loss, backward, Adam.
  void step();
  /// Outputs [B, O] without gradients.
  Tensor forward();
  /// That ran last.
  const std::string& backend() const { return backend_; }
  const MemoryPlan& plan() const { return plan_; }

 private:
  Tensor outputs(const ForwardOptions& options);  // [B, O]
  Tensor definition_outputs(const PassOptions& options);

  Way way_;
  ScanBatch batch_;
  Model model_;
  std::shared_ptr<const ModelParts> parts_;  // the definition's own, with the same numbers
  std::vector<Tensor> parameters_;
  Adam adam_;
  std::string backend_;
  MemoryPlan plan_;
};

/// Cross-entropy of outputs [B, O]; of a logit per sample if O = 1.
Tensor loss_of(const Tensor& outputs, const Tensor& labels);

double median(std::vector<double> values);

/// What is freed goes back to the system at once: only what is held counts.
void return_freed_memory();
/// Freed memory stays with the process, as it does in a program that goes on training: a result of a gigabyte
/// would otherwise be fetched from the system again in every repetition.
void keep_freed_memory();

/// Megabytes that were resident at most while this ran, beyond those before it; NaN where the system does not
/// let us know.
double peak_mb_of(const std::function<void()>& work);

}  // namespace fastweights::bench

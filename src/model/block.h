#pragma once

#include <memory>

#include "fastweights/scan.h"
#include "model/parts.h"
#include "model/signal.h"
#include "model/step_rows.h"

/// Steps of a model in blocks of time: the signal, the slow net and the recurrence of one block after
/// another, so that only W is as long as the series. Several blocks are computed again in the
/// backward pass, from W at their beginnings.

namespace fastweights {

/// Whose reads of the signal all stages of a step share.
struct SharedRows {
  bool keys = false, values = false;
};

/// The signal at all stages of all steps.
struct SampledSteps {
  Samples x;    // [R, Z, C]: value and derivative, as the drive needs them; Z = 1: stages share them
  Tensor dt;    // [R]
  Tensor rows;  // [R] int64: the sample of each row
};

struct Block;

struct BlockTask {
  std::shared_ptr<const ModelParts> parts = {};
  std::optional<Signal> signal = {};       // to be sampled block by block, on the CPU, or ...
  std::optional<SampledSteps> steps = {};  // ... sampled already
  Masks masks = {};
  ScanOptions scan = {};  // rule, method, backend
  StepRows rows = {};
  SharedRows shared = {};
  int64_t stages = 1;
  std::vector<std::vector<int64_t>> requested = {};  // per sample: steps after which W is requested, rising
  int64_t block_steps = 1;
  std::shared_ptr<const Block> whole = {};  // all steps in one block, if it was made before

  bool on_gpu() const { return scan.backend == Backend::Cuda; }
  /// Whether one evaluation of the signal serves all stages of a step.
  bool samples_once() const { return parts->layer_count() == 1 && shared.keys && shared.values; }
};

/// Steps begin .. end of all samples.
struct Block {
  Tensor rows;                 // [R] of the task's rows; undefined: all
  Tensor offsets;              // [B + 1]
  Tensor output_steps;         // [M], counted from the block's beginning
  Tensor output_offsets;       // [B + 1]
  Tensor requested;            // rows of the M outputs that are requested ...
  Tensor ends;                 // ... and that are the end of the block, [B]
  std::vector<int64_t> order;  // index of each requested one among those of all blocks
  ScanIndex on_device = {};    // offsets and outputs again, on a GPU
};

/// All steps in one block.
Block whole_block(const BlockTask& task);

/// W after the requested steps, sample after sample: [M, L, H, V, K]. Differentiable with respect to w0, the
/// parameters and the signal.
Tensor run_blocks(const BlockTask& task, const Tensor& w0);

}  // namespace fastweights

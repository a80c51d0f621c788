#pragma once

#include <memory>

#include "fastweights/scan.h"
#include "model/parts.h"
#include "model/signal.h"
#include "model/step_rows.h"

/// Steps of a model in blocks of time: the signal, the slow net and the recurrence of one block after
/// another, so that nothing but W is as long as the series. More than one block are computed again in the
/// backward pass, from W at their beginnings.

namespace fastweights {

/// Whose reads of the signal all stages of a step share.
struct SharedRows {
  bool keys = false, values = false;
};

/// The signal at all stages of all steps, on a GPU.
struct SampledSteps {
  Samples x;    // [R, Z, C]: value and derivative, as the drive needs them; Z = 1: stages share them
  Tensor dt;    // [R]
  Tensor rows;  // [R] int64: whose they are
};

struct Block;

struct BlockTask {
  std::shared_ptr<const ModelParts> parts;
  std::optional<Signal> signal;            // on the CPU, or ...
  std::optional<SampledSteps> steps = {};  // ... all of it on a GPU
  Masks masks;
  ScanOptions scan = {};  // rule, method, backend
  StepRows rows = {};
  SharedRows shared = {};
  std::vector<std::vector<int64_t>> wanted = {};  // per sample: steps after which W is wanted, rising
  int64_t block_steps = 1;
  std::shared_ptr<const Block> whole = {};  // all steps in one block, where somebody has made it before
};

/// Steps begin .. end of all samples.
struct Block {
  Tensor rows;                  // [R] of the task's rows; undefined: all
  Tensor offsets;               // [B + 1]
  Tensor output_steps;          // [M], counted from the block's beginning
  Tensor output_offsets;        // [B + 1]
  Tensor wanted;                // rows of the M outputs that are wanted ...
  Tensor ends;                  // ... and that are the end of the block, [B]
  std::vector<int64_t> places;  // of what is wanted, in the list of all
  ScanIndex on_device = {};     // offsets and outputs once more, if there is a GPU
};

/// All steps in one block, for tasks that have a GPU.
Block whole_block(const BlockTask& task);

/// W at what is wanted, sample after sample: [M, L, H, V, K]. Differentiable with respect to w0, the
/// parameters and the signal.
Tensor run_blocks(const BlockTask& task, const Tensor& w0);

}  // namespace fastweights

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

struct BlockTask {
  std::shared_ptr<const ModelParts> parts;
  Signal signal;
  Masks masks;
  ScanOptions scan = {};  // rule, method, backend
  StepRows rows = {};
  SharedRows shared = {};
  std::vector<std::vector<int64_t>> wanted = {};  // per sample: steps after which W is wanted, rising
  int64_t block_steps = 1;
};

/// W at what is wanted, sample after sample: [M, L, H, V, K]. Differentiable with respect to w0, the
/// parameters and the signal.
Tensor run_blocks(const BlockTask& task, const Tensor& w0);

}  // namespace fastweights

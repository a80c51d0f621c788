#pragma once

#include "fastweights/model_config.h"
#include "fastweights/solve.h"
#include "model/signal.h"

/// When a solve steps and what it returns, for a ragged batch.

namespace fastweights {

struct Schedule {
  Tensor ts;  // [T] or [T, B]: times handed to the solver, beginning with each sample's start
  Steps steps;
  Tensor time_index;    // [M]: row of ts at which each output is
  Tensor sample_index;  // [M]: its sample
  Tensor last_index;    // [B]: row of ts at each sample's last output
};

/// `start` [B] and `outputs` are on the signal's clock; outputs of a sample rise and are not before its
/// start.
Schedule make_schedule(const SharedOptions& config, const Signal& signal, const Tensor& start,
                       const RaggedTimes& outputs);

}  // namespace fastweights

#pragma once

#include "model/schedule.h"
#include "solve/plan.h"

/// The steps of a schedule as rows, sample after sample, and where its outputs are among them.

namespace fastweights {

struct StepRows {
  Tensor offsets;  // [B + 1] int64: rows of each sample
  Tensor times;    // [R, S] float64: at which the stages of a step evaluate the signal
  Tensor dt;       // [R] float64
  int64_t longest = 0;

  int64_t samples() const { return offsets.size(0) - 1; }
};

StepRows step_rows(const Plan& plan, const Tableau& tableau, int64_t samples);

/// An output lies after this many steps of its sample, and this fraction of the following one.
struct StepPosition {
  int64_t steps = 0;
  double fraction = 0;
};

/// Position of row j of ts for sample b at [j * B + b].
std::vector<StepPosition> output_positions(const Plan& plan, int64_t samples);

}  // namespace fastweights

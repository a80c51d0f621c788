#pragma once

#include "fastweights/solve.h"
#include "solve/plan.h"

namespace fastweights {

/// Bytes that one kept state takes.
int64_t state_bytes(const State& state);

/// Where to cut a stretch of `steps` steps, given that `slots` more states may be kept: the left part's
/// length by the binomial schedule of Griewank and Walther, which recomputes least.
int64_t checkpoint_split(int64_t steps, int64_t slots);

/// States that a budget allows besides the first one; 0 bytes means about 2 sqrt(steps).
int64_t checkpoint_slots(int64_t memory_limit, int64_t bytes_per_state, int64_t steps);

/// Outputs of the plan, computed without recording. Their gradient is exact: backward keeps few states and
/// computes the others again, then back-propagates through one step after another. `ys` holds the outputs if
/// an adaptive search has already made them.
Tensor checkpointed_outputs(const Plan& plan, const Method& method, const Field& f, Evaluator& counted,
                            const Tensor& y0, const SolveOptions& options, const Tensor& ys);

}  // namespace fastweights

#pragma once

#include <vector>

#include "fastweights/solve.h"
#include "solve/plan.h"

namespace fastweights {

/// How the size of an error is measured. Empty: the root mean square over all elements (of a sample, or of
/// all). Otherwise the state is a flat vector of parts, and the largest root mean square of a part counts.
struct ErrorNorm {
  std::vector<int64_t> parts;
};

/// What the search for steps found. The plan leads through the accepted steps alone; `pieces` are the outputs
/// as the search computed them, recorded by autograd if it was on (joint control only).
struct SearchResult {
  Plan plan;
  std::vector<Piece> pieces;
  Status status;
  int64_t steps = 0, rejected = 0;
  std::vector<StepRecord> log;
};

SearchResult adaptive_search(const Tensor& ts, const Tensor& y0, const Tableau& tableau, Evaluator& f,
                             const AdaptiveSteps& steps, OutputInterpolation interpolation,
                             const ErrorNorm& norm);

}  // namespace fastweights

#pragma once

#include <vector>

#include "fastweights/solve.h"
#include "solve/step.h"

/// The steps of a solve as data: known before the first step where steps are fixed, found by the adaptive
/// search otherwise. To repeat the solve (with gradients, from a checkpoint), replay the plan.

namespace fastweights {

/// An output that falls into a step.
struct PlannedOutput {
  int64_t index;  // row of ts
  Tensor rows;    // samples it belongs to; undefined: all
  bool at_end;    // it is the end of the step, nothing to interpolate
};

struct PlannedStep {
  std::vector<PlannedOutput> outputs;
  bool restart = false;  // the field jumps at the end: the next step starts from a new slope ...
  Tensor restart_rows;   // ... for these samples (bool [B]); undefined: all
};

struct Plan {
  Tensor grid;  // [N + 1] or [N + 1, B] float64: where steps begin and end; differentiable if ts is
  Tensor ts;    // [T] or [T, B] float64: output times
  std::vector<PlannedStep> steps;
  std::vector<PlannedOutput> first_outputs;  // before any step
  OutputInterpolation interpolation;
  bool first_inside = false;
  bool last_inside = false;
  double shortening = 0;  // eps of StageEdges::Shortened
  StageTimes stage_times = StageTimes::Double;
  Tensor first_nudge;          // added to the start for the very first slope, if that is a jump; [] or [B]
  bool carries_slope = false;  // adaptive: the last slope of a step starts the next one, whatever the method

  bool per_sample() const { return grid.dim() == 2; }
  /// Whether times travel as tensors: one per sample, or with gradients.
  bool tensor_times() const { return per_sample() || grid.requires_grad() || ts.requires_grad(); }
};

/// A computed output: a row of ys, or some samples of it.
struct Piece {
  int64_t index;
  Tensor rows;
  Tensor y;
};

/// Steps of FixedSteps and GivenSteps.
Plan fixed_plan(const Tensor& ts, const Tensor& y0, const SolveOptions& options);

/// The time span of step n of the plan.
Span plan_span(const Plan& plan, int64_t n);

/// When the very first slope is taken, for a start at t0.
Time first_slope_time(const Plan& plan, const Time& t0);

/// Output time `index` for the given samples.
Time output_time(const Tensor& ts, int64_t index, const Tensor& rows);

/// The result of a planned step: the state after it, and its outputs.
struct Replayed {
  State state;
  std::vector<Piece> pieces;
};

/// Runs step n of the plan from `state`. Span and output times are the plan's, or copies of them to
/// differentiate.
Replayed replay_step(const Plan& plan, const Method& method, Evaluator& f, const State& state, int64_t n,
                     const Span& span, const Tensor& ts);

/// The whole plan from y0.
std::vector<Piece> replay(const Plan& plan, const Method& method, Evaluator& f, const Tensor& y0);

/// Outputs that need no step.
std::vector<Piece> first_pieces(const Plan& plan, const Tensor& y0);

/// Assembles the pieces to [T, ...]; missing ones become NaN.
Tensor assemble(const std::vector<Piece>& pieces, int64_t outputs, const Tensor& y0);

}  // namespace fastweights

#include "solve/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/error.h"

namespace fastweights {
namespace {

void check_step_count(double count, double size) {
  FW_CHECK(count <= 1e8, "[solve] a step size of ", size, " means ", count, " steps; take larger ones");
}

// torchdiffeq's grid: whole steps from t0, the last point moved to the end; counted in this precision
Tensor regular_grid(const Tensor& ts, double size, StageTimes precision) {
  const Tensor times = precision == StageTimes::Single ? ts.to(at::kFloat) : ts;
  const double count = ((times[-1] - times[0]).detach() / size + 1).item<double>();
  check_step_count(count, size);
  const auto points = static_cast<int64_t>(std::ceil(count));
  const Tensor grid = at::arange(points, times.options()) * size + times[0];
  return at::cat({grid.slice(0, 0, points - 1), times.slice(0, -1)}, 0).to(at::kDouble);
}

// what cannot be shortened or distinguished in single precision
void check_moved_grid(const Plan& plan) {
  if (plan.stage_times == StageTimes::Double && plan.shortening == 0) return;
  const Tensor grid = plan.grid.detach();
  const Tensor gaps = grid.slice(0, 1) - grid.slice(0, 0, -1);  // [N] or [N, B]
  if (plan.stage_times == StageTimes::Single) {
    const Tensor bad = at::nonzero(gaps <= 0);
    FW_CHECK(bad.size(0) == 0, "[solve] in single precision step time ", bad[0][0].item<int64_t>() + 1, ", ",
             grid[bad[0][0].item<int64_t>() + 1].item<double>(),
             ", is not later than the one before; take StageTimes::Double");
  }
  if (plan.shortening > 0) {
    const Tensor short_ones = gaps.masked_select((gaps > 0).logical_and(gaps <= 2 * plan.shortening));
    FW_CHECK(short_ones.size(0) == 0, "[solve] a step of ", short_ones[0].item<double>(),
             " is not longer than twice the shortening of ", plan.shortening);
  }
}

// steps after which sample b is at output j, [T][B]
using StepCounts = std::vector<std::vector<int64_t>>;

struct SampleGrids {
  Tensor grid;  // [N + 1, B]
  StepCounts reached;
};

// whether no time between two outputs is a step of its own
enum class ZeroSteps { Skip, Take };

// steps from each output to the next
StepCounts count_steps(const Tensor& ts, double size, ZeroSteps zero_steps) {
  const int64_t outputs = ts.size(0), samples = ts.size(1);
  const Tensor values = ts.detach().contiguous();
  const double* t = values.data_ptr<double>();
  StepCounts reached(outputs, std::vector<int64_t>(samples, 0));
  for (int64_t j = 1; j < outputs; ++j) {
    for (int64_t b = 0; b < samples; ++b) {
      const double gap = t[j * samples + b] - t[(j - 1) * samples + b];
      int64_t steps = gap > 0 || zero_steps == ZeroSteps::Take ? 1 : 0;
      if (size > 0 && gap > 0) {
        check_step_count(gap / size, size);
        steps = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(gap / size * (1 - 1e-12))));
      }
      reached[j][b] = reached[j - 1][b] + steps;
    }
  }
  return reached;
}

// each sample's own grid: every interval between outputs cut into equal steps; shorter samples wait at their
// end
SampleGrids sample_grids(const Tensor& ts, double size, ZeroSteps zero_steps) {
  const int64_t outputs = ts.size(0), samples = ts.size(1);
  StepCounts reached = count_steps(ts, size, zero_steps);
  const int64_t longest = samples > 0 ? *std::max_element(reached.back().begin(), reached.back().end()) : 0;
  check_step_count(static_cast<double>(longest) * static_cast<double>(samples), size);
  // grid point n of sample b lies between its outputs left and left + 1, at this fraction of the way
  Tensor left = at::full({longest + 1, samples}, outputs - 1, at::kLong);
  Tensor fraction = at::zeros({longest + 1, samples}, at::kDouble);
  for (int64_t b = 0; b < samples; ++b) {
    for (int64_t j = 0; j + 1 < outputs; ++j) {
      const int64_t begin = reached[j][b], end = reached[j + 1][b];
      for (int64_t n = begin; n < end; ++n) {
        left.data_ptr<int64_t>()[n * samples + b] = j;
        fraction.data_ptr<double>()[n * samples + b] =
            static_cast<double>(n - begin) / static_cast<double>(end - begin);
      }
    }
  }
  const Tensor right = at::clamp_max(left + 1, outputs - 1);
  const Tensor from = ts.gather(0, left);
  return {from + fraction * (ts.gather(0, right) - from), std::move(reached)};
}

Tensor rows_tensor(const std::vector<int64_t>& rows) { return at::tensor(rows, at::kLong); }

// whether grid points are output times themselves
enum class GridPoints { OutputTimes, Others };

// outputs of a grid that all samples share
void place_shared_outputs(Plan& plan, GridPoints points) {
  const Tensor grid = plan.grid.detach().contiguous(), ts = plan.ts.detach().contiguous();
  const double *g = grid.data_ptr<double>(), *t = ts.data_ptr<double>();
  const int64_t outputs = ts.size(0), steps = grid.size(0) - 1;
  int64_t j = 1;
  for (int64_t n = 0; n < steps; ++n) {
    for (; j < outputs && g[n + 1] >= t[j]; ++j) {
      // with time gradients an output that only happens to meet a grid point still moves with its own time
      // and Hermite's form takes a slope at every output, which is how torchdiffeq counts evaluations
      const bool tied = (points == GridPoints::OutputTimes || j == outputs - 1 || !plan.tensor_times()) &&
                        plan.interpolation != OutputInterpolation::Cubic;
      plan.steps[n].outputs.push_back({.index = j, .rows = {}, .at_end = tied && t[j] == g[n + 1]});
    }
  }
}

// outputs of grids that belong to samples, anywhere in the grid
void place_sample_outputs(Plan& plan) {
  const Tensor grid = plan.grid.detach().contiguous(), ts = plan.ts.detach().contiguous();
  const double *g = grid.data_ptr<double>(), *t = ts.data_ptr<double>();
  const int64_t outputs = ts.size(0), samples = ts.size(1), steps = grid.size(0) - 1;
  std::map<std::tuple<int64_t, int64_t, bool>, std::vector<int64_t>>
      found;  // (step, output, at end) -> samples
  for (int64_t b = 0; b < samples; ++b) {
    int64_t n = 0;
    for (int64_t j = 0; j < outputs; ++j) {
      const double time = t[j * samples + b];
      while (n < steps && g[n * samples + b] < time) ++n;
      // as above: with time gradients only the last output is tied to the grid
      const bool tied = j == outputs - 1 || n == 0 || !plan.ts.requires_grad();
      found[{n - 1, j, tied && g[n * samples + b] == time}].push_back(b);
    }
  }
  for (const auto& [key, rows] : found) {
    const auto& [n, j, at_end] = key;
    (n < 0 ? plan.first_outputs : plan.steps[n].outputs).push_back({j, rows_tensor(rows), at_end});
  }
}

void place_reached_outputs(Plan& plan, const StepCounts& reached) {
  for (size_t j = 0; j < reached.size(); ++j) {
    std::map<int64_t, std::vector<int64_t>> found;
    for (size_t b = 0; b < reached[j].size(); ++b)
      found[reached[j][b] - 1].push_back(static_cast<int64_t>(b));
    for (const auto& [n, rows] : found) {
      (n < 0 ? plan.first_outputs : plan.steps[n].outputs)
          .push_back({static_cast<int64_t>(j), rows_tensor(rows), true});
    }
  }
}

void check_given_grid(const Tensor& grid, const Tensor& ts, int64_t samples) {
  FW_CHECK(
      grid.defined() && grid.scalar_type() == at::kDouble && grid.device().is_cpu() &&
          (grid.dim() == 1 || grid.dim() == 2) && grid.size(0) >= 2,
      "[solve] given step times must be float64 [N + 1] or [N + 1, B] on the CPU with at least two points");
  FW_CHECK(grid.dim() == 1 || grid.size(1) == samples, "[solve] given step times are for ", grid.size(-1),
           " samples, y0 has ", samples);
  FW_CHECK(grid.dim() == ts.dim(),
           "[solve] given step times and output times must both be shared or both be per sample");
  const Tensor g = grid.detach(), t = ts.detach();
  FW_CHECK(at::equal(g[0], t[0]) && at::equal(g[-1], t[-1]),
           "[solve] given step times must begin at the first and end at the last output time");
  FW_CHECK(!ts.requires_grad() || grid.requires_grad(),
           "[solve] gradients of output times need given step times that are computed from them");
  const Tensor gaps = g.slice(0, 1) - g.slice(0, 0, -1);
  FW_CHECK(at::isfinite(g).all().item<bool>(), "[solve] given step times must be finite");
  if (grid.dim() == 1) {
    const Tensor bad = at::nonzero(gaps <= 0);
    FW_CHECK(bad.size(0) == 0, "[solve] given step times must increase, but step time ",
             bad[0][0].item<int64_t>() + 1, " is ", g[bad[0][0].item<int64_t>() + 1].item<double>(),
             " after ", g[bad[0][0].item<int64_t>()].item<double>());
  } else {
    const Tensor bad = at::nonzero(gaps < 0);
    FW_CHECK(bad.size(0) == 0, "[solve] sample ", bad[0][1].item<int64_t>(),
             ": given step times must not fall, but ", "step time ", bad[0][0].item<int64_t>() + 1, " does");
  }
}

}  // namespace

Plan fixed_plan(const Tensor& ts, const Tensor& y0, const SolveOptions& options) {
  Plan plan;
  plan.ts = ts;
  plan.interpolation = options.interpolation.value_or(OutputInterpolation::Linear);
  const GivenSteps* given = std::get_if<GivenSteps>(&options.steps);
  // given steps have no edges that fixed ones lack
  const FixedSteps fixed = given ? FixedSteps{.edges = given->edges} : std::get<FixedSteps>(options.steps);
  const double size = fixed.size;
  plan.first_inside = plan.last_inside = fixed.edges == StageEdges::Inside;
  plan.shortening = fixed.edges == StageEdges::Shortened ? fixed.shortening : 0;
  plan.stage_times = fixed.stage_times;
  if (plan.stage_times == StageTimes::Single) plan.ts = ts.to(at::kFloat).to(at::kDouble);
  if (given) {
    check_given_grid(given->times, ts, y0.dim() > 0 ? y0.size(0) : 1);
    plan.grid = given->times.contiguous();
  } else if (ts.dim() == 2) {
    // with gradients every output time has an end of a step to itself; a history of slopes would not survive
    // that
    const bool own_steps = ts.requires_grad() && std::holds_alternative<Tableau>(options.method);
    SampleGrids grids = sample_grids(ts, size, own_steps ? ZeroSteps::Take : ZeroSteps::Skip);
    plan.grid = grids.grid;
    plan.steps.resize(plan.grid.size(0) - 1);
    place_reached_outputs(plan, grids.reached);
    check_moved_grid(plan);
    return plan;
  } else {
    plan.grid = size > 0 ? regular_grid(plan.ts, size, plan.stage_times) : plan.ts;
  }
  check_moved_grid(plan);
  plan.steps.resize(plan.grid.size(0) - 1);
  if (ts.dim() == 2) {
    place_sample_outputs(plan);
  } else {
    plan.first_outputs.push_back({.index = 0, .rows = {}, .at_end = true});
    place_shared_outputs(plan, given || size > 0 ? GridPoints::Others : GridPoints::OutputTimes);
  }
  return plan;
}

Span plan_span(const Plan& plan, int64_t n) {
  const double* g = plan.grid.data_ptr<double>();
  const bool tensors = plan.tensor_times();
  return {.t0 = tensors ? Time(plan.grid[n]) : Time(g[n]),
          .t1 = tensors ? Time(plan.grid[n + 1]) : Time(g[n + 1]),
          .first_inside = plan.first_inside,
          .last_inside = plan.last_inside,
          .shortening = plan.shortening,
          .stage_times = plan.stage_times};
}

Time first_slope_time(const Plan& plan, const Time& t0) {
  return plan.first_nudge.defined() ? Time(t0.tensor() + plan.first_nudge) : t0;
}

Time output_time(const Tensor& ts, int64_t index, const Tensor& rows) {
  if (ts.dim() == 2) return Time(rows.defined() ? ts[index].index_select(0, rows) : ts[index]);
  if (ts.requires_grad()) return Time(ts[index]);
  return ts.data_ptr<double>()[index];
}

Replayed replay_step(const Plan& plan, const Method& method, Evaluator& f, const State& state, int64_t n,
                     const Span& span, const Tensor& ts) {
  auto [result, next] = take_step(method, f, state, span);
  const PlannedStep& planned = plan.steps[n];
  std::vector<Piece> pieces;
  for (const PlannedOutput& output : planned.outputs) {
    Tensor y = output.at_end ? select_rows(result.y1, output.rows)
                             : interpolate(plan.interpolation, method, f, state.y, result, span,
                                           output_time(ts, output.index, output.rows), output.rows);
    pieces.push_back({output.index, output.rows, std::move(y)});
  }
  if (plan.carries_slope) next.slopes = {result.slopes.back()};
  if (planned.restart) {
    const Tensor slope = f(just_after(span.t1), next.y);
    const bool all = !planned.restart_rows.defined();
    next.slopes = {all ? slope : at::where(mask_like(planned.restart_rows, slope), slope, next.slopes[0])};
  }
  return {std::move(next), std::move(pieces)};
}

std::vector<Piece> first_pieces(const Plan& plan, const Tensor& y0) {
  std::vector<Piece> pieces;
  for (const PlannedOutput& output : plan.first_outputs) {
    pieces.push_back({output.index, output.rows, select_rows(y0, output.rows)});
  }
  return pieces;
}

std::vector<Piece> replay(const Plan& plan, const Method& method, Evaluator& f, const Tensor& y0) {
  std::vector<Piece> pieces = first_pieces(plan, y0);
  State state = {y0, {}};
  const auto steps = static_cast<int64_t>(plan.steps.size());
  if (plan.carries_slope && steps > 0) state.slopes = {f(first_slope_time(plan, plan_span(plan, 0).t0), y0)};
  for (int64_t n = 0; n < steps; ++n) {
    Replayed step = replay_step(plan, method, f, state, n, plan_span(plan, n), plan.ts);
    state = std::move(step.state);
    std::move(step.pieces.begin(), step.pieces.end(), std::back_inserter(pieces));
  }
  return pieces;
}

Tensor assemble(const std::vector<Piece>& pieces, int64_t outputs, const Tensor& y0) {
  const bool whole =
      std::all_of(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.rows.defined(); });
  if (whole) {
    std::vector<Tensor> ys(outputs);
    for (const Piece& piece : pieces) ys[piece.index] = piece.y;
    for (Tensor& y : ys) {
      if (!y.defined()) y = at::full_like(y0, std::nan(""));
    }
    return at::stack(ys, 0);
  }
  // index of each (output, sample) in the list of rows; missing ones point to a row of NaN
  const int64_t samples = y0.size(0);
  std::vector<Tensor> rows;
  std::vector<int64_t> index_of(outputs * samples, -1);
  int64_t next = 0;
  for (const Piece& piece : pieces) {
    const Tensor which = piece.rows.defined() ? piece.rows : at::arange(samples, at::kLong);
    for (int64_t i = 0; i < which.size(0); ++i)
      index_of[piece.index * samples + which.data_ptr<int64_t>()[i]] = next++;
    rows.push_back(piece.y);
  }
  rows.push_back(at::full_like(y0.slice(0, 0, 1), std::nan("")));
  for (int64_t& p : index_of) p = p < 0 ? next : p;
  std::vector<int64_t> shape = y0.sizes().vec();
  shape.insert(shape.begin(), outputs);
  return select_rows(at::cat(rows, 0), at::tensor(index_of, at::kLong)).view(shape);
}

}  // namespace fastweights

#include "model/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace fastweights {
namespace {

using Lists = std::vector<std::vector<double>>;  // of each sample

Lists lists_of(const RaggedTimes& ragged) {
  const Tensor times = ragged.times.detach().contiguous();
  const double* t = times.data_ptr<double>();
  const int64_t* o = ragged.offsets.data_ptr<int64_t>();
  Lists lists;
  for (int64_t b = 0; b + 1 < ragged.offsets.size(0); ++b) lists.emplace_back(t + o[b], t + o[b + 1]);
  return lists;
}

// [N, B]; shorter lists repeat their last entry
Tensor columns(const Lists& lists) {
  size_t longest = 0;
  for (const auto& list : lists) longest = std::max(longest, list.size());
  Tensor result = at::empty({static_cast<int64_t>(longest), static_cast<int64_t>(lists.size())}, at::kDouble);
  double* out = result.data_ptr<double>();
  for (size_t n = 0; n < longest; ++n) {
    for (const auto& list : lists) *out++ = list[std::min(n, list.size() - 1)];
  }
  return result;
}

bool all_equal(const Lists& lists) {
  return std::all_of(lists.begin(), lists.end(), [&](const auto& list) { return list == lists[0]; });
}

bool strictly_rising(const std::vector<double>& list) {
  return std::adjacent_find(list.begin(), list.end(), std::greater_equal<>()) == list.end();
}

// start, start + size, ... before the last output
std::vector<double> regular_points(double start, double last, double size) {
  FW_CHECK((last - start) / size <= 1e8, "[model] a step size of ", size, " means ", (last - start) / size,
           " steps; take larger ones");
  std::vector<double> points;
  for (int64_t k = 1; start + static_cast<double>(k) * size < last; ++k) {
    points.push_back(start + static_cast<double>(k) * size);
  }
  return points;
}

// grid of one sample: its start, the given points up to its last output, all outputs; long steps cut
std::vector<double> sample_grid(const std::vector<double>& ts, const std::vector<double>& points,
                                double rounding, const ObservationSteps& between) {
  std::vector<double> merged = ts;
  for (double point : points) {
    if (point <= ts.front() || point >= ts.back()) continue;
    // a point that differs from an output by rounding alone is that output
    const auto above = std::lower_bound(ts.begin(), ts.end(), point);
    if (*above - point <= rounding || point - *(above - 1) <= rounding) continue;
    merged.push_back(point);
  }
  std::sort(merged.begin(), merged.end());
  merged.erase(std::unique(merged.begin(), merged.end()), merged.end());
  // no time at all is a step, too
  if (merged.size() == 1) merged.push_back(merged[0]);
  const auto parts = static_cast<double>(std::max<int64_t>(between.parts, 1));
  const double max_step = between.max_step;
  if (max_step == 0 && parts == 1) return merged;
  std::vector<double> grid = {merged.front()};
  for (size_t n = 1; n < merged.size(); ++n) {
    const double from = merged[n - 1], length = merged[n] - from;
    const double cuts = max_step == 0 ? parts : std::max(parts, std::ceil(length / max_step * (1 - 1e-12)));
    FW_CHECK(cuts <= 1e8, "[model] solver.max_step ", max_step, " means ", cuts, " steps");
    for (double i = 1; i < cuts; ++i) grid.push_back(from + length * i / cuts);
    grid.push_back(merged[n]);
  }
  return grid;
}

Steps adaptive_steps(AdaptiveSteps steps, Gradient gradient, const Signal& signal, const Lists& ts) {
  const bool joint = steps.control == ErrorControl::Joint;
  if (signal.jumps()) {
    const Tensor knots = columns(lists_of(signal.knots()));
    steps.jump_times = joint ? knots.reshape({-1}) : knots;
  }
  if (!joint && gradient != Gradient::Adjoint) steps.stop_times = columns(ts);
  return steps;
}

// one list of times for the whole batch, and where each sample's outputs are in it
struct SharedTimes {
  std::vector<double> ts;
  std::vector<int64_t> rows, last;
};

SharedTimes share(const Lists& ts, double end) {
  SharedTimes shared;
  for (const auto& list : ts) shared.ts.insert(shared.ts.end(), list.begin(), list.end());
  shared.ts.push_back(end);
  std::sort(shared.ts.begin(), shared.ts.end());
  shared.ts.erase(std::unique(shared.ts.begin(), shared.ts.end()), shared.ts.end());
  const auto index_of = [&](double t) {
    return std::lower_bound(shared.ts.begin(), shared.ts.end(), t) - shared.ts.begin();
  };
  for (const auto& list : ts) {
    for (size_t j = 1; j < list.size(); ++j) shared.rows.push_back(index_of(list[j]));
    shared.last.push_back(index_of(list.back()));
  }
  return shared;
}

double smallest_gap(const Signal& signal) {
  const Lists knots = lists_of(signal.knots());
  double gap = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < knots[0].size(); ++i) gap = std::min(gap, knots[0][i] - knots[0][i - 1]);
  return gap;
}

bool is_constant(const Tensor& x) { return (x == x[0]).all().item<bool>(); }

// as published: one grid for the whole batch
Schedule shared_schedule(const SharedOptions& config, const Signal& signal, const Lists& ts,
                         Schedule schedule) {
  const SolverConfig& s = config.solver;
  const auto* grid = std::get_if<FixedSteps>(&s.steps);
  for (size_t b = 0; b < ts.size(); ++b) {
    FW_CHECK(ts[b][0] == ts[0][0], "[model] ",
             grid ? "solver.steps shared_grid" : "solver.error_control joint",
             " needs samples that begin together, but sample ", b, " begins at ", ts[b][0],
             " and sample 0 at ", ts[0][0]);
  }
  FW_CHECK(!grid || is_constant(signal.end()),
           "[model] solver.steps shared_grid needs samples whose signals end together");
  const SharedTimes shared = share(ts, signal.end().max().item<double>());
  schedule.ts = at::tensor(shared.ts, at::kDouble);
  schedule.time_index = at::tensor(shared.rows, at::kLong);
  schedule.last_index = at::tensor(shared.last, at::kLong);
  if (grid) {
    FixedSteps steps = *grid;
    if (steps.size == 0) steps.size = smallest_gap(signal);
    schedule.steps = steps;
  } else {
    schedule.steps = adaptive_steps(std::get<AdaptiveSteps>(s.steps), s.gradient, signal, ts);
  }
  return schedule;
}

}  // namespace

Schedule make_schedule(const SharedOptions& config, const Signal& signal, const Tensor& start,
                       const RaggedTimes& outputs) {
  const SolverConfig& s = config.solver;
  const int64_t samples = start.size(0);
  Lists ts = lists_of(outputs);
  for (int64_t b = 0; b < samples; ++b) ts[b].insert(ts[b].begin(), start[b].item<double>());

  Schedule schedule;
  const Tensor counts = outputs.offsets.slice(0, 1) - outputs.offsets.slice(0, 0, -1);
  schedule.sample_index = at::arange(samples, at::kLong).repeat_interleave(counts);
  const auto* adaptive = std::get_if<AdaptiveSteps>(&s.steps);
  const bool joint = adaptive && adaptive->control == ErrorControl::Joint;
  if (std::holds_alternative<FixedSteps>(s.steps) || joint)
    return shared_schedule(config, signal, ts, schedule);

  // row 0 is the start, row j + 1 the output j of each sample
  schedule.time_index = at::arange(outputs.times.size(0), at::kLong) -
                        outputs.offsets.slice(0, 0, -1).repeat_interleave(counts) + 1;
  schedule.last_index = counts.clone();
  schedule.ts = columns(ts);
  if (adaptive) {
    schedule.steps = adaptive_steps(*adaptive, s.gradient, signal, ts);
    return schedule;
  }
  const auto* regular = std::get_if<RegularSteps>(&s.steps);
  const ObservationSteps between =
      regular ? ObservationSteps{.parts = 1, .edges = regular->edges} : std::get<ObservationSteps>(s.steps);
  const Lists knots = lists_of(signal.knots());
  Lists grids;
  for (int64_t b = 0; b < samples; ++b) {
    const std::vector<double> points =
        regular ? regular_points(ts[b].front(), ts[b].back(), regular->size) : knots[b];
    grids.push_back(sample_grid(ts[b], points, regular ? 1e-9 * regular->size : 0, between));
  }
  // one list of times is faster where all samples have the same; it differs in the last bits
  if (!config.deterministic && all_equal(ts) && all_equal(grids) && strictly_rising(ts[0]) &&
      strictly_rising(grids[0])) {
    schedule.ts = at::tensor(ts[0], at::kDouble);
    schedule.steps = GivenSteps{at::tensor(grids[0], at::kDouble), between.edges};
  } else {
    schedule.steps = GivenSteps{columns(grids), between.edges};
  }
  return schedule;
}

}  // namespace fastweights

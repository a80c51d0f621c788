#include "model/step_rows.h"

#include <algorithm>

namespace fastweights {
namespace {

struct StepTimes {
  Tensor stages;  // [n, S]
  Tensor dt;      // [n]
};

Span span_of(const Plan& plan, Time t0, Time t1) {
  return {.t0 = std::move(t0),
          .t1 = std::move(t1),
          .first_inside = plan.first_inside,
          .last_inside = plan.last_inside,
          .shortening = plan.shortening,
          .stage_times = plan.stage_times};
}

// many steps at once; in single precision one by one
StepTimes step_times(const Plan& plan, const Tableau& tableau, const Tensor& t0, const Tensor& t1) {
  const int64_t count = t0.size(0), stages = tableau.stages();
  if (plan.stage_times == StageTimes::Double) {
    const StageTable table = stage_table(tableau, span_of(plan, Time(t0), Time(t1)));
    std::vector<Tensor> times;
    for (const Time& time : table.times) times.push_back(time.tensor());
    return {at::stack(times, 1), table.length.tensor()};
  }
  StepTimes result = {at::empty({count, stages}, at::kDouble), at::empty({count}, at::kDouble)};
  const double *from = t0.data_ptr<double>(), *to = t1.data_ptr<double>();
  for (int64_t n = 0; n < count; ++n) {
    const StageTable table = stage_table(tableau, span_of(plan, from[n], to[n]));
    result.dt.data_ptr<double>()[n] = table.length.value();
    for (int64_t i = 0; i < stages; ++i)
      result.stages.data_ptr<double>()[n * stages + i] = table.times[i].value();
  }
  return result;
}

}  // namespace

StepRows step_rows(const Plan& plan, const Tableau& tableau, int64_t samples) {
  const Tensor grid = plan.grid.detach().contiguous();
  const int64_t steps = grid.size(0) - 1;
  StepRows rows;
  if (!plan.per_sample()) {
    const StepTimes once =
        step_times(plan, tableau, grid.slice(0, 0, steps).contiguous(), grid.slice(0, 1).contiguous());
    rows.offsets = at::arange(samples + 1, at::kLong) * steps;
    rows.times = once.stages.repeat({samples, 1});
    rows.dt = once.dt.repeat({samples});
    rows.longest = steps;
    return rows;
  }
  // a sample that has arrived repeats its last time
  const double* g = grid.data_ptr<double>();
  std::vector<int64_t> offsets = {0};
  std::vector<double> t0, t1;
  for (int64_t b = 0; b < samples; ++b) {
    int64_t own = steps;
    while (own > 0 && g[own * samples + b] == g[(own - 1) * samples + b]) --own;
    for (int64_t n = 0; n < own; ++n) {
      t0.push_back(g[n * samples + b]);
      t1.push_back(g[(n + 1) * samples + b]);
    }
    offsets.push_back(offsets.back() + own);
    rows.longest = std::max(rows.longest, own);
  }
  const StepTimes all = step_times(plan, tableau, at::tensor(t0, at::kDouble), at::tensor(t1, at::kDouble));
  rows.offsets = at::tensor(offsets, at::kLong);
  rows.times = all.stages;
  rows.dt = all.dt;
  return rows;
}

std::vector<StepPosition> output_positions(const Plan& plan, int64_t samples) {
  const int64_t outputs = plan.ts.size(0);
  std::vector<StepPosition> positions(outputs * samples);
  const Tensor grid = plan.grid.detach().contiguous(), ts = plan.ts.detach().contiguous();
  const double *g = grid.data_ptr<double>(), *t = ts.data_ptr<double>();
  const bool own = plan.per_sample();
  const auto set = [&](const PlannedOutput& output, int64_t n, int64_t b) {
    StepPosition& position = positions[output.index * samples + b];
    if (output.at_end) {
      position = {n + 1, 0};
      return;
    }
    const double t0 = own ? g[n * samples + b] : g[n], t1 = own ? g[(n + 1) * samples + b] : g[n + 1];
    const double now = ts.dim() == 2 ? t[output.index * samples + b] : t[output.index];
    position = {n, (now - t0) / (t1 - t0)};
  };
  // outputs before any step stay at the start
  for (size_t n = 0; n < plan.steps.size(); ++n) {
    for (const PlannedOutput& output : plan.steps[n].outputs) {
      const int64_t rows = output.rows.defined() ? output.rows.size(0) : samples;
      const int64_t* row = output.rows.defined() ? output.rows.data_ptr<int64_t>() : nullptr;
      for (int64_t i = 0; i < rows; ++i) set(output, static_cast<int64_t>(n), row ? row[i] : i);
    }
  }
  return positions;
}

}  // namespace fastweights

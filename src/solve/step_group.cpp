#include "solve/step_group.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fastweights {
namespace {

// the first of some sorted times after t, or infinity
double next_after(const std::vector<double>& times, double t) {
  const auto found = std::upper_bound(times.begin(), times.end(), t);
  return found == times.end() ? std::numeric_limits<double>::infinity() : *found;
}

}  // namespace

Attempt next_attempt(const StepGroup& group) {
  if (group.done()) return {.t1 = group.t, .dt = 0};
  Attempt result = {.t1 = group.t + group.dt, .dt = group.dt};
  // a step that would end at a jump anyway is at the jump, too
  const double jump = next_after(group.jumps, group.t);
  const double border = std::min(jump, next_after(group.stops, group.t));
  if (border < result.t1) result = {.t1 = border, .dt = border - group.t};
  result.on_jump = result.t1 == jump;
  return result;
}

std::vector<double> column(const Tensor& times, int64_t sample) {
  const Tensor t = (times.dim() == 2 ? times.select(1, sample) : times).detach().cpu().contiguous();
  return {t.data_ptr<double>(), t.data_ptr<double>() + t.numel()};
}

std::vector<double> sorted_column(const Tensor& times, int64_t sample) {
  if (!times.defined()) return {};
  std::vector<double> result = column(times, sample);
  std::erase_if(result, [](double t) { return std::isnan(t); });
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace fastweights

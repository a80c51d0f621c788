#include "model/config_fields.h"

#include <algorithm>
#include <limits>

namespace fastweights {
namespace {

constexpr const char* kAutomatic = "auto";

void visit_points(PointWindows& windows, Fields& visit) {
  visit("window_increments", windows.increments);
  visit("window_tail", windows.tail);
}

}  // namespace

// a duration of 0 means windows of points
void visit_fields(LogSignatures& c, Fields& visit) {
  visit("depth", c.depth);
  const auto* timed = std::get_if<DurationWindows>(&c.windows);
  double duration = timed ? timed->duration : 0;
  visit("window_duration", duration);
  if (duration != 0) {
    c.windows = DurationWindows{duration};
    visit.not_chosen("window_duration", "0", [](Fields& fields) {
      PointWindows points;
      visit_points(points, fields);
    });
  } else {
    if (timed) c.windows = LogSignatures{}.windows;
    visit_points(std::get<PointWindows>(c.windows), visit);
  }
  visit("clock", c.clock);
  visit("last_window", c.last_window);
}

// a largest step of 0 means no limit
void visit_fields(AdaptiveSteps& c, Fields& visit) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  visit("rtol", c.rtol);
  visit("atol", c.atol);
  double max_step = c.largest_step == kNoLimit ? 0 : c.largest_step;
  visit("max_step", max_step);
  c.largest_step = max_step == 0 ? kNoLimit : max_step;
  visit("first_step", c.first_step);
  visit("smallest_step", c.smallest_step);
  visit("max_steps", c.max_steps);
  visit("error_control", c.control);
  visit("first_step_gradient", c.first_step_gradient);
}

void visit_fields(ControlConfig& c, Fields& visit) {
  visit("kind", c.path);
  visit("never_observed", c.never_observed);
}

void visit_fields(SolverConfig& c, Fields& visit) {
  std::vector<std::string> names = {kAutomatic};
  for (const std::string& name : method_names()) names.push_back(name);
  names.push_back("exact_flow");  // of older files
  const std::string before = c.method ? method_name(*c.method) : kAutomatic;
  auto index = static_cast<size_t>(std::find(names.begin(), names.end(), before) - names.begin());
  if (index == names.size()) names.push_back(before);
  visit.choice("method", names, index);
  if (names[index] != before) c.method = index == 0 ? std::optional<Method>() : method(names[index]);
  visit("steps", c.steps);
  visit("gradient", c.gradient);
  visit("memory_limit", c.memory_limit);
}

}  // namespace fastweights

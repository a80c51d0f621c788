#include "model/config_checks.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "fastweights/logsignature.h"
#include "model/config_names.h"

namespace fastweights {

void check_at_least(const char* key, int64_t value, int64_t smallest) {
  FW_CHECK(value >= smallest, "[config] ", key, " must be at least ", smallest, ", got ", value);
  // far above anything that fits in memory, far below what overflows when sizes are multiplied
  FW_CHECK(value <= 100'000'000, "[config] ", key, " must be at most 100000000, got ", value);
}

void check_positive(const char* key, double value) {
  FW_CHECK(value > 0 && std::isfinite(value), "[config] ", key, " must be positive, got ", value);
}

void check_rate(const char* key, double value) {
  FW_CHECK(value >= 0 && value < 1, "[config] ", key, " must be at least 0 and below 1, got ", value);
}

void check_count(double count, const char* what) {
  constexpr double kMost = 1e9;  // gigabytes
  FW_CHECK(count <= kMost, "[config] these sizes mean about ", count, " ", what, "; the limit is ", kMost,
           "; check hidden_size, channels and depth");
}

int64_t signal_size(int64_t channels, const ControlConfig& control) {
  if (control.kind != ControlKind::LogSignature) return channels;
  return logsignature_size(channels, {.depth = control.depth});
}

namespace {

// coefficients per window that a slow net can still read
constexpr int64_t kLargestSignal = 1'000'000;

// An option that was changed and would not be read. solver.edges and solver.error_control may be set for
// another solver.steps, as in the published models.
struct Unread {
  const char* key;
  bool asked, read;
  const char* needs;
};

std::vector<Unread> unread_choices(const ControlConfig& c) {
  const ControlConfig d;
  const bool windows = c.kind == ControlKind::LogSignature, points = c.window_duration == 0;
  const char* signature = "control.kind log_signature";
  const char* by_points = "windows of points, so control.window_duration 0";
  return {{"control.end_filling", c.end_filling != d.end_filling, c.kind == ControlKind::NaturalCubic,
           "control.kind natural_cubic"},
          {"control.time_channel", c.time_channel != d.time_channel, c.kind == ControlKind::Rectilinear,
           "control.kind rectilinear"},
          {"control.depth", c.depth != d.depth, windows, signature},
          {"control.window_increments", c.window_increments != d.window_increments, windows, signature},
          {"control.window_duration", c.window_duration != d.window_duration, windows, signature},
          {"control.window_tail", c.window_tail != d.window_tail, windows, signature},
          {"control.clock", c.clock != d.clock, windows, signature},
          {"control.last_window", c.last_window != d.last_window, windows, signature},
          {"control.window_increments", c.window_increments != d.window_increments, points, by_points},
          {"control.window_tail", c.window_tail != d.window_tail, points, by_points}};
}

std::vector<Unread> unread_choices(const SolverConfig& c) {
  const SolverConfig d;
  const bool adaptive = c.steps == StepRule::Adaptive;
  const bool regular = c.steps == StepRule::Fixed || c.steps == StepRule::SharedGrid;
  const bool through = adaptive && c.error_control == ErrorControl::Joint && c.gradient == Gradient::Exact;
  return {{"solver.step_size", c.step_size != d.step_size, regular, "solver.steps fixed or shared_grid"},
          {"solver.max_step", c.max_step != d.max_step, !regular, "solver.steps observations or adaptive"},
          {"solver.rtol", c.rtol != d.rtol, adaptive, "solver.steps adaptive"},
          {"solver.atol", c.atol != d.atol, adaptive, "solver.steps adaptive"},
          {"solver.shortening", c.shortening != d.shortening, c.edges == StageEdges::Shortened,
           "solver.edges shortened"},
          {"solver.first_step_gradient", c.first_step_gradient != d.first_step_gradient, through,
           "solver.steps adaptive, error_control joint and gradient exact"},
          {"solver.memory_limit", c.memory_limit != d.memory_limit,
           c.gradient == Gradient::Checkpointed || (c.gradient == Gradient::Exact && !adaptive),
           "solver.gradient checkpointed, or exact without adaptive steps"}};
}

template <typename Config>
void check_unread(const Config& config) {
  for (const Unread& choice : unread_choices(config)) {
    FW_CHECK(!choice.asked || choice.read, "[config] ", choice.key, " would not be used here; it needs ",
             choice.needs);
  }
}

void check_control(const SharedOptions& c) {
  const ControlConfig& control = c.control;
  check_at_least("control.time_channel", control.time_channel, 0);
  FW_CHECK(control.kind != ControlKind::Rectilinear || control.time_channel < c.channels,
           "[config] control.time_channel must be below channels ", c.channels, ", got ",
           control.time_channel);
  FW_CHECK(control.window_duration >= 0 && std::isfinite(control.window_duration),
           "[config] control.window_duration must be positive, or 0 for windows of points, got ",
           control.window_duration);
  check_at_least("control.window_increments", control.window_increments, 1);
  check_at_least("control.depth", control.depth, 1);
  int64_t size = 0;
  try {
    size = signal_size(c.channels, control);
  } catch (const std::invalid_argument& error) {
    FW_CHECK(false, "[config] control.depth ", control.depth, " is too much for channels ", c.channels, ": ",
             error.what());
  }
  FW_CHECK(control.kind != ControlKind::LogSignature || size <= kLargestSignal, "[config] control.depth ",
           control.depth, " makes log-signatures of ", size, " coefficients from channels ", c.channels,
           "; the limit is ", kLargestSignal, "; choose a smaller depth");
  check_unread(control);
}

void check_method(const SolverConfig& s) {
  std::vector<std::string> known = {"explicit_adams", "implicit_adams", kExactFlow};
  for (const Tableau& method : all_tableaux()) known.push_back(method.name);
  FW_CHECK(std::find(known.begin(), known.end(), s.method) != known.end(),
           "[config] solver.method cannot be '", s.method, "'; the nearest is '", nearest(s.method, known),
           "'");
  if (s.method == kExactFlow) return;
  const Method chosen = method(s.method);
  const Tableau* tableau = std::get_if<Tableau>(&chosen);
  FW_CHECK(s.steps != StepRule::Adaptive || (tableau && tableau->adaptive()), "[config] solver.method ",
           s.method, " has no error estimate, which solver.steps adaptive needs; take dopri5");
  // steps fixed end at outputs, too, and are no longer equal there
  const bool equal = s.steps == StepRule::SharedGrid;
  FW_CHECK(tableau || equal, "[config] solver.method ", s.method, " needs equal steps, not solver.steps ",
           name_of(s.steps), "; take shared_grid, or a Runge-Kutta method");
}

}  // namespace

void check_shared(const SharedOptions& c) {
  check_at_least("channels", c.channels, 1);
  check_at_least("static_features", c.static_features, 0);
  check_at_least("outputs", c.outputs, 1);
  check_at_least("hidden_size", c.hidden_size, 1);
  check_at_least("static_hidden_size", c.static_hidden_size, 1);
  check_rate("dropout", c.dropout);
  check_positive("time_unit", c.time_unit);
  check_control(c);
}

void check_solver(const SolverConfig& s, const ControlConfig& control) {
  check_method(s);
  const bool shared = s.steps == StepRule::SharedGrid;
  FW_CHECK(s.step_size >= 0 && std::isfinite(s.step_size),
           "[config] solver.step_size must not be negative, got ", s.step_size);
  FW_CHECK(s.steps != StepRule::Fixed || s.step_size > 0,
           "[config] solver.steps fixed needs solver.step_size above 0");
  check_positive("solver.rtol", s.rtol);
  check_positive("solver.atol", s.atol);
  FW_CHECK(s.max_step >= 0 && std::isfinite(s.max_step),
           "[config] solver.max_step must be positive, or 0 for no limit, got ", s.max_step);
  FW_CHECK(s.memory_limit >= 0, "[config] solver.memory_limit must not be negative, got ", s.memory_limit);
  FW_CHECK(s.shortening >= 0 && std::isfinite(s.shortening),
           "[config] solver.shortening must not be negative, got ", s.shortening);
  FW_CHECK(shared || s.edges != StageEdges::Shortened,
           "[config] solver.edges shortened needs solver.steps shared_grid, not ", name_of(s.steps));
  FW_CHECK(shared || s.stage_times == StageTimes::Double,
           "[config] solver.stage_times single needs solver.steps shared_grid, not ", name_of(s.steps));
  const bool path = control.kind != ControlKind::LogSignature && control.kind != ControlKind::Rectilinear;
  FW_CHECK(!shared || path || s.step_size > 0, "[config] solver.steps shared_grid with control.kind ",
           name_of(control.kind), " needs a solver.step_size: the smallest gap is that of observations");
  check_unread(s);
}

void check_plain_method(const SolverConfig& solver) {
  FW_CHECK(solver.method != kExactFlow, "[config] solver.method exact_flow needs architecture fast_weights");
}

void check_field(int64_t hidden_size, int64_t layers) {
  check_at_least("field.hidden_size", hidden_size, 1);
  check_at_least("field.layers", layers, 0);
  FW_CHECK(layers <= 1000, "[config] field.layers must be at most 1000, got ", layers);
}

}  // namespace fastweights

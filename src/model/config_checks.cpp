#include "model/config_checks.h"

#include <algorithm>
#include <cmath>

#include "base/available_memory.h"
#include "base/error.h"
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

void check_layers(const char* key, int64_t layers, int64_t smallest) {
  constexpr int64_t kMost = 1000;
  check_at_least(key, layers, smallest);
  FW_CHECK(layers <= kMost, "[config] ", key, " must be at most ", kMost, ", got ", layers);
}

void check_count(double count, const char* what, const std::vector<SizeKey>& keys) {
  constexpr double kMost = 1e9;  // gigabytes
  constexpr double kBytes = sizeof(float);
  const auto memory = static_cast<double>(available_memory());
  if (count <= kMost && count * kBytes <= memory) return;
  const auto largest = std::max_element(
      keys.begin(), keys.end(), [](const SizeKey& a, const SizeKey& b) { return a.second < b.second; });
  FW_CHECK(false, "[config] these sizes need about ", count, " ", what, ", ", shown_bytes(count * kBytes),
           "; ",
           count > kMost ? message("the limit is ", kMost)
                         : message(shown_bytes(memory), " of memory are available"),
           "; reduce ", largest->first, ", which is ", largest->second);
}

std::vector<SizeKey> size_keys(const SharedOptions& c, const std::vector<SizeKey>& more) {
  std::vector<SizeKey> keys = {{"hidden_size", c.hidden_size},
                               {"channels", c.channels},
                               {"outputs", c.outputs},
                               {"static_features", c.static_features}};
  if (c.static_features > 0) keys.emplace_back("static_hidden_size", c.static_hidden_size);
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

int64_t signal_size(int64_t channels, const ControlConfig& control) {
  const auto* windows = std::get_if<LogSignatures>(&control.path);
  return windows ? logsignature_size(channels, {.depth = windows->depth}) : channels;
}

namespace {

// coefficients per window that a slow net can still read
constexpr int64_t kLargestSignal = 1'000'000;

void check_windows(const LogSignatures& c, int64_t channels) {
  if (const auto* timed = std::get_if<DurationWindows>(&c.windows)) {
    FW_CHECK(timed->duration > 0 && std::isfinite(timed->duration),
             "[config] control.window_duration must be positive, or 0 for windows of points, got ",
             timed->duration);
  } else {
    check_at_least("control.window_increments", std::get<PointWindows>(c.windows).increments, 1);
  }
  check_at_least("control.depth", c.depth, 1);
  int64_t size = 0;
  try {
    size = logsignature_size(channels, {.depth = c.depth});
  } catch (const std::invalid_argument& error) {
    FW_CHECK(false, "[config] control.depth ", c.depth, " is too large for channels ", channels, ": ",
             error.what());
  }
  FW_CHECK(size <= kLargestSignal, "[config] control.depth ", c.depth, " makes log-signatures of ", size,
           " coefficients from channels ", channels, "; the limit is ", kLargestSignal,
           "; choose a smaller depth");
}

void check_control(const ControlConfig& control, int64_t channels) {
  if (const auto* windows = std::get_if<LogSignatures>(&control.path)) check_windows(*windows, channels);
  if (const auto* path = std::get_if<Rectilinear>(&control.path)) {
    check_at_least("control.time_channel", path->time_channel, 0);
    FW_CHECK(path->time_channel < channels, "[config] control.time_channel must be below channels ", channels,
             ", got ", path->time_channel);
  }
}

void check_method(const SolverConfig& s) {
  const Method chosen = method_of(s);
  const std::string name = method_name(chosen);
  const std::vector<std::string> known = method_names();
  FW_CHECK(std::find(known.begin(), known.end(), name) != known.end() && method(name) == chosen,
           "[config] solver.method '", name,
           "' is not a method of the library, and a file could not name it");
  if (std::holds_alternative<Flow>(chosen)) return;
  const Tableau* tableau = std::get_if<Tableau>(&chosen);
  FW_CHECK(!std::holds_alternative<AdaptiveSteps>(s.steps) || (tableau && tableau->adaptive()),
           "[config] solver.method ", name,
           " has no error estimate, which solver.steps adaptive needs; take dopri5");
  // steps fixed end at outputs, too, and are no longer equal there
  FW_CHECK(tableau || std::holds_alternative<FixedSteps>(s.steps), "[config] solver.method ", name,
           " needs equal steps, not solver.steps ", name_of(s.steps),
           "; take shared_grid, or a Runge-Kutta method");
}

void check_edges(StageEdges edges, const ModelSteps& steps) {
  FW_CHECK(edges != StageEdges::Shortened,
           "[config] solver.edges shortened needs solver.steps shared_grid, not ", name_of(steps));
}

void check_size(double size) {
  FW_CHECK(size >= 0 && std::isfinite(size), "[config] solver.step_size must not be negative, got ", size);
}

void check_steps(const ObservationSteps& c, const SolverConfig& solver, const ControlConfig&) {
  FW_CHECK(c.parts >= 0 && c.parts <= 1'000'000,
           "[config] solver.parts must be positive, or 0 for an automatic number, got ", c.parts);
  FW_CHECK(c.max_step >= 0 && std::isfinite(c.max_step),
           "[config] solver.max_step must be positive, or 0 for no limit, got ", c.max_step);
  check_edges(c.edges, solver.steps);
}

void check_steps(const RegularSteps& c, const SolverConfig& solver, const ControlConfig&) {
  check_size(c.size);
  FW_CHECK(c.size > 0, "[config] solver.steps fixed needs solver.step_size above 0");
  check_edges(c.edges, solver.steps);
}

void check_steps(const FixedSteps& c, const SolverConfig&, const ControlConfig& control) {
  check_size(c.size);
  FW_CHECK(c.shortening >= 0 && std::isfinite(c.shortening),
           "[config] solver.shortening must not be negative, got ", c.shortening);
  FW_CHECK(c.shortening == FixedSteps{}.shortening || c.edges == StageEdges::Shortened,
           "[config] solver.shortening would not be used here; it needs solver.edges shortened");
  const bool own_clock = std::holds_alternative<LogSignatures>(control.path) ||
                         std::holds_alternative<Rectilinear>(control.path);
  FW_CHECK(!own_clock || c.size > 0, "[config] solver.steps shared_grid with control.kind ",
           name_of(control.path), " needs a solver.step_size: the smallest gap is that of observations");
}

void check_steps(const AdaptiveSteps& c, const SolverConfig& solver, const ControlConfig&) {
  check_positive("solver.rtol", c.rtol);
  check_positive("solver.atol", c.atol);
  FW_CHECK(c.largest_step > 0, "[config] solver.max_step must be positive, or 0 for no limit, got ",
           c.largest_step);
  FW_CHECK(c.first_step >= 0 && std::isfinite(c.first_step),
           "[config] solver.first_step must be positive, or 0 for an automatic one, got ", c.first_step);
  FW_CHECK(c.smallest_step >= 0 && c.smallest_step <= c.largest_step && std::isfinite(c.smallest_step),
           "[config] solver.smallest_step must be 0 to solver.max_step, got ", c.smallest_step);
  FW_CHECK(c.max_steps > 0, "[config] solver.max_steps must be positive, got ", c.max_steps);
  FW_CHECK(!c.stop_times.defined() && !c.jump_times.defined(),
           "[config] stop_times and jump_times of adaptive steps are set by the model; leave them empty");
  const bool exact = c.control == ErrorControl::Joint && solver.gradient == Gradient::Exact;
  FW_CHECK(c.first_step_gradient == FirstStepGradient::None || exact,
           "[config] solver.first_step_gradient would not be used here; it needs solver.error_control joint "
           "and solver.gradient exact");
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
  check_control(c.control, c.channels);
}

void check_solver(const SolverConfig& s, const ControlConfig& control) {
  check_method(s);
  std::visit([&](const auto& steps) { check_steps(steps, s, control); }, s.steps);
  FW_CHECK(s.memory_limit >= 0, "[config] solver.memory_limit must not be negative, got ", s.memory_limit);
  const bool adaptive = std::holds_alternative<AdaptiveSteps>(s.steps);
  FW_CHECK(s.memory_limit == 0 || s.gradient == Gradient::Checkpointed ||
               (s.gradient == Gradient::Exact && !adaptive),
           "[config] solver.memory_limit would not be used here; it needs solver.gradient checkpointed, or "
           "exact without adaptive steps");
}

void check_plain_method(const SolverConfig& solver) {
  FW_CHECK(!std::holds_alternative<Flow>(method_of(solver)),
           "[config] solver.method flow needs architecture fast_weights");
}

void check_field(int64_t hidden_size, int64_t layers) {
  check_at_least("field.hidden_size", hidden_size, 1);
  check_layers("field.layers", layers, 0);
}

}  // namespace fastweights

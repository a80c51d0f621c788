#include "fastweights/solve.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "solve/adaptive.h"
#include "solve/adjoint.h"
#include "solve/checkpoint.h"
#include "solve/plan.h"
#include "solve/solver.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

enum class Direction { Rising, Falling };

// checks the output times and says which way they run
Direction check_times(const Tensor& ts, const Tensor& y0) {
  FW_CHECK(ts.defined() && (ts.dim() == 1 || ts.dim() == 2) && ts.scalar_type() == at::kDouble &&
               ts.device().is_cpu() && ts.size(0) >= 1,
           "[solve] ts must be a float64 tensor [T] or [T, B] on the CPU with at least one time");
  const int64_t outputs = ts.size(0), samples = ts.dim() == 2 ? ts.size(1) : 1;
  FW_CHECK(ts.dim() == 1 || (y0.dim() >= 1 && y0.size(0) == samples), "[solve] ts has times for ", samples,
           " samples, y0 is ", y0.sizes());
  const Tensor values = ts.detach().contiguous();
  const double* t = values.data_ptr<double>();
  int sign = 0;
  for (int64_t b = 0; b < samples; ++b) {
    const std::string who = ts.dim() == 2 ? message("sample ", b, ": ") : "";
    for (int64_t j = 0; j < outputs; ++j) {
      const double now = t[j * samples + b];
      FW_CHECK(std::isfinite(now), "[solve] ", who, "output time ", j, " is ", now, ", it must be finite");
      if (j == 0) continue;
      const double before = t[(j - 1) * samples + b];
      const int step = now > before ? 1 : now < before ? -1 : 0;
      if (sign == 0) sign = step;
      const bool waits = ts.dim() == 2 && step == 0;
      FW_CHECK(waits || (step != 0 && step == sign), "[solve] ", who, "output times must all ",
               sign < 0 ? "fall" : "rise", ", but time ", j, " is ", now, " after ", before);
    }
  }
  return sign < 0 ? Direction::Falling : Direction::Rising;
}

void check_adaptive(const AdaptiveSteps& steps, const Method& method) {
  FW_CHECK(steps.rtol > 0 && std::isfinite(steps.rtol), "[solve] rtol must be positive, got ", steps.rtol);
  FW_CHECK(steps.atol > 0 && std::isfinite(steps.atol), "[solve] atol must be positive, got ", steps.atol);
  FW_CHECK(steps.first_step >= 0 && std::isfinite(steps.first_step),
           "[solve] first_step must be positive, or 0 for an automatic one, got ", steps.first_step);
  FW_CHECK(steps.smallest_step >= 0 && steps.smallest_step <= steps.largest_step && steps.largest_step > 0,
           "[solve] step sizes must lie between smallest_step ", steps.smallest_step, " and largest_step ",
           steps.largest_step);
  FW_CHECK(steps.max_steps > 0, "[solve] max_steps must be positive, got ", steps.max_steps);
  const Tableau* tableau = std::get_if<Tableau>(&method);
  std::string possible;
  for (const Tableau& known : all_tableaux()) {
    if (known.adaptive()) possible += (possible.empty() ? "" : ", ") + known.name;
  }
  FW_CHECK(tableau && tableau->adaptive(), "[solve] ", tableau ? tableau->name : "an Adams method",
           " has no error estimate; adaptive steps need one of ", possible);
  for (const Tensor& times : {steps.stop_times, steps.jump_times}) {
    FW_CHECK(
        !times.defined() || (times.scalar_type() == at::kDouble && (times.dim() == 1 || times.dim() == 2)),
        "[solve] stop and jump times must be float64 [J] or [J, B]");
  }
}

void check_tableau(const Tableau& t) {
  const size_t stages = t.b.size();
  FW_CHECK(stages >= 1 && t.c.size() == stages && t.a.size() == stages, "[solve] method ", t.name, " has ",
           stages, " weights b, ", t.c.size(), " times c and ", t.a.size(), " rows a; they must be as many");
  FW_CHECK(t.b_error.empty() || t.b_error.size() == stages, "[solve] method ", t.name, " has ",
           t.b_error.size(), " weights of the error for ", stages, " stages");
  FW_CHECK(t.mid.empty() || t.mid.size() == stages, "[solve] method ", t.name, " has ", t.mid.size(),
           " weights of the middle for ", stages, " stages");
  FW_CHECK(t.b_error.empty() || t.controller_order > 0, "[solve] method ", t.name,
           " has no controller_order");
  for (size_t i = 0; i < stages; ++i) {
    FW_CHECK(t.a[i].size() == i, "[solve] method ", t.name, ": row ", i, " of a has ", t.a[i].size(),
             " entries, not ", i);
  }
}

void check_options(const SolveOptions& options, const Tensor& y0, const Tensor& ts) {
  check_method(options.method);
  if (const FixedSteps* fixed = std::get_if<FixedSteps>(&options.steps)) {
    FW_CHECK(fixed->size >= 0 && std::isfinite(fixed->size),
             "[solve] the step size must be positive, or 0 for one step per output interval, got ",
             fixed->size);
    FW_CHECK(fixed->shortening >= 0 && std::isfinite(fixed->shortening),
             "[solve] steps are shortened by a positive time or 0, got ", fixed->shortening);
    FW_CHECK(fixed->stage_times == StageTimes::Double || (ts.dim() == 1 && !ts.requires_grad()),
             "[solve] times in single precision must be shared by all samples and need no gradients, got ts ",
             ts.sizes(), ts.requires_grad() ? " with gradients" : "");
  }
  if (const GivenSteps* given = std::get_if<GivenSteps>(&options.steps)) {
    FW_CHECK(given->edges != StageEdges::Shortened,
             "[solve] given steps cannot be shortened; shorten FixedSteps, or look inside the given ones");
  }
  const AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&options.steps);
  if (adaptive) {
    check_adaptive(*adaptive, options.method);
    const bool joint = adaptive->control == ErrorControl::Joint;
    FW_CHECK(!joint || ts.dim() == 1, "[solve] joint error control needs times that all samples share");
    FW_CHECK(joint || y0.dim() >= 1, "[solve] error control per sample needs y0 of [B, ...], got a scalar");
    FW_CHECK(adaptive->first_step_gradient == FirstStepGradient::None ||
                 (joint && options.gradient == Gradient::Exact),
             "[solve] a gradient through the first step needs joint error control and Gradient::Exact");
    for (const Tensor& times : {adaptive->stop_times, adaptive->jump_times}) {
      if (!times.defined() || times.dim() == 1) continue;
      FW_CHECK(!joint && times.size(1) == y0.size(0),
               "[solve] stop and jump times [J, B] need error control per ",
               "sample and one column for each of the ", y0.dim() >= 1 ? y0.size(0) : 1, " samples");
    }
  }
  const OutputInterpolation interpolation = options.interpolation.value_or(OutputInterpolation::Linear);
  const Tableau* tableau = std::get_if<Tableau>(&options.method);
  FW_CHECK(interpolation != OutputInterpolation::Quartic || (tableau && !tableau->mid.empty()),
           "[solve] quartic interpolation needs a method with weights for the middle of the step; ",
           tableau ? tableau->name : "an Adams method", " has none");
  for (size_t i = 0; i < options.parameters.size(); ++i) {
    FW_CHECK(options.parameters[i].defined(), "[solve] parameter ", i, " is undefined");
  }
  FW_CHECK(options.memory_limit >= 0, "[solve] memory_limit must not be negative, got ",
           options.memory_limit);
}

Tensor negated(const Tensor& times) { return times.defined() ? -times : times; }

Steps negated(Steps steps) {
  if (GivenSteps* given = std::get_if<GivenSteps>(&steps)) given->times = negated(given->times);
  if (AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&steps)) {
    adaptive->stop_times = negated(adaptive->stop_times);
    adaptive->jump_times = negated(adaptive->jump_times);
  }
  return steps;
}

// a fixed-step solve does not check its states on the way; report afterwards where they stopped being finite
Status check_finite(const Tensor& ys, const Tensor& ts) {
  const at::NoGradGuard no_grad;
  const Tensor values = ys.detach();
  // a sum is finite only if all terms are; an overflow of the sum itself is sorted out below
  if (std::isfinite(values.sum().item<double>()) || at::isfinite(values).all().item<bool>()) return {};
  const int64_t outputs = values.size(0), samples = values.dim() > 1 ? values.size(1) : 1;
  const Tensor bad = at::isfinite(values).logical_not().reshape({outputs, samples, -1}).any(-1);
  const Tensor first = at::nonzero(bad)[0];
  const int64_t j = first[0].item<int64_t>(), b = first[1].item<int64_t>();
  const Tensor time = ts.dim() == 2 ? ts[j][b] : ts[j];
  const double size = values.reshape({outputs, samples, -1})[j][b].abs().max().item<double>();
  return {Outcome::NotFinite, b, time.item<double>(), 0, size};
}

Solution adaptive_solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options,
                        const ErrorNorm& norm) {
  const AdaptiveSteps& steps = std::get<AdaptiveSteps>(options.steps);
  const Tableau& tableau = std::get<Tableau>(options.method);
  const OutputInterpolation interpolation = options.interpolation.value_or(
      tableau.mid.empty() ? OutputInterpolation::Cubic : OutputInterpolation::Quartic);
  Evaluator counted(f);
  const bool record = at::GradMode::is_enabled();
  // jointly, only accepted steps enter the graph; per sample a try may serve one sample and fail for another,
  // so steps are searched without recording and then done again
  const bool record_search =
      record && steps.control == ErrorControl::Joint && options.gradient == Gradient::Exact;
  const bool needs_graph = y0.requires_grad() || ts.requires_grad() || needs_gradient(options.parameters);
  // whether the field itself uses something that requires a gradient shows only in its slopes
  if (record && !record_search && !needs_graph && options.gradient == Gradient::Exact)
    counted.watch_gradients();
  SearchResult search;
  {
    const at::AutoGradMode mode(record_search);
    search = adaptive_search(record_search ? ts : ts.detach(), record_search ? y0 : y0.detach(), tableau,
                             counted, steps, interpolation, norm);
  }
  Solution solution;
  solution.status = search.status;
  solution.steps = search.steps;
  solution.rejected = search.rejected;
  if (options.keep_step_log) solution.step_log = std::move(search.log);
  counted.stop_watching();
  if (record && !record_search && (needs_graph || counted.saw_gradient())) {
    Plan& plan = search.plan;
    if (ts.requires_grad()) {
      plan.grid = plan.grid + (ts[0] - ts[0].detach());
      plan.ts = ts;
    }
    if (options.gradient == Gradient::Checkpointed) {
      solution.ys = checkpointed_outputs(plan, options.method, f, counted, y0, options,
                                         assemble(search.pieces, ts.size(0), y0.detach()));
    } else {
      solution.ys = assemble(replay(plan, options.method, counted, y0), ts.size(0), y0);
    }
  } else {
    solution.ys = assemble(search.pieces, ts.size(0), y0);
  }
  solution.evaluations = counted.calls();
  return solution;
}

Solution fixed_solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options) {
  Evaluator counted(f);
  const Plan plan = fixed_plan(ts, y0, options);
  Solution solution;
  if (at::GradMode::is_enabled() && options.gradient == Gradient::Checkpointed) {
    solution.ys = checkpointed_outputs(plan, options.method, f, counted, y0, options, {});
  } else {
    solution.ys = assemble(replay(plan, options.method, counted, y0), ts.size(0), y0);
  }
  solution.steps = static_cast<int64_t>(plan.steps.size());
  solution.evaluations = counted.calls();
  solution.status = check_finite(solution.ys, ts);
  return solution;
}

}  // namespace

std::string Status::message() const {
  if (outcome == Outcome::Success) return "success";
  const std::string who = sample >= 0 ? fastweights::message("sample ", sample, " ") : "";
  const std::string where = fastweights::message(who, "at time ", time, " with a largest value of ", norm);
  if (outcome == Outcome::NotFinite) {
    return "the solution stopped being finite: " + where + "; take smaller steps or look at the field there";
  }
  if (outcome == Outcome::TooManySteps) {
    return "the limit of steps was reached: " + where + "; raise max_steps or loosen the tolerances";
  }
  return fastweights::message("the step size fell to ", step, ", too small to move time: ", where,
                              "; loosen the tolerances or name the field's jumps in jump_times");
}

void check_method(const Method& method) {
  FW_CHECK(!std::holds_alternative<Flow>(method),
           "[solve] flow needs an equation whose solution is known; take a Runge-Kutta method");
  if (const Tableau* tableau = std::get_if<Tableau>(&method)) check_tableau(*tableau);
  if (const Adams* adams = std::get_if<Adams>(&method)) {
    FW_CHECK(adams->max_order >= 4 && adams->max_order <= 12,
             "[solve] Adams methods have max_order 4 to 12, got ", adams->max_order);
    FW_CHECK(adams->max_iterations > 0, "[solve] max_iterations must be positive, got ",
             adams->max_iterations);
  }
}

Solution solve_checked(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options,
                       const ErrorNorm& norm) {
  const Tensor times = ts.contiguous();
  if (check_times(times, y0) == Direction::Falling) {
    // time runs backwards as -t runs forwards
    SolveOptions mirrored = options;
    mirrored.steps = negated(options.steps);
    const Field mirrored_field = [f](const Time& t, const Tensor& y) { return -f(-1.0 * t, y); };
    Solution solution = solve_checked(mirrored_field, y0, -times, mirrored, norm);
    for (StepRecord& record : solution.step_log) record.t0 = -record.t0;
    solution.status.time = -solution.status.time;
    return solution;
  }
  check_options(options, y0, times);
  if (std::holds_alternative<AdaptiveSteps>(options.steps))
    return adaptive_solve(f, y0, times, options, norm);
  return fixed_solve(f, y0, times, options);
}

Solution solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options) {
  FW_CHECK(f != nullptr, "[solve] the field is empty");
  FW_CHECK(y0.defined() && at::isFloatingType(y0.scalar_type()),
           "[solve] y0 must be a floating-point tensor");
  FW_CHECK(y0.numel() > 0, "[solve] y0 has no elements: ", y0.sizes());
  check_times(ts, y0);
  if (options.gradient == Gradient::Adjoint && at::GradMode::is_enabled()) {
    return adjoint_solve(f, y0.contiguous(), ts, options);
  }
  return solve_checked(f, y0.contiguous(), ts, options, {});
}

Method method(const std::string& name) {
  if (name == "explicit_adams") return Adams{.kind = AdamsKind::Explicit};
  if (name == "implicit_adams") return Adams{.kind = AdamsKind::Implicit};
  if (name == "flow" || name == "exact_flow") return Flow{};
  return tableau(name);
}

std::string method_name(const Method& method) {
  if (const auto* tableau = std::get_if<Tableau>(&method)) return tableau->name;
  const auto* adams = std::get_if<Adams>(&method);
  if (!adams) return "flow";
  return adams->kind == AdamsKind::Explicit ? "explicit_adams" : "implicit_adams";
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Tableau& tableau : all_tableaux()) names.push_back(tableau.name);
  names.insert(names.end(), {"explicit_adams", "implicit_adams", "flow"});
  return names;
}

}  // namespace fastweights

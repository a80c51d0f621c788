#include "solve/adaptive.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "fastweights/tensor.h"
#include "solve/step_group.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// the controller's constants, as torchdiffeq has them
constexpr double kSafety = 0.9, kLargestFactor = 10, kSmallestFactor = 0.2;

class Search {
 public:
  Search(const Tensor& ts, const Tensor& y0, const Tableau& tableau, Evaluator& f,
         const AdaptiveSteps& options, OutputInterpolation interpolation, const ErrorNorm& norm)
      : ts_(ts),
        y_(y0),
        method_(tableau),
        tableau_(std::get<Tableau>(method_)),
        f_(f),
        options_(options),
        interpolation_(interpolation),
        norm_(norm),
        joint_(options.control == ErrorControl::Joint) {
    if (joint_ && ts.requires_grad()) shift_ = ts[0] - ts[0].detach();
  }

  SearchResult run();

 private:
  Time moving(double t, const Tensor& shift) const { return shift.defined() ? Time(t + shift) : Time(t); }
  Time first_slope_time();
  void make_groups();
  Tensor size_of(const Tensor& scaled) const;
  Tensor first_step();
  void check_start();
  void choose_first_steps();
  void limit_step(StepGroup& group);
  bool judge(StepGroup& group, const Attempt& attempt, double ratio);
  Span span(const std::vector<Attempt>& attempts);
  std::vector<double> error_ratios(const StepResult& step, const Span& span) const;
  void collect_outputs(const StepResult& step, const Span& span, const std::vector<bool>& accepted);
  void move_on(const StepResult& step, const Span& span, const std::vector<Attempt>& attempts,
               const std::vector<bool>& accepted);
  void fail(Outcome outcome, StepGroup& group);
  Plan plan() const;
  Tensor mask(const std::vector<bool>& flags) const;

  const Tensor ts_;
  Tensor y_;
  const Method method_;
  const Tableau& tableau_;
  Evaluator& f_;
  const AdaptiveSteps& options_;
  const OutputInterpolation interpolation_;
  const ErrorNorm& norm_;
  const bool joint_;

  std::vector<StepGroup> groups_;
  Tensor slope_;
  // joint: zeros with the gradient of what moves the next step's start and end, namely the first output time
  // and, with FirstStepGradient::Through, the first step
  Tensor shift_, next_shift_;
  Tensor first_dt_;     // joint with FirstStepGradient::Through: differentiable
  Tensor first_nudge_;  // how far after its start the first slope is taken, if that is a jump
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> reached_;  // (step, output) -> samples
  std::map<int64_t, std::vector<int64_t>> restarts_;                     // step -> samples
  SearchResult result_;
};

void Search::make_groups() {
  const int64_t count = joint_ ? 1 : y_.size(0);
  for (int64_t g = 0; g < count; ++g) {
    StepGroup group;
    group.outputs = column(ts_, g);
    group.t = group.outputs[0];
    group.stops = sorted_column(options_.stop_times, g);
    group.jumps = sorted_column(options_.jump_times, g);
    group.accepted = {group.t};
    while (!group.done() && group.outputs[group.next_output] <= group.t) {
      reached_[{-1, static_cast<int64_t>(group.next_output)}].push_back(g);
      ++group.next_output;
    }
    groups_.push_back(std::move(group));
  }
}

// root mean square as float64 on the CPU, where steps are chosen: [] jointly, [B] per sample
Tensor Search::size_of(const Tensor& scaled) const {
  Tensor size;
  if (!norm_.parts.empty()) {
    size = at::zeros({}, scaled.options());
    int64_t begin = 0;
    for (int64_t part : norm_.parts) {
      if (part == 0) continue;
      size = at::maximum(size, scaled.slice(0, begin, begin + part).square().mean().sqrt());
      begin += part;
    }
  } else if (joint_) {
    size = scaled.square().mean().sqrt();
  } else {
    // in an order that depends neither on the other samples nor on the number of threads
    const Tensor rows = scaled.reshape({scaled.size(0), -1}).to(at::kDouble);
    size = (matvec(rows.unsqueeze(1), rows).squeeze(1) / static_cast<double>(rows.size(1))).sqrt();
  }
  return size.to(at::kDouble).cpu();
}

// Hairer's rule: a first step whose Euler error is small against the tolerance
Tensor Search::first_step() {
  const Tensor scale = options_.atol + y_.abs() * options_.rtol;
  const Tensor d0 = size_of(y_ / scale), d1 = size_of(slope_ / scale);
  const Tensor tiny = at::full_like(d0, 1e-6);
  const Tensor h0 = at::where((d0 < 1e-5).logical_or(d1 < 1e-5), tiny, 0.01 * d0 / d1);
  const Time t0 = joint_ ? moving(groups_[0].t, shift_) : Time(ts_[0].detach());
  const Time probe =
      !joint_ || h0.requires_grad() || t0.has_tensor() ? Time(t0.tensor() + h0) : t0 + h0.item<double>();
  const Tensor f1 = f_(probe, y_ + Time(h0).like(y_) * slope_);
  const Tensor d2 = size_of((f1 - slope_) / scale) / h0;
  const Tensor h1 = at::where((d1 <= 1e-15).logical_and(d2 <= 1e-15), at::maximum(tiny, h0 * 1e-3),
                              (0.01 / at::maximum(d1, d2)).pow(1.0 / tableau_.controller_order));
  return at::minimum(100 * h0, h1);
}

Span Search::span(const std::vector<Attempt>& attempts) {
  if (joint_) {
    const Attempt& only = attempts[0];
    // the first step carries its gradient, later sizes are constants
    next_shift_ = shift_;
    if (first_dt_.defined() && groups_[0].accepted.size() == 1 && only.dt == first_dt_.item<double>()) {
      const Tensor first = first_dt_ - first_dt_.detach();
      next_shift_ = shift_.defined() ? shift_ + first : first;
    }
    return {moving(groups_[0].t, shift_), moving(only.t1, next_shift_), false, true};
  }
  Tensor t0 = at::empty({static_cast<int64_t>(groups_.size())}, at::kDouble), t1 = at::empty_like(t0);
  for (size_t g = 0; g < groups_.size(); ++g) {
    t0.data_ptr<double>()[g] = groups_[g].t;
    t1.data_ptr<double>()[g] = attempts[g].t1;
  }
  return {Time(t0), Time(t1), false, true};
}

std::vector<double> Search::error_ratios(const StepResult& step, const Span& span) const {
  const at::NoGradGuard no_grad;
  const Tensor error = advance({}, span.dt(), step.slopes, tableau_.b_error);
  const Tensor tolerance = options_.atol + options_.rtol * at::maximum(y_.abs(), step.y1.abs());
  const Tensor ratio = size_of(error / tolerance).contiguous();
  return {ratio.data_ptr<double>(), ratio.data_ptr<double>() + ratio.numel()};
}

void Search::collect_outputs(const StepResult& step, const Span& span, const std::vector<bool>& accepted) {
  std::map<int64_t, std::vector<int64_t>> found;  // output -> samples
  for (size_t g = 0; g < groups_.size(); ++g) {
    StepGroup& group = groups_[g];
    if (!accepted[g]) continue;
    while (!group.done() && group.outputs[group.next_output] <= group.t) {
      const auto j = static_cast<int64_t>(group.next_output++);
      found[j].push_back(static_cast<int64_t>(g));
      reached_[{static_cast<int64_t>(group.accepted.size()) - 2, j}].push_back(static_cast<int64_t>(g));
    }
  }
  for (const auto& [j, samples] : found) {
    const Tensor rows = joint_ ? Tensor() : at::tensor(samples, at::kLong);
    result_.pieces.push_back(
        {j, rows, interpolate(interpolation_, method_, f_, y_, step, span, output_time(ts_, j, rows), rows)});
  }
}

Tensor Search::mask(const std::vector<bool>& flags) const {
  Tensor result = at::empty({static_cast<int64_t>(flags.size())}, at::kBool);
  std::copy(flags.begin(), flags.end(), result.data_ptr<bool>());
  return mask_like(result, y_);
}

void Search::move_on(const StepResult& step, const Span& span, const std::vector<Attempt>& attempts,
                     const std::vector<bool>& accepted) {
  const bool any = std::find(accepted.begin(), accepted.end(), true) != accepted.end();
  if (!any) return;
  std::vector<bool> jumped(groups_.size(), false);
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!accepted[g]) continue;
    StepGroup& group = groups_[g];
    group.t = attempts[g].t1;
    group.accepted.push_back(group.t);
    if (attempts[g].on_jump) {
      jumped[g] = true;
      restarts_[static_cast<int64_t>(group.accepted.size()) - 2].push_back(static_cast<int64_t>(g));
    }
  }
  collect_outputs(step, span, accepted);
  const Tensor last = step.slopes.back();
  if (joint_) {
    shift_ = next_shift_;
    y_ = step.y1;
    slope_ = jumped[0] ? f_(just_after(span.t1), y_) : last;
    return;
  }
  const Tensor moved = mask(accepted);
  y_ = at::where(moved, step.y1, y_);
  slope_ = at::where(moved, last, slope_);
  if (std::find(jumped.begin(), jumped.end(), true) != jumped.end()) {
    // each sample is evaluated at its own time; the value counts only for samples that jumped
    slope_ = at::where(mask(jumped), f_(just_after(span.t1), y_), slope_);
  }
}

// the group stops here and keeps its state; the others continue
void Search::fail(Outcome outcome, StepGroup& group) {
  group.failed = true;
  if (!result_.status) return;
  const at::NoGradGuard no_grad;
  const bool flat = !norm_.parts.empty() || y_.dim() == 0;
  const int64_t samples = flat ? 1 : y_.size(0);
  const Tensor sizes = std::get<0>(y_.reshape({samples, -1}).abs().max(1)).to(at::kDouble).cpu();
  // jointly, the sample with the largest state, or one that is not finite
  const int64_t sample =
      joint_ ? sizes.nan_to_num(INFINITY).argmax().item<int64_t>() : &group - groups_.data();
  result_.status = {outcome, flat ? -1 : sample, group.t, group.dt, sizes[sample].item<double>()};
}

// groups whose start is not finite cannot step
void Search::check_start() {
  const at::NoGradGuard no_grad;
  const Tensor finite = at::isfinite(y_).logical_and(at::isfinite(slope_));
  const Tensor good =
      (joint_ ? finite.all().reshape({1}) : finite.reshape({y_.size(0), -1}).all(1)).cpu().contiguous();
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (!good.data_ptr<bool>()[g]) fail(Outcome::NotFinite, groups_[g]);
  }
}

// keeps the step inside its limits; a step that no longer moves time is the end
void Search::limit_step(StepGroup& group) {
  if (group.done()) return;
  if (!std::isfinite(group.dt)) group.dt = options_.smallest_step;
  group.dt = std::clamp(group.dt, options_.smallest_step, options_.largest_step);
  if (group.t + group.dt > group.t) return;
  fail(group.finite ? Outcome::StepTooSmall : Outcome::NotFinite, group);
}

// whether a step with this ratio of error to tolerance is taken, and how long the next one is
bool Search::judge(StepGroup& group, const Attempt& attempt, double ratio) {
  group.finite = std::isfinite(ratio);
  const bool smallest = attempt.dt <= options_.smallest_step;
  if (smallest && !group.finite) {
    fail(Outcome::NotFinite, group);
    return false;
  }
  const bool accepted = ratio <= 1 || smallest;
  ++(accepted ? result_.steps : result_.rejected);
  result_.log.push_back({group.t, attempt.dt, joint_ ? -1 : &group - groups_.data(), accepted});
  // no step shrinks after it was accepted; an error that is not finite takes the smallest factor
  const double floor = ratio < 1 ? 1 : kSmallestFactor;
  const double proposed = kSafety / std::pow(ratio, 1.0 / tableau_.controller_order);
  const double factor = ratio == 0     ? kLargestFactor
                        : group.finite ? std::min(kLargestFactor, std::max(proposed, floor))
                                       : kSmallestFactor;
  group.dt = attempt.dt * factor;
  return accepted;
}

// accepted steps only; where samples step on their own, step n is each sample's n-th one and those that have
// fewer wait at their end
Plan Search::plan() const {
  Plan plan;
  plan.ts = ts_;
  plan.interpolation = interpolation_;
  plan.last_inside = true;
  plan.carries_slope = true;
  plan.first_nudge = first_nudge_;
  size_t points = 1;
  for (const StepGroup& group : groups_) points = std::max(points, group.accepted.size());
  Tensor grid = at::empty({static_cast<int64_t>(points), static_cast<int64_t>(groups_.size())}, at::kDouble);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t n = 0; n < points; ++n) {
      const std::vector<double>& own = groups_[g].accepted;
      grid.data_ptr<double>()[n * groups_.size() + g] = own[std::min(n, own.size() - 1)];
    }
  }
  if (joint_) grid = grid.select(1, 0).contiguous();
  // the sizes of steps are constants, but the whole grid moves with its start
  if (ts_.requires_grad()) grid = grid + (ts_[0] - ts_[0].detach());
  plan.grid = grid;
  plan.steps.resize(points - 1);
  for (const auto& [where, samples] : reached_) {
    const auto& [n, j] = where;
    const Tensor rows = joint_ ? Tensor() : at::tensor(samples, at::kLong);
    (n < 0 ? plan.first_outputs : plan.steps[n].outputs).push_back({j, rows, false});
  }
  for (const auto& [n, samples] : restarts_) {
    plan.steps[n].restart = true;
    if (joint_) continue;
    plan.steps[n].restart_rows = at::zeros({static_cast<int64_t>(groups_.size())}, at::kBool);
    for (int64_t b : samples) plan.steps[n].restart_rows.data_ptr<bool>()[b] = true;
  }
  return plan;
}

// a solve that starts at a jump starts after it
Time Search::first_slope_time() {
  Tensor nudge = at::zeros({static_cast<int64_t>(groups_.size())}, at::kDouble);
  bool any = false;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const StepGroup& group = groups_[g];
    if (!std::binary_search(group.jumps.begin(), group.jumps.end(), group.t)) continue;
    nudge.data_ptr<double>()[g] = std::nextafter(group.t, INFINITY) - group.t;
    any = true;
  }
  const Time start = joint_ ? moving(groups_[0].t, shift_) : Time(ts_[0].detach().contiguous());
  if (!any) return start;
  first_nudge_ = joint_ ? nudge[0] : nudge;
  return Time(start.tensor() + first_nudge_);
}

void Search::choose_first_steps() {
  if (options_.first_step > 0) {
    for (StepGroup& group : groups_) group.dt = options_.first_step;
    return;
  }
  const bool through =
      options_.first_step_gradient == FirstStepGradient::Through && at::GradMode::is_enabled();
  const at::AutoGradMode record(through);
  const Tensor sizes = first_step().contiguous();
  for (size_t g = 0; g < groups_.size(); ++g) groups_[g].dt = sizes.data_ptr<double>()[g];
  if (through) first_dt_ = sizes;
}

SearchResult Search::run() {
  make_groups();
  for (const auto& [where, samples] : reached_) {
    const Tensor rows = joint_ ? Tensor() : at::tensor(samples, at::kLong);
    result_.pieces.push_back({where.second, rows, select_rows(y_, rows)});
  }
  slope_ = f_(first_slope_time(), y_);
  check_start();
  choose_first_steps();

  const auto done = [](const StepGroup& group) { return group.done(); };
  for (int64_t tries = 0; !std::all_of(groups_.begin(), groups_.end(), done); ++tries) {
    for (StepGroup& group : groups_) {
      limit_step(group);
      if (!group.done() && tries >= options_.max_steps) fail(Outcome::TooManySteps, group);
    }
    if (std::all_of(groups_.begin(), groups_.end(), done)) break;
    std::vector<Attempt> attempts;
    for (const StepGroup& group : groups_) attempts.push_back(next_attempt(group));
    const Span here = span(attempts);
    const StepResult step = runge_kutta_step(tableau_, f_, y_, slope_, here);
    const std::vector<double> ratios = error_ratios(step, here);
    std::vector<bool> accepted(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      accepted[g] = !groups_[g].done() && judge(groups_[g], attempts[g], ratios[g]);
    }
    move_on(step, here, attempts, accepted);
  }
  if (!joint_) {
    result_.steps = 0;
    for (const StepGroup& group : groups_) {
      result_.steps = std::max(result_.steps, static_cast<int64_t>(group.accepted.size()) - 1);
    }
  }
  result_.plan = plan();
  return std::move(result_);
}

}  // namespace

SearchResult adaptive_search(const Tensor& ts, const Tensor& y0, const Tableau& tableau, Evaluator& f,
                             const AdaptiveSteps& steps, OutputInterpolation interpolation,
                             const ErrorNorm& norm) {
  return Search(ts, y0, tableau, f, steps, interpolation, norm).run();
}

}  // namespace fastweights

#include "solve/adjoint.h"

#include <cmath>

#include "fastweights/error.h"
#include "solve/adjoint_given.h"
#include "solve/augmented.h"
#include "solve/solver.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// options of the backward problem; it is one state, so its steps are joint
SolveOptions backward_options(const SolveOptions& options) {
  SolveOptions result;
  result.method = options.adjoint_method.value_or(options.method);
  result.steps = options.adjoint_steps.value_or(options.steps);
  if (AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&result.steps))
    adaptive->control = ErrorControl::Joint;
  FW_CHECK(!std::holds_alternative<GivenSteps>(result.steps),
           "[solve] adjoint_steps cannot be given steps; the adjoint goes back over given forward steps if ",
           "adjoint_steps is left out");
  if (AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&result.steps)) {
    // one state has one set of times: everybody's
    if (adaptive->stop_times.defined()) adaptive->stop_times = adaptive->stop_times.reshape({-1});
    if (adaptive->jump_times.defined()) adaptive->jump_times = adaptive->jump_times.reshape({-1});
    adaptive->first_step_gradient = FirstStepGradient::None;
  }
  return result;
}

// what has no meaning when every sample goes through its own interval in the same steps
void check_times_per_sample(const SolveOptions& backward) {
  const AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&backward.steps);
  FW_CHECK(!adaptive || (!adaptive->stop_times.defined() && !adaptive->jump_times.defined()),
           "[solve] with times per sample the adjoint knows no stop or jump times; take Gradient::Exact");
  const FixedSteps* fixed = std::get_if<FixedSteps>(&backward.steps);
  FW_CHECK(
      !fixed || (fixed->edges == StageEdges::AsIs && fixed->stage_times == StageTimes::Double),
      "[solve] with times per sample the adjoint can neither move the edges of its steps nor round times; ",
      "take Gradient::Exact");
}

// step sizes of the backward problem when time runs from 0 to 1 over an interval of this length
void scale_steps(Steps& steps, double length) {
  if (FixedSteps* fixed = std::get_if<FixedSteps>(&steps)) {
    if (fixed->size > 0) fixed->size = 1 / std::ceil(length / fixed->size * (1 - 1e-12));
  }
  if (AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&steps)) {
    adaptive->first_step /= length;
    adaptive->smallest_step /= length;
    adaptive->largest_step /= length;
  }
}

// where samples have their own times: from s = 0 to 1 every sample goes through its own interval
Field over_unit_interval(const Field& f, const Tensor& t0, const Tensor& t1) {
  return [&f, t0, length = t1 - t0](const Time& s, const Tensor& y) {
    const Time t(t0 + s.tensor() * length);
    return Time(length).like(y) * f(t, y);
  };
}

struct BackwardProblem {
  Field f;
  Tensor ts;  // [T] or [T, B]
  SolveOptions options;
  AdjointNorm norm;
  bool time_gradients;

  // over one interval between outputs, from the later to the earlier one
  Tensor over_interval(const Augmented& layout, const Tensor& state, int64_t i) const {
    SolveOptions local = options;
    Tensor ends = ts.slice(0, i - 1, i + 1).flip(0).contiguous();
    Field field = f;
    if (ts.dim() == 2) {
      field = over_unit_interval(f, ts[i - 1], ts[i]);
      // steps are at most as long as asked for in everybody's own time
      const double longest = (ts[i] - ts[i - 1]).abs().max().item<double>();
      if (longest == 0) return state;
      scale_steps(local.steps, longest);
      ends = at::tensor({1.0, 0.0}, at::kDouble);
    }
    // torchdiffeq integrates the gradient of time even if nobody wants it, and its error takes part in the
    // choice of steps; without error control it can be left out
    const bool follow_time = time_gradients || std::holds_alternative<AdaptiveSteps>(local.steps);
    const auto time_gradient = follow_time ? TimeGradient::Follow : TimeGradient::Skip;
    const Field slope = [&](const Time& t, const Tensor& y) {
      return augmented_slope(field, layout, t, y, time_gradient);
    };
    const Solution solution = solve_checked(slope, state, ends, local, layout.norm(norm));
    if (!solution.status) {
      throw std::runtime_error(message("[solve] the adjoint equation between output times ", i - 1, " and ",
                                       i, " failed: ", solution.status.message()));
    }
    return solution.ys[1];
  }

  std::vector<Tensor> run(const Tensor& ys, const Tensor& grad_ys,
                          const std::vector<Tensor>& parameters) const {
    const at::NoGradGuard no_grad;
    const int64_t outputs = ts.size(0);
    const Augmented layout = {ys[0].sizes().vec(), ys[0].numel(), parameters};
    std::vector<Tensor> grads;
    for (const Tensor& p : parameters) grads.push_back(at::zeros_like(p));
    Tensor time = at::zeros({}, ys.options()), grad_y = grad_ys[outputs - 1];
    Tensor grad_ts = at::zeros_like(ts);
    for (int64_t i = outputs - 1; i > 0; --i) {
      if (time_gradients) {
        // moving an output time moves the output along its slope
        const Tensor moved = (f(Time(ts[i]), ys[i]) * grad_ys[i]).sum();
        time = time - moved;
        grad_ts[i].copy_(moved);
      }
      const Tensor state = over_interval(layout, layout.pack(time, ys[i], grad_y, grads), i);
      time = layout.time(state);
      grad_y = layout.grad_y(state) + grad_ys[i - 1];
      grads = layout.grads(state);
    }
    if (time_gradients) grad_ts[0].copy_(time);
    std::vector<Tensor> result = {grad_y, time_gradients ? grad_ts : Tensor()};
    result.insert(result.end(), grads.begin(), grads.end());
    return result;
  }
};

// the backward pass on steps of its own, from output to output
AdjointPass interval_adjoint(const Field& f, const Tensor& ts, const SolveOptions& options) {
  const bool time_gradients = needs_gradient({ts});
  FW_CHECK(!time_gradients || ts.dim() == 1,
           "[solve] the adjoint has no gradients of times that differ between samples; take Gradient::Exact");
  for (const Steps& steps : {options.steps, options.adjoint_steps.value_or(options.steps)}) {
    const FixedSteps* fixed = std::get_if<FixedSteps>(&steps);
    FW_CHECK(!time_gradients || !fixed || fixed->stage_times == StageTimes::Double,
             "[solve] times in single precision have no gradients");
  }
  const BackwardProblem problem = {f, ts.detach(), backward_options(options), options.adjoint_norm,
                                   time_gradients};
  if (ts.dim() == 2) check_times_per_sample(problem.options);
  return [problem](const Tensor& ys, const Tensor& grad_ys, const std::vector<Tensor>& parameters) {
    return problem.run(ys, grad_ys, parameters);
  };
}

}  // namespace

Solution adjoint_solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options) {
  const bool same_steps = std::holds_alternative<GivenSteps>(options.steps) && !options.adjoint_steps;
  const AdjointPass pass = same_steps ? given_adjoint(f, y0, ts, options) : interval_adjoint(f, ts, options);
  Solution solution;
  {
    const at::NoGradGuard no_grad;
    solution = solve_checked(f, y0.detach(), ts.detach(), options, {});
  }
  std::vector<Tensor> parameters;
  for (const Tensor& p : options.parameters) {
    if (p.requires_grad()) parameters.push_back(p);
  }
  std::vector<Tensor> inputs = {y0, ts};
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  // a copy shares the numbers without holding on to the graph that is about to be attached
  const Tensor ys = solution.ys.detach();
  const auto backward = [pass, ys](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
    return pass(ys, grads[0], saved);
  };
  solution.ys = differentiable("solve", {solution.ys}, inputs, parameters, backward)[0];
  return solution;
}

}  // namespace fastweights

#include "solve/adjoint_given.h"

#include <cmath>

#include "base/error.h"
#include "solve/plan.h"
#include "solve/solver.h"
#include "solve/step.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// y and its gradient on the way back
struct AdjointState {
  Tensor y, grad_y;  // [...] like y0
};

struct GivenBackward {
  Field f;
  Plan plan;  // rising
  Method method;

  // the outputs at step time n
  const std::vector<PlannedOutput>& outputs_at(int64_t n) const {
    return n > 0 ? plan.steps[n - 1].outputs : plan.first_outputs;
  }

  void check_outputs() const {
    for (size_t n = 0; n < plan.steps.size(); ++n) {
      for (const PlannedOutput& output : plan.steps[n].outputs) {
        const std::string who =
            output.rows.defined() ? message("sample ", output.rows[0].item<int64_t>(), ": ") : "";
        FW_CHECK(output.at_end, "[solve] ", who, "output time ", output.index, " lies inside step ", n,
                 "; the adjoint of given steps needs every output time among the step times");
      }
    }
  }

  // when the samples are at x of step n, from 0 at its end to 1 at its start
  Time time_at(int64_t n, double x) const {
    const Tensor t0 = plan.grid[n], t1 = plan.grid[n + 1];  // [] or [B]
    Tensor t = x == 0 ? t1 : x == 1 ? t0 : t1 - x * (t1 - t0);
    if (plan.first_inside) {
      // in a step too short to have an inside, its start still belongs to it
      t = at::minimum(at::maximum(t, just_after(Time(t0)).tensor()), just_before(Time(t1)).tensor());
      t = at::maximum(t, t0);
    }
    return plan.per_sample() ? Time(t) : Time(t.item<double>());
  }

  // over step n, from its end to its start; every sample goes through its own dt while x goes from 0 to 1
  State over_step(const Augmented& layout, const State& state, int64_t n) const {
    const Tensor length = plan.grid[n + 1] - plan.grid[n];  // [] or [B]
    const Time dt = plan.per_sample() ? Time(length) : Time(length.item<double>());
    const Field scaled = [&](const Time& t, const Tensor& y) { return dt.like(y) * f(t, y); };
    const Field slope = [&](const Time& x, const Tensor& augmented) {
      return -augmented_slope(scaled, layout, time_at(n, x.value()), augmented, TimeGradient::Skip);
    };
    Evaluator evaluator(slope);
    State next = take_step(method, evaluator, state, {.t0 = 0, .t1 = 1}).next;
    // the next step has another dt, so a slope at its start is not this one's; a multistep method has to live
    // with that
    if (std::holds_alternative<Tableau>(method)) next.slopes.clear();
    return next;
  }

  // y starts again from the stored outputs, and their gradients come in
  AdjointState at_outputs(AdjointState reached, int64_t n, const Tensor& ys, const Tensor& grad_ys) const {
    for (const PlannedOutput& output : outputs_at(n)) {
      const Tensor y = ys[output.index], grad = grad_ys[output.index];
      if (!output.rows.defined()) {
        reached = {y, reached.grad_y + grad};
        continue;
      }
      const Tensor rows = output.rows.to(y.device());
      reached.y = reached.y.index_copy(0, rows, y.index_select(0, rows));
      reached.grad_y = reached.grad_y.index_add(0, rows, grad.index_select(0, rows));
    }
    return reached;
  }

  std::vector<Tensor> run(const Tensor& ys, const Tensor& grad_ys,
                          const std::vector<Tensor>& parameters) const {
    const at::NoGradGuard no_grad;
    const Augmented layout = {ys[0].sizes().vec(), ys[0].numel(), parameters};
    const Tensor no_time = at::zeros({}, ys.options());
    std::vector<Tensor> grads;
    for (const Tensor& p : parameters) grads.push_back(at::zeros_like(p));
    // a sample that waits at the end has its last output all the while
    AdjointState reached = {ys[-1], at::zeros_like(ys[-1])};
    State state = {layout.pack(no_time, reached.y, reached.grad_y, grads), {}};
    for (auto n = static_cast<int64_t>(plan.steps.size()); n >= 0; --n) {
      if (!outputs_at(n).empty()) {
        if (!std::isfinite(state.y.sum().item<double>()) && !at::isfinite(state.y).all().item<bool>()) {
          throw std::runtime_error(
              message("[solve] the adjoint equation stopped being finite after step time ", n,
                      "; take smaller steps or look at the field there"));
        }
        reached = at_outputs({layout.y(state.y), layout.grad_y(state.y)}, n, ys, grad_ys);
        state = {layout.pack(no_time, reached.y, reached.grad_y, layout.grads(state.y)), {}};
      }
      if (n > 0) state = over_step(layout, state, n - 1);
    }
    std::vector<Tensor> result = {layout.grad_y(state.y), Tensor()};
    for (const Tensor& grad : layout.grads(state.y)) result.push_back(grad);
    return result;
  }
};

}  // namespace

AdjointPass given_adjoint(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options) {
  const GivenSteps& steps = std::get<GivenSteps>(options.steps);
  FW_CHECK(!needs_gradient({ts}) && !(steps.times.defined() && needs_gradient({steps.times})),
           "[solve] the adjoint of given steps has no gradients of times; take Gradient::Exact");
  const Method method = options.adjoint_method.value_or(options.method);
  check_method(method);
  GivenSteps rising = steps;
  Tensor times = ts.detach().contiguous();
  Field field = f;
  if ((times[-1] < times[0]).any().item<bool>()) {
    // time runs backwards as -t runs forwards
    times = -times;
    if (steps.times.defined()) rising.times = -steps.times;
    field = [f](const Time& t, const Tensor& y) { return -f(-1.0 * t, y); };
  }
  const GivenBackward backward = {field, fixed_plan(times, y0, {.steps = rising}), method};
  backward.check_outputs();
  return [backward](const Tensor& ys, const Tensor& grad_ys, const std::vector<Tensor>& parameters) {
    return backward.run(ys, grad_ys, parameters);
  };
}

}  // namespace fastweights

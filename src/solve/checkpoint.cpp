#include "solve/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

// steps that can be reversed with `slots` states (the first one counted) and each step done again at most
// `times` times
double reversible(int64_t slots, int64_t times) {
  double result = 1;
  for (int64_t i = 1; i <= times; ++i)
    result = result * static_cast<double>(slots + i) / static_cast<double>(i);
  return result;
}

State detached(const State& state) {
  State result = {state.y.detach(), {}};
  for (const Tensor& slope : state.slopes) result.slopes.push_back(slope.detach());
  return result;
}

std::vector<Tensor> tensors(const State& state) {
  std::vector<Tensor> result = {state.y};
  result.insert(result.end(), state.slopes.begin(), state.slopes.end());
  return result;
}

void add_to(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

// runs the plan backwards
class Reversal {
 public:
  Reversal(const Plan& plan, const Method& method, const Field& f, const std::vector<Tensor>& parameters,
           const Tensor& grad_ys, bool time_gradients)
      : plan_(plan),
        method_(method),
        f_(f),
        parameters_(parameters),
        grad_ys_(grad_ys),
        times_(time_gradients) {
    for (const Tensor& p : parameters) grad_parameters.push_back(at::zeros_like(p));
    if (times_) {
      grad_grid = at::zeros_like(plan.grid);
      grad_ts = at::zeros_like(plan.ts);
    }
  }

  void run(const State& first, int64_t slots, std::map<int64_t, State> kept) {
    kept_ = std::move(kept);
    const auto steps = static_cast<int64_t>(plan_.steps.size());
    reverse({0, steps, first, slots});
    if (!grad_state_.empty()) add_to(grad_y0, grad_state_[0]);
    // the very first slope is a function of y0, too
    if (plan_.carries_slope && grad_state_.size() > 1) first_slope_backward(first);
    for (const PlannedOutput& output : plan_.first_outputs) {
      if (!output.rows.defined()) {
        add_to(grad_y0, grad_ys_[output.index]);
        continue;
      }
      Tensor grad = at::zeros_like(first.y);
      grad.index_copy_(0, output.rows.to(grad.device()), select_rows(grad_ys_[output.index], output.rows));
      add_to(grad_y0, grad);
    }
  }

  Tensor grad_y0, grad_grid, grad_ts;
  std::vector<Tensor> grad_parameters;

 private:
  State forward(const State& from, int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    State state = from;
    for (int64_t n = begin; n < end; ++n) {
      state = replay_step(plan_, method_, f_, state, n, plan_span(plan_, n), plan_.ts).state;
    }
    return state;
  }

  // a stretch of steps still to be reversed, the state before it, and how many more may be kept
  struct Stretch {
    int64_t begin, end;
    State state;
    int64_t slots;
  };

  void reverse(Stretch whole) {
    std::vector<Stretch> waiting = {std::move(whole)};
    while (!waiting.empty()) {
      Stretch now = std::move(waiting.back());
      waiting.pop_back();
      // cut off left parts, which wait, until the right one is short
      while (now.end - now.begin > 1 && now.slots > 0) {
        const int64_t middle = now.begin + checkpoint_split(now.end - now.begin, now.slots);
        const auto known = kept_.find(middle);
        State right = known != kept_.end() ? known->second : forward(now.state, now.begin, middle);
        kept_.erase(middle);
        waiting.push_back({now.begin, middle, std::move(now.state), now.slots});
        now = {middle, now.end, std::move(right), now.slots - 1};
      }
      for (int64_t n = now.end - 1; n >= now.begin; --n) step_backward(n, forward(now.state, now.begin, n));
    }
  }

  // back-propagation through one recorded step
  void step_backward(int64_t n, const State& state) {
    const at::AutoGradMode on(true);
    State from = detached(state);
    std::vector<Tensor> inputs = tensors(from);
    for (Tensor& input : inputs) input.set_requires_grad(true);
    const size_t states = inputs.size();
    inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
    Span span = plan_span(plan_, n);
    Tensor ts = plan_.ts;
    if (times_) {
      const Tensor t0 = plan_.grid[n].detach().clone().set_requires_grad(true);
      const Tensor t1 = plan_.grid[n + 1].detach().clone().set_requires_grad(true);
      ts = plan_.ts.detach().clone().set_requires_grad(true);
      span.t0 = Time(t0);
      span.t1 = Time(t1);
      inputs.insert(inputs.end(), {t0, t1, ts});
    }
    const auto [next, pieces] = replay_step(plan_, method_, f_, from, n, span, ts);

    std::vector<Tensor> outputs = tensors(next), grads = grad_state_;
    grads.resize(outputs.size());
    for (const Piece& piece : pieces) {
      outputs.push_back(piece.y);
      grads.push_back(select_rows(grad_ys_[piece.index], piece.rows));
    }
    std::vector<Tensor> result = vector_jacobian(outputs, inputs, grads);
    grad_state_.assign(result.begin(), result.begin() + static_cast<int64_t>(states));
    for (size_t i = 0; i < parameters_.size(); ++i) grad_parameters[i].add_(result[states + i]);
    if (times_) {
      const size_t at = states + parameters_.size();
      grad_grid[n].add_(result[at]);
      grad_grid[n + 1].add_(result[at + 1]);
      grad_ts.add_(result[at + 2]);
    }
  }

  void first_slope_backward(const State& first) {
    const at::AutoGradMode on(true);
    const Tensor y = first.y.detach().clone().set_requires_grad(true);
    std::vector<Tensor> inputs = {y};
    inputs.insert(inputs.end(), parameters_.begin(), parameters_.end());
    Time t0 = plan_span(plan_, 0).t0;
    if (times_) {
      t0 = Time(plan_.grid[0].detach().clone().set_requires_grad(true));
      inputs.push_back(t0.tensor());
    }
    const std::vector<Tensor> result =
        vector_jacobian({f_(first_slope_time(plan_, t0), y)}, inputs, {grad_state_[1]});
    add_to(grad_y0, result[0]);
    for (size_t i = 0; i < parameters_.size(); ++i) grad_parameters[i].add_(result[1 + i]);
    if (times_) grad_grid[0].add_(result.back());
  }

  const Plan& plan_;
  const Method& method_;
  Evaluator f_;
  const std::vector<Tensor>& parameters_;
  const Tensor grad_ys_;
  const bool times_;
  std::vector<Tensor> grad_state_;
  std::map<int64_t, State> kept_;
};

// positions of the states that the backward pass needs first, which the forward pass keeps
std::vector<int64_t> first_checkpoints(int64_t steps, int64_t slots) {
  std::vector<int64_t> positions;
  int64_t begin = 0;
  for (; slots > 0 && steps - begin > 1; --slots) {
    begin += checkpoint_split(steps - begin, slots);
    positions.push_back(begin);
  }
  return positions;
}

Plan without_gradients(const Plan& plan) {
  Plan result = plan;
  result.grid = plan.grid.detach();
  result.ts = plan.ts.detach();
  return result;
}

}  // namespace

int64_t state_bytes(const State& state) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors(state)) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t checkpoint_split(int64_t steps, int64_t slots) {
  const int64_t states = slots + 1;
  int64_t times = 1;
  while (reversible(states, times) < static_cast<double>(steps)) ++times;
  const double left = std::min(reversible(states, times - 1), static_cast<double>(steps - 1));
  // the right part must be within reach of the remaining slots
  const double right = reversible(states - 1, times);
  return std::max(static_cast<int64_t>(left),
                  steps - static_cast<int64_t>(std::min(right, static_cast<double>(steps - 1))));
}

int64_t checkpoint_slots(int64_t memory_limit, int64_t bytes_per_state, int64_t steps) {
  if (memory_limit == 0) return 2 * static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(steps))));
  FW_CHECK(memory_limit >= bytes_per_state, "[solve] a memory limit of ", memory_limit,
           " bytes is less than one state of ", bytes_per_state, " bytes");
  return std::min(memory_limit / bytes_per_state - 1, steps);
}

Tensor checkpointed_outputs(const Plan& plan, const Method& method, const Field& f, Evaluator& counted,
                            const Tensor& y0, const SolveOptions& options, const Tensor& ys) {
  const auto steps = static_cast<int64_t>(plan.steps.size());
  const Plan detached = without_gradients(plan);
  State first = {y0.detach(), {}};
  auto kept = std::make_shared<std::map<int64_t, State>>();
  int64_t slots = 0;
  Tensor out = ys;
  {
    const at::NoGradGuard no_grad;
    if (plan.carries_slope && steps > 0)
      first.slopes = {counted(first_slope_time(detached, plan_span(detached, 0).t0), first.y)};
    const int64_t history = std::holds_alternative<Adams>(method) ? std::get<Adams>(method).max_order : 1;
    slots = checkpoint_slots(options.memory_limit,
                             state_bytes({first.y, std::vector<Tensor>(history, first.y)}), steps);
    if (!out.defined()) {
      const std::vector<int64_t> positions = first_checkpoints(steps, slots);
      std::vector<Piece> pieces = first_pieces(detached, first.y);
      State state = first;
      for (int64_t n = 0; n < steps; ++n) {
        if (std::binary_search(positions.begin(), positions.end(), n)) (*kept)[n] = state;
        Replayed step = replay_step(detached, method, counted, state, n, plan_span(detached, n), detached.ts);
        state = std::move(step.state);
        std::move(step.pieces.begin(), step.pieces.end(), std::back_inserter(pieces));
      }
      out = assemble(pieces, plan.ts.size(0), first.y);
    }
  }
  const bool times = plan.grid.requires_grad() || plan.ts.requires_grad();
  std::vector<Tensor> inputs = {y0, plan.grid, plan.ts};
  inputs.insert(inputs.end(), options.parameters.begin(), options.parameters.end());
  std::vector<Tensor> saved = {y0};
  saved.insert(saved.end(), options.parameters.begin(), options.parameters.end());
  const auto backward = [detached, method, f, first, slots, kept, times](
                            const std::vector<Tensor>& grads, const std::vector<Tensor>& saved_tensors) {
    std::vector<Tensor> parameters(saved_tensors.begin() + 1, saved_tensors.end());
    Reversal reversal(detached, method, f, parameters, grads[0], times);
    // the states of the forward pass are used up; a second backward pass computes them again
    reversal.run(first, slots, std::exchange(*kept, {}));
    std::vector<Tensor> result = {reversal.grad_y0, reversal.grad_grid, reversal.grad_ts};
    result.insert(result.end(), reversal.grad_parameters.begin(), reversal.grad_parameters.end());
    return result;
  };
  return differentiable("solve", {out}, inputs, saved, backward)[0];
}

}  // namespace fastweights

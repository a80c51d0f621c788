#pragma once

#include <vector>

#include "fastweights/solve.h"

/// One step of a method, and outputs inside it.

namespace fastweights {

/// The field with a count of its calls and a check of what it returns.
class Evaluator {
 public:
  explicit Evaluator(const Field& f) : f_(f) {}
  Tensor operator()(const Time& t, const Tensor& y);
  int64_t calls() const { return calls_; }

  /// From now on slopes come detached, but whether autograd had something to record is remembered.
  void watch_gradients() { watching_ = true; }
  void stop_watching() { watching_ = false; }
  bool saw_gradient() const { return saw_gradient_; }

 private:
  const Field& f_;
  int64_t calls_ = 0;
  bool watching_ = false, saw_gradient_ = false;
};

/// From where to where, and from which side the edges are looked at.
struct Span {
  Time t0, t1;
  bool first_inside = false;
  bool last_inside = false;
  double shortening = 0;  // eps of StageEdges::Shortened, which moves the first stage or the whole step
  StageTimes stage_times = StageTimes::Double;
  Time dt() const { return t1 - t0; }
};

/// What a step hands to the next one: the state, and slopes that are used again (the last stage of a method
/// that reuses it, the history of a multistep method, newest first).
struct State {
  Tensor y;
  std::vector<Tensor> slopes;
};

struct StepResult {
  Tensor y1;
  std::vector<Tensor> slopes;  // k_1 .. k_S
};

/// These samples of a tensor [B, ...] on any device; undefined rows mean all.
Tensor select_rows(const Tensor& tensor, const Tensor& rows);

/// A mask [B] in a shape that broadcasts against y, on its device.
Tensor mask_like(const Tensor& mask, const Tensor& y);

/// base + dt sum_j weights[j] slopes[j]; base may be undefined
Tensor advance(const Tensor& base, const Time& dt, const std::vector<Tensor>& slopes,
               const std::vector<double>& weights);

/// When the stages of a Runge-Kutta step look at the field, and how far the state goes.
struct StageTable {
  std::vector<Time> times;
  Time length;
};
StageTable stage_table(const Tableau& tableau, const Span& span);

/// One Runge-Kutta step; first_slope may be undefined.
StepResult runge_kutta_step(const Tableau& tableau, Evaluator& f, const Tensor& y0, const Tensor& first_slope,
                            const Span& span);

/// A step, and what the following one starts from.
struct TakenStep {
  StepResult result;
  State next;
};

/// One step of any method.
TakenStep take_step(const Method& method, Evaluator& f, const State& state, const Span& span);

/// The solution at time t inside a step. With `rows`, only for these samples (t then has one time per row).
Tensor interpolate(OutputInterpolation kind, const Method& method, Evaluator& f, const Tensor& y0,
                   const StepResult& step, const Span& span, const Time& t, const Tensor& rows);

}  // namespace fastweights

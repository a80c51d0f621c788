#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fastweights/tableau.h"
#include "fastweights/tensor.h"

/// Ordinary differential equations dy/dt = f(t, y) on tensors, with exact, checkpointed or adjoint gradients.
///
///     Solution s = solve(field, y0, ts, {.method = rk4(), .steps = FixedSteps{0.1}});
///
/// Method, steps, output interpolation and gradient are independent choices.

namespace fastweights {

/// f(t, y), with the shape of y. If samples have their own times, t contains one time per sample.
using Field = std::function<Tensor(const Time& t, const Tensor& y)>;

enum class AdamsKind { Explicit, Implicit };

/// The multistep methods of torchdiffeq: Bashforth's predictor, with Moulton's corrector if implicit. They
/// assume equal steps, and start with Runge-Kutta steps. The corrector iterates until all samples have
/// converged, so an implicit result may depend on the rest of the batch, within the corrector's tolerance.
struct Adams {
  AdamsKind kind = AdamsKind::Explicit;
  int max_order = 12;               ///< 4 to 12
  int max_iterations = 4;           ///< of the corrector
  double rtol = 1e-7, atol = 1e-9;  ///< of the corrector

  bool operator==(const Adams&) const = default;
};

/// Each step in closed form: keys, values and rates are those of the middle of the step and constant over it,
/// and the rule's equation is then solved exactly. Stable for steps of any length. Exact if the signal is
/// constant over each step, otherwise of order 2. hebb, oja, delta_pre and delta_post have a flow, with
/// sigmoid rates (hebb with any). Only scan() and models support it; solve() rejects it: a flow needs the
/// rule, not only a field.
struct Flow {
  bool operator==(const Flow&) const = default;
};

using Method = std::variant<Tableau, Adams, Flow>;

/// Where a stage at the edge of a step evaluates the field. `Inside` moves the first stage just after the
/// start and the last one just before the end, so that a field that jumps between two steps is seen from the
/// correct side. `Shortened` is torchdiffeq 0.1.0's option eps: rk4 integrates from t0 + eps to t1 - eps
/// while the grid advances from t0 to t1, so every step is shorter than its interval by 2 eps; other methods
/// only evaluate their first stage at t0 + eps. It exists to reproduce published runs; `Inside` loses
/// nothing.
enum class StageEdges { AsIs, Inside, Shortened };

/// The precision of times. `Single` rounds grid and stage times to float32 after every operation, as a solve
/// with float32 times does; the field still receives float64. Only if all samples share their times, and
/// without gradients of times.
enum class StageTimes { Double, Single };

/// Steps of one size; 0 means one step from each output time to the next. With times shared by all samples
/// the grid is t0, t0 + size, ..., the last step ends at the last output time, and outputs in between are
/// interpolated. If samples have their own times, each interval between two outputs is divided into equal
/// steps of at most this size.
struct FixedSteps {
  double size = 0;
  StageEdges edges = StageEdges::AsIs;
  double shortening = 1e-5;  ///< eps of StageEdges::Shortened
  StageTimes stage_times = StageTimes::Double;
};

/// Steps between given times: [N + 1], or [N + 1, B] for each sample, from the first to the last output time.
struct GivenSteps {
  Tensor times;
  StageEdges edges = StageEdges::AsIs;  ///< not Shortened
};

/// PerSample: each sample has its own steps, and a result that does not depend on the other samples. Joint:
/// all samples share one step sequence and one norm, as in torchdiffeq.
enum class ErrorControl { PerSample, Joint };

/// Whether the gradient includes the automatic choice of the first step, as in torchdiffeq. Only with joint
/// error control and exact gradients.
enum class FirstStepGradient { None, Through };

/// Step sizes from the error estimate of the method, by torchdiffeq's controller.
///
/// Outputs: steps do not end at output times, and the error of the interpolation between them is not
/// controlled. With stop_times = ts outputs are as accurate as the steps.
///
/// Failures: with error control per sample, a sample that fails keeps the outputs that it has reached, and
/// the others continue; the status is that of the first failure. Check it before a backward pass: the adjoint
/// rejects a batch with failed samples, and a sample whose start is not finite makes the gradients of shared
/// parameters not finite.
struct AdaptiveSteps {
  double rtol = 1e-7, atol = 1e-9;
  ErrorControl control = ErrorControl::PerSample;
  double first_step = 0;  ///< 0: chosen by Hairer's rule
  double smallest_step = 0;
  double largest_step = std::numeric_limits<double>::infinity();
  int64_t max_steps = 1'000'000;  ///< tried steps, accepted or not
  Tensor stop_times =
      {};  ///< steps end here: [J] for all samples or [J, B] for each, in any order, NaN as padding
  Tensor jump_times = {};  ///< steps end here, and the field may jump: likewise
  FirstStepGradient first_step_gradient = FirstStepGradient::None;
};

using Steps = std::variant<FixedSteps, GivenSteps, AdaptiveSteps>;

/// How an output inside a step is interpolated. Quartic needs a method with weights for the middle of the
/// step. Cubic is Hermite's polynomial and costs one evaluation per output.
enum class OutputInterpolation { Linear, Cubic, Quartic };

/// Exact: back-propagation through the recorded solve. Checkpointed: the same gradient, but only some states
/// are kept and the rest is recomputed. Adjoint: the continuous adjoint solved backwards, which is not the
/// gradient of the computed solution, and is wrong where the backward equation is unstable.
enum class Gradient { Exact, Checkpointed, Adjoint };

/// Which errors count in an adaptive backward solve: state and parameters, or the state alone (seminorm).
enum class AdjointNorm { All, StateOnly };

struct SolveOptions {
  Method method = rk4();
  Steps steps = FixedSteps{};
  std::optional<OutputInterpolation> interpolation =
      {};  ///< default: linear for fixed, quartic for adaptive steps

  Gradient gradient = Gradient::Exact;
  /// The tensors that f uses directly, besides t and y. Checkpointed and Adjoint compute gradients only for
  /// these, y0 and ts. None may be computed from another one, or its gradient is counted twice. If f uses a
  /// Control that was constructed outside, the tensor is its coefficients().
  std::vector<Tensor> parameters = {};
  /// Checkpointed: bytes for stored states, in addition to the recording of one step; 0: store about
  /// 2 sqrt(steps) states.
  int64_t memory_limit = 0;
  std::optional<Method> adjoint_method = {};  ///< Adjoint: default is `method`
  /// Adjoint: default is `steps`. Given steps are traversed backwards; this needs outputs at step times (of
  /// their sample) and has no gradients of times. Given steps cannot be set here.
  std::optional<Steps> adjoint_steps = {};
  AdjointNorm adjoint_norm = AdjointNorm::All;

  bool keep_step_log = false;  ///< fill Solution::step_log
};

enum class Outcome { Success, TooManySteps, StepTooSmall, NotFinite };

/// How a solve ended. A solve that fails still returns: outputs that were not reached are NaN.
struct Status {
  Outcome outcome = Outcome::Success;
  int64_t sample = -1;  ///< the sample it failed for
  double time = 0;      ///< the time it had reached
  double step = 0;      ///< the last step size tried
  double norm = 0;      ///< largest absolute value of that sample's state

  explicit operator bool() const { return outcome == Outcome::Success; }
  /// One sentence: what happened, where, and what can be done.
  std::string message() const;
};

/// A step that was tried. If times decrease, t0 decreases from record to record, and dt is still positive.
struct StepRecord {
  double t0, dt;
  int64_t sample;  ///< -1 if all samples step together
  bool accepted;
};

struct Solution {
  Tensor ys;  // [T, ...] like ts before the shape of y0
  Status status;
  int64_t steps = 0;        ///< accepted; if samples have their own steps, the largest number
  int64_t rejected = 0;     ///< rejected attempts of all samples together
  int64_t evaluations = 0;  ///< calls of f
  std::vector<StepRecord> step_log;
};

/// Solves from y0 at ts[0]. ts is float64, [T] for all samples or [T, B] for each (y0 [B, ...]), increasing
/// or decreasing; a sample with fewer times repeats its last one. Differentiable with respect to y0, ts and
/// the tensors that f uses, see options.gradient.
Solution solve(const Field& f, const Tensor& y0, const Tensor& ts, const SolveOptions& options = {});

/// The method of that name: a tableau, explicit_adams, implicit_adams or flow (in files of older versions:
/// exact_flow).
Method method(const std::string& name);

std::string method_name(const Method& method);

/// The names that method() accepts.
std::vector<std::string> method_names();

}  // namespace fastweights

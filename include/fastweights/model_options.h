#pragma once

#include <string>
#include <vector>

#include "fastweights/control.h"
#include "fastweights/logsignature.h"
#include "fastweights/solve.h"

/// Options that several architectures share: control path and solver. In JSON the keys are the names of the
/// members, and enumerators are written in lower case with underscores.

namespace fastweights {

/// Where x(t) comes from. Hold keeps the last observation and has no derivative. LogSignature is constant
/// over windows and has the log-signature of the window for x and x' alike.
enum class ControlKind { NaturalCubic, HermiteCubic, Linear, Rectilinear, Hold, LogSignature };

/// The clock of log-signature windows: one unit per window with the log-signature as it is, or the time of
/// the series with the log-signature divided by the window's duration.
enum class WindowClock { Windows, Time };

/// The published code goes on for one more unit of time after the last window, with its log-signature.
enum class LastWindow { Once, Twice };

struct ControlConfig {
  ControlKind kind = ControlKind::HermiteCubic;
  EndFilling end_filling = EndFilling::WholeGap;  ///< natural cubic splines
  NeverObserved never_observed = NeverObserved::Zero;
  int64_t time_channel = 0;       ///< rectilinear paths
  int64_t depth = 2;              ///< log-signatures, 1 to 5
  int64_t window_increments = 4;  ///< number of increments in a window ...
  double window_duration = 0;     ///< ... or, if positive, of this duration
  WindowTail window_tail = WindowTail::Keep;
  WindowClock clock = WindowClock::Windows;
  LastWindow last_window = LastWindow::Once;
};

/// Observations: a step ends at every knot of the control and at every output, and longer intervals than
/// max_step are cut. Fixed: steps of step_size from each sample's start, and one ends at every output.
/// SharedGrid, as published: the whole batch goes in steps of step_size (0: the smallest gap between times),
/// outputs inside a step are interpolated linearly; needs series that begin and end together. Adaptive: by
/// rtol and atol, and at most max_step. Sizes are in the model's time, which is the series' time divided by
/// time_unit, or windows.
enum class StepRule { Observations, Fixed, SharedGrid, Adaptive };

/// The method that has no error: the solution itself, of a rule that is linear in W under a signal that is
/// constant between observations.
inline constexpr const char* kExactFlow = "exact_flow";

struct SolverConfig {
  std::string method = "rk4";  ///< a tableau, exact_flow, explicit_adams or implicit_adams
  StepRule steps = StepRule::Observations;
  double max_step = 0;  ///< 0: no limit
  double step_size = 0;
  double rtol = 1e-6, atol = 1e-8;
  /// From which side stages at the edge of a step look at the control.
  StageEdges edges = StageEdges::Inside;
  double shortening = 1e-5;  ///< of shortened steps
  StageTimes stage_times = StageTimes::Double;
  ErrorControl error_control = ErrorControl::PerSample;
  FirstStepGradient first_step_gradient = FirstStepGradient::None;
  Gradient gradient = Gradient::Exact;
  /// Bytes beyond the data: a limit of the fused engine, and the size of the checkpoints of the definition.
  /// 0: chosen by the library.
  int64_t memory_limit = 0;
};

}  // namespace fastweights

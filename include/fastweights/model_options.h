#pragma once

#include <variant>

#include "fastweights/control.h"
#include "fastweights/fields.h"
#include "fastweights/logsignature.h"
#include "fastweights/solve.h"

/// Options that several architectures share: control path and solver. In JSON the options of an alternative
/// are next to its name: {"kind": "natural_cubic", "end_filling": "end_point"}; docs/models.md lists the
/// names.

namespace fastweights {

/// The clock of log-signature windows. Windows: one unit per window, and the log-signature is not scaled.
/// Time: the time of the series, and the log-signature is divided by the duration of the window.
enum class WindowClock { Windows, Time };

/// How often the last window is integrated. Twice: as in the published code, which continues for one more
/// unit of time with the log-signature of the last window.
enum class LastWindow { Once, Twice };

/// Holds each observation until the next one; without a derivative. JSON: hold.
struct Hold {};

/// Constant over windows of the series: both x and x' are the log-signature of the window. JSON:
/// log_signature.
struct LogSignatures {
  int64_t depth = 2;  ///< 1 to 5
  Windows windows = PointWindows{};
  WindowClock clock = WindowClock::Windows;
  LastWindow last_window = LastWindow::Once;
};

/// The signal x(t): the paths of control.h, and two signals that are constant between knots.
using ControlPath = std::variant<NaturalCubic, HermiteCubic, Linear, Rectilinear, Hold, LogSignatures>;

struct ControlConfig {
  ControlPath path = HermiteCubic{};
  NeverObserved never_observed = NeverObserved::Zero;
};

/// A step ends at every knot of the control and at every output. JSON: observations.
struct ObservationSteps {
  /// Equal steps between two neighbouring times. 0: two for a flow under a signal that varies between
  /// observations or in a deep model, otherwise one.
  int64_t parts = 0;
  double max_step = 0;  ///< longer steps are divided; 0: no limit
  /// How stages at the edge of a step evaluate the control; not Shortened.
  StageEdges edges = StageEdges::Inside;
};

/// Steps of one size from each sample's start; one ends at every output. JSON: fixed.
struct RegularSteps {
  double size = 0;
  StageEdges edges = StageEdges::Inside;  ///< not Shortened
};

/// The steps of a model. Sizes are in the model's time: the series' time divided by time_unit, or windows.
/// - FixedSteps, JSON shared_grid, as published: one grid for the whole batch, and outputs inside a step are
///   interpolated linearly. Size 0 is the smallest gap between times. Series must begin and end together.
/// - AdaptiveSteps, JSON adaptive: the model sets stop and jump times.
using ModelSteps = std::variant<ObservationSteps, RegularSteps, FixedSteps, AdaptiveSteps>;

struct SolverConfig {
  /// A method that method() knows by name. Empty, JSON auto: flow for fast weights whose rule has one, with
  /// sigmoid rates and without adaptive steps, a shared grid or the adjoint; otherwise rk4.
  std::optional<Method> method = {};
  ModelSteps steps = ObservationSteps{};
  Gradient gradient = Gradient::Exact;
  /// Bytes beyond the data: a limit of the fused engine, and the size of the checkpoints of the definition.
  /// 0: chosen by the library.
  int64_t memory_limit = 0;
};

/// For architectures that have a control path or a solver among their options.
void visit_fields(ControlConfig& control, Fields& visit);
void visit_fields(SolverConfig& solver, Fields& visit);

}  // namespace fastweights

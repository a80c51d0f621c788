#pragma once

#include <string>
#include <vector>

#include "fastweights/backend.h"
#include "fastweights/control.h"
#include "fastweights/logsignature.h"
#include "fastweights/rule.h"
#include "fastweights/solve.h"
#include "fastweights/system_config.h"

/// What a model is, as a value. For fast weight programmers rule, drive, control, method and backend are
/// independent choices; the defaults are sensible ones, and the peculiarities of the published code are
/// options by name (published.h sets them together). In JSON the names are those of the members, and
/// enumerators are written in lower case with underscores.

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
  int64_t window_increments = 4;  ///< windows of so many increments ...
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
  /// Bytes. The fused engine keeps within them beyond the data, if it can; the definition keeps so many of
  /// checkpoints. 0 chooses.
  int64_t memory_limit = 0;
};

/// W(t0): the rule at t0 with W = 0; nothing; static features through a network; or the rule at a learned
/// projection of the first observation (for a tensor map: that projection itself).
enum class InitialWeights { Rule, Zero, StaticFeatures, FirstObservation };

/// When the query looks at the signal: at the output; at the last time of the whole batch, as published; or
/// at the projected first observation.
enum class QueryTime { Output, LastOfBatch, FirstObservation };

/// What the next layer of a deep model reads: W q (the paper), or dW/dt q (the published code; its final
/// readout uses W).
enum class LayerInput { Weights, Update };

struct ModelConfig {
  int64_t channels = 1;         ///< C of the series
  int64_t static_features = 0;  ///< numbers per sample that do not change
  int64_t outputs = 1;

  System system = System::FastWeights;
  std::string rule = "delta_pre";
  Drive drive = Drive::X;
  ControlConfig control = {};
  SolverConfig solver = {};
  Backend backend = Backend::Auto;

  int64_t hidden_size = 32;       ///< d
  int64_t heads = 4;              ///< H
  int64_t key_width = 0;          ///< 0: d / H
  int64_t value_width = 0;        ///< 0: d / H
  int64_t feed_forward_size = 0;  ///< 0: 4 d
  int64_t static_hidden_size = 256;
  int64_t layers = 1;
  LayerInput layer_input = LayerInput::Weights;
  bool residual = false;    ///< around the fast weights; deep models
  bool value_norm = false;  ///< a LayerNorm and one more layer on values that have a projection of their own
  int64_t map_hidden_size = 32;  ///< tensor map
  int64_t map_layers = 2;        ///< tensor map
  FieldConfig field = {};
  RowConfig rows = {};
  LatentConfig latent = {};

  InitialWeights initial = InitialWeights::Rule;
  QueryTime query = QueryTime::Output;
  Read read = Read::Plain;
  LearningRate learning_rate = LearningRate::Sigmoid;
  ValueActivation value_activation = ValueActivation::Tanh;
  double dropout = 0;          ///< in the readout
  double value_dropout = 0;    ///< on values, the same at all times
  double time_unit = 1;        ///< times are divided by this; the median gap of the data is a good one
  bool deterministic = false;  ///< a sample's bits depend on nothing but the sample
  bool unused_layer = false;   ///< the published code's initial_network, which nothing reads

  bool operator==(const ModelConfig&) const;
};

/// Checks that the choices fit together; the message names the key. A choice other than the default that
/// nothing would read is an error. Rules beyond the built-in ones are given.
void check_config(const ModelConfig& config, const std::vector<Rule>& own_rules = {});

/// All keys, with two spaces of indentation.
std::string to_json(const ModelConfig& config);

/// Keys that are absent keep their defaults. An unknown key or name is an error that says which one is
/// nearest.
ModelConfig config_from_json(const std::string& text);

/// The configuration with one key changed: with_setting(config, "control.kind", "linear").
ModelConfig with_setting(const ModelConfig& config, const std::string& key, const std::string& value);

/// The size of the signal that the slow net reads: channels, or the size of a log-signature.
int64_t signal_size(const ModelConfig& config);

}  // namespace fastweights

#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fastweights/control.h"
#include "fastweights/fields.h"
#include "fastweights/rule.h"
#include "fastweights/solve.h"

/// Architectures as values. The configuration of a model contains its sizes and the options of one
/// architecture. Every architecture has its own struct of options, so an option that it does not have does
/// not compile.
///
///     Model model({.channels = 3, .outputs = 2, .architecture = FastWeights{.rule = "oja", .heads = 8}});
///     Model other({.channels = 3, .outputs = 2, .architecture = NeuralCde{.hidden_size = 16}});
///
/// model_config.h, baselines.h and fitted.h define the structs of the library; a program can add its own
/// (docs/adding_an_architecture.md).

namespace fastweights {

// options that several architectures share: control and solver

/// The clock of log-signature windows. Windows: one unit per window, the log-signature is not scaled. Time:
/// the time of the series, the log-signature is divided by the duration of the window.
enum class WindowClock { Windows, Time };

/// How often the last window is integrated; twice in the published code.
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
  /// Equal steps between two neighbouring times. 0: two for a flow in a deep model or under a signal that
  /// varies between observations, otherwise one.
  int64_t parts = 0;
  double max_step = 0;                    ///< longer steps are divided; 0: no limit
  StageEdges edges = StageEdges::Inside;  ///< not Shortened
};

/// Steps of one size from each sample's start; one ends at every output. JSON: fixed.
struct RegularSteps {
  double size = 0;
  StageEdges edges = StageEdges::Inside;  ///< not Shortened
};

/// The steps of a model. Sizes are in solver time: the time of the series divided by time_unit, or windows
/// or knots passed.
/// - FixedSteps, JSON shared_grid, as published: one grid for the whole batch, and outputs inside a step are
///   interpolated linearly. Size 0 is the smallest gap between times. Series must begin and end together.
/// - AdaptiveSteps, JSON adaptive: the model sets stop and jump times.
using ModelSteps = std::variant<ObservationSteps, RegularSteps, FixedSteps, AdaptiveSteps>;

struct SolverConfig {
  /// A method that method() knows by name. Empty, JSON auto: see docs/models.md, Steps.
  std::optional<Method> method = {};
  ModelSteps steps = ObservationSteps{};
  Gradient gradient = Gradient::Exact;
  /// Bytes beyond the data: limit of the fused engine, or of the states that Checkpointed stores. 0:
  /// automatic.
  int64_t memory_limit = 0;
};

void visit_fields(ControlConfig& control, Fields& visit);
void visit_fields(SolverConfig& solver, Fields& visit);

struct ModelConfig;
struct ModelOptions;
struct FitData;
class Network;
struct ArchitectureType;

/// The options of one architecture, of any type that has an ArchitectureType.
class Architecture {
 public:
  /// The function `architecture_type(const Options&)` in the namespace of Options returns the type.
  template <typename Options>
  Architecture(Options options)  // NOLINT: options are an architecture
      : type_(&architecture_type(options)), options_(std::move(options)) {}

  const ArchitectureType& type() const { return *type_; }
  /// The name in JSON, for example "fast_weights".
  std::string name() const;

  /// The options, or null if they are those of another architecture.
  template <typename Options>
  const Options* get_if() const {
    return std::any_cast<Options>(&options_);
  }
  template <typename Options>
  Options* get_if() {
    return std::any_cast<Options>(&options_);
  }
  /// The options; an error if they are those of another architecture.
  template <typename Options>
  const Options& get() const {
    if (!get_if<Options>()) refuse(Architecture(Options{}));
    return *get_if<Options>();
  }
  template <typename Options>
  Options& get() {
    if (!get_if<Options>()) refuse(Architecture(Options{}));
    return *get_if<Options>();
  }

 private:
  [[noreturn]] void refuse(const Architecture& expected) const;

  const ArchitectureType* type_;
  std::any options_;
};

/// The properties of a data set that default options depend on.
struct DataShape {
  int64_t channels = 1, static_features = 0, outputs = 1;
  int64_t known_channels = 0;  ///< leading channels that are always observed: time and counts
  double median_gap = 1;       ///< between neighbouring times
  double length = 0;           ///< of a typical series, in rows
  int64_t series = 0, rows = 0, longest = 0, shortest = 0;  ///< of training, with a known class or target
  double dropout = 0;                                       ///< a rate that suits the number of series
  bool per_row = false;                                     ///< whether the task has an output at every row
};

/// A name for `--model` and `RunSetup::model`: an architecture with some of its options set.
struct NamedModel {
  std::string name;       ///< "delta-cde"
  std::string sentence;   ///< description in one line
  std::string reference;  ///< where it was published
  /// Options that suit data of this shape.
  std::function<Architecture(const DataShape& shape)> options;
};

/// The devices on which an architecture runs.
enum class Devices { Cpu, CpuAndCuda };
/// Tasks of an architecture. Series: classification and regression only. Channels: forecasts, imputation.
enum class Tasks { All, Series, Channels };

/// Everything that the library knows about an architecture: its row in the registry. The functions receive
/// options as an Architecture; make_architecture_type() creates them from functions on the Options struct.
struct ArchitectureType {
  std::vector<std::string> names;  ///< in JSON; if there are several, the options select one of them
  std::function<std::string(const Architecture&)> name;
  /// Default options under one of the names.
  std::function<Architecture(const std::string& name)> defaults;
  std::function<void(Architecture&, Fields&)> fields;
  /// Throws std::invalid_argument with the key and the reason.
  std::function<void(const ModelConfig&, const std::vector<Rule>& custom_rules)> check;
  std::function<std::shared_ptr<const Network>(const ModelConfig&, const ModelOptions&)> make;
  /// The member of the options that holds the solver; empty for an architecture without a solver.
  std::function<SolverConfig*(Architecture&)> solver;
  /// Fits the parameters to all training data at once and returns a note; empty: they are trained by steps.
  std::function<std::string(const ModelConfig&, const Network&, const FitData&)> fit;
  Devices devices = Devices::Cpu;
  Tasks tasks = Tasks::All;
  std::vector<NamedModel> models;
};

inline std::string Architecture::name() const { return type_->name(*this); }

/// Registers an architecture, so that files, `--model` and comparisons find it by name. The type must exist
/// until the program ends. A name that is already registered is an error; registering a type twice is not.
void add_architecture(const ArchitectureType& type);

/// All registered architectures: those of the library, then the added ones.
std::vector<const ArchitectureType*> all_architectures();

/// The named models of all architectures, and their names.
std::vector<NamedModel> named_models();
std::vector<std::string> model_names();

/// The configuration of a named model for data of this shape. An unknown name is an error.
ModelConfig named_model(const std::string& name, const DataShape& shape);

}  // namespace fastweights

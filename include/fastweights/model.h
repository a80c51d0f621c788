#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/control.h"
#include "fastweights/model_config.h"
#include "fastweights/ragged.h"
#include "fastweights/solve.h"

/// Sequence models: ragged series in, one output per sample or per time asked for.
///
///     Model model({.channels = 3, .outputs = 2});
///     const Tensor logits = model.forward({.series = series}).outputs;
///
/// The definition is a composition of plain LibTorch operations on control paths and solvers
/// (Backend::Reference). The fused engine computes the same numbers up to rounding, wherever it can.

namespace fastweights {

/// Fast weights of a batch at some time.
struct FastWeightState {
  std::vector<Tensor> w;  // per layer [B, H, V, K]
  Tensor t;               // [B] float64, in the time of the series
};

struct ModelInput {
  RaggedSeries series;
  Tensor static_features = {};  // [B, F], if the model has them
  /// Times per sample at which outputs are requested, rising; default: the end of each series.
  std::optional<RaggedTimes> output_times = {};
  /// Continue from here instead of W(t0).
  std::optional<FastWeightState> start = {};
};

/// How the fused engine cuts a solve, and what that takes.
struct MemoryPlan {
  int64_t steps = 0;        ///< of the longest sample
  int64_t blocks = 1;       ///< of time; more than one are computed again in a backward pass
  int64_t block_steps = 0;  ///< in each of them
  int64_t checkpoint = 0;   ///< steps between two kept states inside a block
  int64_t bytes = 0;        ///< estimated peak of a training step beyond the data

  /// One sentence.
  std::string message() const;
};

struct ModelOutput {
  Tensor outputs;  // [M, O]: one row per output time, or per sample
  Tensor times;    // [M] float64
  Tensor offsets;  // [B + 1]: rows of each sample
  /// Per layer [M, H, V, K]: fast weights at the outputs. Systems without any have their state there, [M, 1,
  /// 1, d].
  std::vector<Tensor> w;
  FastWeightState last;  // at each sample's last output; `start` of a later call
  Status status;         // of the solve
  int64_t steps = 0, evaluations = 0;
  /// Scalar that training adds to the task's loss, such as the divergence of a variational model; or
  /// undefined.
  Tensor auxiliary_loss = {};
  std::string backend;  ///< that ran: reference, cpu-avx512, cpu-avx2, cpu-baseline or cuda
  MemoryPlan plan;      ///< of the fused engine
};

enum class Mode { Evaluate, Train };

struct ForwardOptions {
  Mode mode = Mode::Evaluate;  ///< Train: with dropout
  uint64_t seed = 0;           ///< of dropout
  /// Called with every time at which the signal is evaluated, its value and its derivative [B, C].
  std::function<void(const Time&, const Samples&)> observe = {};
};

struct ModelOptions {
  uint64_t seed = 1;  ///< of the initial parameters, the same numbers on every machine
  at::ScalarType type = at::kFloat;
  std::vector<Rule> own_rules = {};  ///< that config.rule may name
  at::Device device = at::kCPU;      ///< of the parameters, and of all the work; a GPU takes float32
};

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

class Network;

/// How often a prepared batch is used. Often: on the CPU, too, the signal is sampled at all steps in advance
/// where memory allows; otherwise block by block in every pass.
enum class Reuse { Once, Often };

/// An input on the device of a model, with all that does not depend on parameters: checks, steps, and the
/// signal at all of their stages.
class PreparedBatch {
 public:
  /// What an architecture prepares.
  class Contents;

  explicit PreparedBatch(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

  int64_t samples() const;
  /// Bytes that it holds beyond the input.
  int64_t bytes() const;
  /// Some of its samples, in this order. Samples that depend on each other (QueryTime::LastOfBatch,
  /// StepRule::SharedGrid) cannot be selected once the signal is sampled.
  PreparedBatch select(const std::vector<int64_t>& samples) const;

  const Contents& contents() const { return *contents_; }

 private:
  std::shared_ptr<const Contents> contents_;
};

/// A model of any architecture: what is trained, evaluated, saved and compared. A copy shares the parameters.
class Model {
 public:
  explicit Model(const ModelConfig& config, const ModelOptions& options = {});

  /// Differentiable with respect to the parameters, the series' values, the static features and the start.
  /// Only fast weight programmers take a `start`. It is forward(prepare(input, Reuse::Once)).
  ModelOutput forward(const ModelInput& input, const ForwardOptions& options = {}) const;

  PreparedBatch prepare(const ModelInput& input, Reuse reuse = Reuse::Often) const;
  /// On a GPU this pass synchronises with nothing, so its status is always good.
  ModelOutput forward(const PreparedBatch& batch, const ForwardOptions& options = {}) const;

  const ModelConfig& config() const;
  /// Whether it solves an equation, so that there are methods, steps and several ways to its gradient.
  bool has_solver() const;
  /// Method, steps and gradient do not belong to the parameters and may change, for this copy alone.
  void set_solver(const SolverConfig& solver);
  /// In a fixed order; changed in place they change the model.
  const NamedParameters& parameters() const&;
  NamedParameters parameters() &&;
  std::vector<Tensor> parameter_tensors() const;
  int64_t parameter_count() const;

  at::Device device() const;
  /// An error that says why this model cannot be computed where it is.
  void check_device() const;
  /// A copy with parameters of its own on that device; only fast weight programmers go to a GPU.
  Model to(const at::Device& device) const;
  /// What a training step on this input will take, without doing it; the definition has no plan.
  std::optional<MemoryPlan> plan(const ModelInput& input) const;

  /// The architecture with its parameters.
  const std::shared_ptr<const Network>& network() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

/// Writes parameters as safetensors with the configuration in the metadata.
void save_model(const std::string& path, const Model& model);

/// Reads such a file. Rules beyond the built-in ones must be given.
Model load_model(const std::string& path, const std::vector<Rule>& own_rules = {});

/// The median gap between neighbouring times, over all samples: a good time_unit.
double median_gap(const RaggedSeries& series);

}  // namespace fastweights

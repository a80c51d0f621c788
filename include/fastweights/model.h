#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/control.h"
#include "fastweights/model_config.h"
#include "fastweights/solve.h"
#include "fastweights/tensor.h"

/// Sequence models: from ragged series to one output per sample or per requested time.
///
///     Model model({.channels = 3, .outputs = 2});
///     const Tensor logits = model.forward({.series = series}).outputs;
///
/// The definition is a composition of plain LibTorch operations on control paths and solvers
/// (Backend::Reference). The fused engine computes the same values up to rounding, where it supports the
/// configuration.

namespace fastweights {

/// Fast weights of a batch at some time.
struct FastWeightState {
  std::vector<Tensor> w;  // per layer [B, H, V, K]
  Tensor t;               // [B] float64, in the time of the series
};

struct ModelInput {
  RaggedSeries series;
  Tensor static_features = {};  // [B, F], if the model has them
  /// Times per sample at which outputs are requested, increasing; default: the end of each series.
  std::optional<RaggedTimes> output_times = {};
  /// Continue from here instead of W(t0).
  std::optional<FastWeightState> start = {};
};

/// How the fused engine divides a solve into blocks, and the memory that it needs.
struct MemoryPlan {
  int64_t steps = 0;        ///< of the longest sample
  int64_t blocks = 1;       ///< of time; if there are several, a backward pass recomputes them
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
  /// Per layer [M, H, V, K]: fast weights at the outputs. Architectures without fast weights return their
  /// state, [M, 1, 1, d].
  std::vector<Tensor> w;
  FastWeightState last;  // at the last output of each sample; `start` of a later call
  Status status;         // of the solve
  int64_t steps = 0, evaluations = 0;
  /// Scalar that training adds to the task loss, such as the KL divergence of a variational model; or
  /// undefined.
  Tensor auxiliary_loss = {};
  std::string backend;  ///< the one that ran: reference, cpu-avx512, cpu-avx2, cpu-baseline or cuda
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
  uint64_t seed = 1;  ///< of the initial parameters, which are the same on every machine
  at::ScalarType type = at::kFloat;
  std::vector<Rule> custom_rules = {};  ///< custom rules, which FastWeights::rule may name
  at::Device device = at::kCPU;         ///< of computation; on a GPU fast weight programmers need float32
};

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

class Network;

/// How often a prepared batch is used. Often: the CPU also samples the signal at all steps in advance if
/// memory allows; otherwise it samples block by block in every pass.
enum class Reuse { Once, Often };

/// A checked input on the device of a model, with everything that does not depend on parameters: the steps,
/// and the signal at all of their stages.
class PreparedBatch {
 public:
  /// Architecture-specific contents.
  class Contents;

  explicit PreparedBatch(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

  int64_t samples() const;
  /// Memory in bytes beyond the input.
  int64_t bytes() const;
  /// The given samples, in the given order. Samples that depend on each other (QueryTime::LastOfBatch,
  /// FixedSteps) cannot be selected once the signal is sampled.
  PreparedBatch select(const std::vector<int64_t>& samples) const;

  const Contents& contents() const { return *contents_; }

 private:
  std::shared_ptr<const Contents> contents_;
};

/// A model of any architecture, to train, evaluate, save and compare. A copy shares the parameters.
class Model {
 public:
  explicit Model(const ModelConfig& config, const ModelOptions& options = {});

  /// Differentiable with respect to the parameters, the series' values, the static features and the start.
  /// Only fast weight programmers accept a `start`. Equivalent to forward(prepare(input, Reuse::Once)).
  ModelOutput forward(const ModelInput& input, const ForwardOptions& options = {}) const;

  PreparedBatch prepare(const ModelInput& input, Reuse reuse = Reuse::Often) const;
  /// On a GPU this pass does not synchronise, so its status is always success.
  ModelOutput forward(const PreparedBatch& batch, const ForwardOptions& options = {}) const;

  const ModelConfig& config() const;
  /// Whether it solves a differential equation, and so has a method, steps and a gradient mode.
  bool has_solver() const;
  /// Replaces method, steps and gradient mode of this copy only; the parameters stay shared.
  void set_solver(const SolverConfig& solver);
  /// In a fixed order. In-place changes of the tensors change the model.
  const NamedParameters& parameters() const&;
  NamedParameters parameters() &&;
  std::vector<Tensor> parameter_tensors() const;
  int64_t parameter_count() const;

  at::Device device() const;
  /// Throws an error with the reason if the model cannot run on its device.
  void check_device() const;
  /// A copy with separate parameters on the device; fitted architectures are an error on a GPU.
  Model to(const at::Device& device) const;
  /// The memory plan of a training step on this input; empty for the reference backend.
  std::optional<MemoryPlan> plan(const ModelInput& input) const;

  /// The architecture with its parameters.
  const std::shared_ptr<const Network>& network() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

/// Writes parameters as safetensors with the configuration in the metadata.
void save_model(const std::string& path, const Model& model);

/// Reads such a file. Custom rules must be passed.
Model load_model(const std::string& path, const std::vector<Rule>& custom_rules = {});

/// The median gap between neighbouring times, over all samples: a good time_unit.
double median_gap(const RaggedSeries& series);

}  // namespace fastweights

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

/// Continuous-time fast weight programmers: ragged series in, one output per sample or per time asked for.
///
///     FastWeightProgrammer model({.channels = 3, .outputs = 2});
///     const Tensor logits = model.forward({.series = series}).outputs;
///
/// The definition are plain LibTorch operations on control paths and solvers (Backend::Reference). The fused
/// engine computes the same numbers up to rounding, wherever it can.

namespace fastweights {

/// Fast weights of a batch at some time.
struct FastWeights {
  std::vector<Tensor> w;  // per layer [B, H, V, K]
  Tensor t;               // [B] float64, in the time of the series
};

struct ModelInput {
  RaggedSeries series;
  Tensor static_features = {};  // [B, F], if the model has them
  /// Times per sample at which outputs are wanted, rising; default: the end of each series.
  std::optional<RaggedTimes> output_times = {};
  /// Go on from here instead of W(t0).
  std::optional<FastWeights> start = {};
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
  FastWeights last;  // at each sample's last output; `start` of a later call
  Status status;     // of the solve
  int64_t steps = 0, evaluations = 0;
  /// Of a training pass of a variational system: what its loss has besides the task's, a number.
  Tensor further_loss = {};
  std::string backend;  ///< that ran: reference, cpu-avx512, cpu-avx2, cpu-baseline or cuda
  MemoryPlan plan;      ///< of the fused engine
};

enum class Mode { Evaluate, Train };

struct ForwardOptions {
  Mode mode = Mode::Evaluate;  ///< Train: with dropout
  uint64_t seed = 0;           ///< of dropout
  /// On a GPU: a number [1] int64 in its memory that is added to the seed, so that recorded work can draw
  /// other masks each time.
  Tensor more_seed = {};
  /// Called with every time at which the signal was looked at, and what was there: value and derivative [B,
  /// C].
  std::function<void(const Time&, const Samples&)> observe = {};
};

struct ModelOptions {
  uint64_t seed = 1;  ///< of the initial parameters, the same numbers on every machine
  at::ScalarType type = at::kFloat;
  std::vector<Rule> own_rules = {};  ///< that config.rule may name
  at::Device device = at::kCPU;      ///< of the parameters, and of all the work; a GPU takes float32
};

struct Resident;

/// An input in the memory of a GPU, with all that does not depend on parameters: steps, and the signal at all
/// of their stages. It is made once and used for many passes.
class PreparedInput {
 public:
  explicit PreparedInput(std::shared_ptr<const Resident> resident) : resident_(std::move(resident)) {}

  int64_t samples() const;
  /// Bytes on the device.
  int64_t bytes() const;
  /// Some of its samples, in this order. Samples that depend on others (QueryTime::LastOfBatch,
  /// StepRule::SharedGrid) cannot be picked.
  PreparedInput select(const std::vector<int64_t>& samples) const;
  const Resident& resident() const { return *resident_; }

 private:
  std::shared_ptr<const Resident> resident_;
};

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// A copy shares the parameters.
class FastWeightProgrammer {
 public:
  explicit FastWeightProgrammer(const ModelConfig& config, const ModelOptions& options = {});

  /// Differentiable with respect to the parameters, the series' values, the static features and the start.
  ModelOutput forward(const ModelInput& input, const ForwardOptions& options = {}) const;

  /// The same on a GPU, in two parts: a pass on a prepared input waits for nothing and looks at nothing on
  /// the CPU, so its status is always good.
  PreparedInput prepare(const ModelInput& input) const;
  ModelOutput forward(const PreparedInput& input, const ForwardOptions& options = {}) const;
  /// Whether a training step on it is one piece of work that can be recorded as a CUDA graph; it is not where
  /// the memory wants blocks of time, or a linear rule pieces of time side by side.
  bool can_record(const PreparedInput& input) const;
  /// Whether rows that are there without being used would cost such a step time.
  bool rows_cost_time() const;

  /// What a training step on this input will take, without doing it; the definition has no plan.
  std::optional<MemoryPlan> plan(const ModelInput& input) const;
  MemoryPlan plan(const PreparedInput& input) const;

  const ModelConfig& config() const;
  /// Method, steps and gradient do not belong to the parameters and may change, for this copy alone.
  void set_solver(const SolverConfig& solver);
  /// In a fixed order; changed in place they change the model.
  const NamedParameters& parameters() const&;
  NamedParameters parameters() &&;
  std::vector<Tensor> parameter_tensors() const;
  int64_t parameter_count() const;

  at::Device device() const;
  /// An error that says why this model cannot be computed where it is; the CPU can do all of them.
  void check_device() const;
  /// A copy with parameters of its own on that device.
  FastWeightProgrammer to(const at::Device& device) const;
  /// On a GPU all parameters stand in one piece of memory, in their order; on the CPU this is undefined.
  Tensor flat_parameters() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;  // shared with backward passes that are still to come
};

/// Reads a file of save_model() (sequence_model.h). Rules beyond the built-in ones must be given.
FastWeightProgrammer load_model(const std::string& path, const std::vector<Rule>& own_rules = {});

/// The median gap between neighbouring times, over all samples: a good time_unit.
double median_gap(const RaggedSeries& series);

}  // namespace fastweights

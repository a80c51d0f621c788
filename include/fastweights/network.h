#pragma once

#include "fastweights/model.h"

/// The interface of an architecture, through which a Model prepares, computes, trains and saves. Programs
/// that add an architecture include this header and model_config.h.

namespace fastweights {

/// Rows of a batch, or of one of its samples.
struct BatchRows {
  int64_t steps = 0;
  int64_t states = 0;  ///< that outputs are made from
  int64_t outputs = 0;
};

/// An input as an architecture prepares it; immutable, so that many passes can use it.
class PreparedBatch::Contents {
 public:
  virtual ~Contents() = default;

  virtual int64_t samples() const = 0;
  virtual int64_t bytes() const { return 0; }
  virtual PreparedBatch select(const std::vector<int64_t>& samples) const = 0;
  /// Whether select() copies rows; otherwise it prepares the samples again, or throws.
  virtual bool separable() const { return true; }

  /// What each sample takes of the batch. This and the functions below are for training steps that are
  /// recorded once and replayed on other batches (Network::can_record).
  virtual std::vector<BatchRows> sample_rows() const { return {}; }
  /// A copy with capacity for this number of rows, at fixed addresses. The outputs of a pass have
  /// `rows.outputs` rows; rows that a batch does not use have finite values without a meaning.
  virtual std::shared_ptr<Contents> with_capacity(const BatchRows& rows) const;
  /// Whether another batch can be copied into this one: as many samples, and at most as many rows.
  virtual bool can_assign(const Contents& batch) const;
  virtual void assign(const Contents& batch) const;
};

struct PassOptions : ForwardOptions {
  /// On a GPU: int64 [1], added to the seed, so that a replayed graph draws new masks.
  Tensor device_seed = {};
};

/// Parameters, and the computation with them. Immutable except for the values of the parameters.
class Network : public std::enable_shared_from_this<Network> {
 public:
  virtual ~Network() = default;

  virtual PreparedBatch prepare(const ModelInput& input, Reuse reuse) const = 0;
  virtual ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const = 0;

  /// In a fixed order.
  virtual const NamedParameters& parameters() const = 0;
  /// A network with another solver that shares the parameters.
  virtual std::shared_ptr<const Network> with_solver(const SolverConfig& solver) const = 0;

  virtual at::Device device() const { return at::kCPU; }
  /// Throws an error with the reason if the network cannot run on its device.
  virtual void check_device() const {}
  /// A copy with separate parameters on the device.
  virtual std::shared_ptr<const Network> to(const at::Device& device) const = 0;

  /// The memory plan of a training step on the batch, if there is one.
  virtual std::optional<MemoryPlan> plan(const PreparedBatch& batch) const;

  /// Whether a training step on the batch can be recorded as a CUDA graph: it must not be divided into blocks
  /// of time or parallel pieces of time.
  virtual bool can_record(const PreparedBatch& batch) const;
  /// Whether padding of a recorded batch slows down a replayed step.
  virtual bool padding_is_costly() const { return true; }
  /// On a GPU: all parameters in one contiguous tensor, in order; otherwise undefined.
  virtual Tensor flat_parameters() const { return {}; }
};

/// The data that an architecture is fitted to (ArchitectureType::fit).
struct FitData {
  struct Part {
    ModelInput input;
    Tensor classes;  // [B] int64, all known; or undefined
    Tensor targets;  // [B, O] or, at the requested times, [M, O]; NaN: unknown; or undefined
  };
  Part train;
  std::optional<Part> validation;  ///< to choose hyper-parameters
  uint64_t seed = 1;
};

/// The contents of a batch, as this type of network prepares them.
template <typename Contents>
const Contents& contents_of(const PreparedBatch& batch);

/// Outputs at the requested times.
ModelOutput make_output(const Tensor& outputs, const RaggedTimes& times, std::vector<Tensor> w,
                        FastWeightState last);

/// Reports the first output that is not finite: its sample and time, and the largest fast weight there.
Status finite_status(const ModelOutput& output);

/// Those of the given samples, in the given order.
RaggedTimes select_samples(const RaggedTimes& times, const std::vector<int64_t>& samples);
ModelInput select_samples(const ModelInput& input, const std::vector<int64_t>& samples);

/// Rows offsets[b] .. offsets[b + 1] - 1 of the given samples, one sample after another.
std::vector<int64_t> selected_rows(const Tensor& offsets, const std::vector<int64_t>& samples);

[[noreturn]] void refuse_batch();

template <typename Contents>
const Contents& contents_of(const PreparedBatch& batch) {
  const auto* contents = dynamic_cast<const Contents*>(&batch.contents());
  if (!contents) refuse_batch();
  return *contents;
}

/// A checked input; values and static features have the type of the model.
struct CheckedInput {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes requested;
  bool at_ends = false;  // no output times were given: outputs are at the ends
};

/// Base class of all baselines of the library, and of custom architectures
/// (docs/adding_an_architecture.md). A derived class creates its parameters in the constructor and implements
/// forward() and copy(). Every pass receives the configuration, since the solver may change while the
/// parameters stay. By default a prepared batch is the checked input, which is on the CPU; a class that
/// supports GPUs overrides prepare() and forward(), too.
class Baseline : public Network {
 public:
  explicit Baseline(const ModelConfig& config) : config_(config) {}

  /// Checks the input; a start is rejected.
  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const override;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const override;

  const NamedParameters& parameters() const override { return parameters_; }
  std::shared_ptr<const Network> with_solver(const SolverConfig& solver) const override;
  at::Device device() const override {
    return parameters_.empty() ? at::Device(at::kCPU) : parameters_[0].second.device();
  }
  std::shared_ptr<const Network> to(const at::Device& device) const override;
  Tensor flat_parameters() const override { return flat_; }

  at::ScalarType type() const {
    return parameters_.empty() ? at::kFloat : parameters_[0].second.scalar_type();
  }

 protected:
  virtual ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                              const ForwardOptions& options) const = 0;
  /// A copy that shares the parameters.
  virtual std::shared_ptr<Baseline> copy() const = 0;

  const ModelConfig& config() const { return config_; }
  /// The input after all checks; a start is rejected.
  CheckedInput check(const ModelInput& input) const;
  /// Moves the parameters to the device; at the end of a constructor.
  void place(const at::Device& device);

  NamedParameters parameters_;

 private:
  ModelConfig config_;
  Tensor flat_;  // [P]: all parameters, on a GPU
};

}  // namespace fastweights

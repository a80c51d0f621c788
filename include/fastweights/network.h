#pragma once

#include "fastweights/model.h"

/// The interface of an architecture: what a Model prepares, computes, trains and saves. Programs that add an
/// architecture include this header and architecture_spec.h.

namespace fastweights {

/// An input as an architecture prepares it. Constant, so that it can be used for many passes.
class PreparedBatch::Contents {
 public:
  virtual ~Contents() = default;

  virtual int64_t samples() const = 0;
  virtual int64_t bytes() const { return 0; }
  virtual PreparedBatch select(const std::vector<int64_t>& samples) const = 0;
  /// Whether select() copies rows; otherwise it prepares the samples again, or refuses.
  virtual bool separable() const { return true; }

  /// For training steps that are recorded once and replayed on other batches (Network::can_record).
  /// Steps of each sample; empty for batches without steps.
  virtual std::vector<int64_t> step_counts() const { return {}; }
  /// A copy with room for this many steps in all, at fixed addresses.
  virtual std::shared_ptr<Contents> with_capacity(int64_t steps) const;
  /// Whether another batch can be copied into this one: as many samples and outputs, no more steps.
  virtual bool can_assign(const Contents& batch) const;
  virtual void assign(const Contents& batch) const;
};

struct PassOptions : ForwardOptions {
  /// On a GPU: int64 scalar [1] that is added to the seed, so that a replayed graph draws new masks.
  Tensor device_seed = {};
};

/// Parameters and what to do with them. Immutable but for the values of the parameters.
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
  /// An error that says why this network cannot be computed where it is.
  virtual void check_device() const {}
  /// A copy with parameters of its own on that device.
  virtual std::shared_ptr<const Network> to(const at::Device& device) const = 0;

  /// What a training step on the batch will take; none where there is no plan.
  virtual std::optional<MemoryPlan> plan(const PreparedBatch& batch) const;

  /// Whether a training step on the batch can be recorded as a CUDA graph: it is not cut into blocks of time,
  /// nor computed in pieces of time side by side.
  virtual bool can_record(const PreparedBatch& batch) const;
  /// Whether unused rows of a recorded batch would cost a replayed step time.
  virtual bool padding_is_costly() const { return true; }
  /// Whether a recorded batch must be as long as the first one.
  virtual bool needs_exact_rows() const { return false; }
  /// On a GPU: all parameters in one piece of memory, in their order; otherwise undefined.
  virtual Tensor flat_parameters() const { return {}; }
};

/// The contents of a batch that a network of this kind prepared.
template <typename Contents>
const Contents& contents_of(const PreparedBatch& batch);

/// Outputs at the requested times.
ModelOutput make_output(const Tensor& outputs, const RaggedTimes& times, std::vector<Tensor> w,
                        FastWeightState last);

/// Which output is not finite, if one is: its sample and time, and the largest fast weight there.
Status finite_status(const ModelOutput& output);

/// What the input says of some samples, in this order.
ModelInput select_samples(const ModelInput& input, const std::vector<int64_t>& samples);

/// Rows first[b] .. first[b + 1] of the chosen samples, one sample after another.
std::vector<int64_t> selected_rows(const Tensor& offsets, const std::vector<int64_t>& samples);

[[noreturn]] void refuse_batch();

template <typename Contents>
const Contents& contents_of(const PreparedBatch& batch) {
  const auto* contents = dynamic_cast<const Contents*>(&batch.contents());
  if (!contents) refuse_batch();
  return *contents;
}

/// What all architectures read of an input, after checks; values and static features have this type.
struct CheckedInput {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes requested;
  bool at_ends = false;  // no output times were given: outputs are at the ends
};

/// Base of architectures that compute from the checked input on the CPU: all baselines of the library, and
/// those of programs (docs/adding_an_architecture.md). A derived class makes its parameters in the
/// constructor and implements forward() and copy(). The configuration comes with every pass, since a solver
/// may change while the parameters stay.
class Baseline : public Network {
 public:
  explicit Baseline(const ModelConfig& config) : config_(config) {}

  /// The input after checks; a start is refused.
  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const override;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const final;

  const NamedParameters& parameters() const override { return parameters_; }
  std::shared_ptr<const Network> with_solver(const SolverConfig& solver) const override;
  std::shared_ptr<const Network> to(const at::Device& device) const override;

  at::ScalarType type() const { return parameters_[0].second.scalar_type(); }

 protected:
  virtual ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                              const ForwardOptions& options) const = 0;
  /// A copy that shares the parameters.
  virtual std::shared_ptr<Baseline> copy() const = 0;

  NamedParameters parameters_;

 private:
  ModelConfig config_;
};

}  // namespace fastweights

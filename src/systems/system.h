#pragma once

#include <memory>
#include <optional>

#include "fastweights/model.h"
#include "model/batch.h"
#include "model/config_checks.h"
#include "model/network.h"
#include "nn/layers.h"

/// Baselines: architectures that fast weight programmers in continuous time are compared with.

namespace fastweights {

/// Owns its parameters. The configuration comes with every pass, since a solver may change while the
/// parameters stay.
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

/// The network of a configuration, after checks.
std::shared_ptr<const Network> make_network(const ModelConfig& config, const ModelOptions& options);

// checks that several baselines share

/// Continuous ones: control, solver, and a backend, which can only be the reference.
void check_continuous(const SharedOptions& options, Backend backend);
/// Those that go from row to row.
void check_rows(const SharedOptions& options);
void check_published_rows(const SharedOptions& options, const RowConfig& rows);
void check_heads(int64_t hidden_size, int64_t heads, int64_t feed_forward_size);
/// Parameters of input, state and head, roughly.
double base_parameters(const SharedOptions& options, int64_t layers = 1);
double field_parameters(double state, double hidden, int64_t layers, double out);
double feed_forward_parameters(double state, int64_t feed_forward_size, int64_t layers);

/// Static features through one hidden layer of relus: [B, F] to [B, size].
struct StaticNet {
  nn::Linear hidden, out;

  Tensor operator()(const Tensor& features) const { return linear(out, at::relu(linear(hidden, features))); }
};
/// None where the model has no static features.
std::optional<StaticNet> make_static_net(const SharedOptions& config, int64_t size, nn::ParameterMaker& make);

/// outputs = head(state) from states [M, d] at the outputs, with dropout on them in training, and what a
/// ModelOutput says besides. `w` [M, H, V, K] are fast weights; undefined: the states stand there.
ModelOutput read_states(const SharedOptions& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w = {});

/// Each sample's last output: rows of [M, ...], zeros for a sample without one.
Tensor last_rows(const Tensor& rows, const Tensor& offsets);

}  // namespace fastweights

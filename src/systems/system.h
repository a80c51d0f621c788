#pragma once

#include <memory>
#include <optional>

#include "fastweights/model.h"
#include "model/batch.h"
#include "model/network.h"
#include "nn/layers.h"

/// Baselines. Each is a class that owns its parameters; what the configuration says about method and
/// gradients comes with every call.

namespace fastweights {

class ComparedSystem : public Network {
 public:
  /// The input after checks; a start is refused.
  PreparedBatch prepare(const ModelInput& input, Reuse reuse) const override;
  ModelOutput forward(const PreparedBatch& batch, const PassOptions& options) const final;

  const NamedParameters& parameters() const override { return parameters_; }
  std::shared_ptr<const Network> with_solver(const SolverConfig& solver) const override;
  std::shared_ptr<const Network> to(const at::Device& device) const override;

  at::ScalarType type() const { return parameters_[0].second.scalar_type(); }
  /// A system with this configuration that shares the parameters.
  std::shared_ptr<const ComparedSystem> with_config(const ModelConfig& config) const;

 protected:
  virtual ModelOutput forward(const ModelConfig& config, const CheckedInput& checked,
                              const ForwardOptions& options) const = 0;
  /// A copy that shares the parameters.
  virtual std::shared_ptr<ComparedSystem> copy() const = 0;

  NamedParameters parameters_;

 private:
  ModelConfig config_;
};

/// The system that the configuration names, with parameters drawn from the seed.
std::shared_ptr<const ComparedSystem> make_system(const ModelConfig& config, const ModelOptions& options);

// one maker for each file of systems
std::shared_ptr<const ComparedSystem> make_neural_cde(const ModelConfig& config, const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_gru_ode(const ModelConfig& config, const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_observed_gru(const ModelConfig& config,
                                                        const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_recurrent(const ModelConfig& config, const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_discrete_fwp(const ModelConfig& config,
                                                        const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_ode_rfwp(const ModelConfig& config, const ModelOptions& options);
std::shared_ptr<const ComparedSystem> make_latent_ode(const ModelConfig& config, const ModelOptions& options);

/// x W^T + b; a layer may have no bias.
Tensor linear(const nn::Linear& layer, const Tensor& x);
Tensor layer_norm(const nn::LayerNorm& layer, const Tensor& x);

/// Static features through one hidden layer of relus: [B, F] to [B, size].
struct StaticNet {
  nn::Linear hidden, out;

  Tensor operator()(const Tensor& features) const { return linear(out, at::relu(linear(hidden, features))); }
};
/// None where the model has no static features.
std::optional<StaticNet> make_static_net(const ModelConfig& config, int64_t size, nn::ParameterMaker& make);

/// outputs = head(state) from states [M, d] at the outputs, with dropout on them in training, and what a
/// ModelOutput says besides. `w` [M, H, V, K] are fast weights; undefined: the states stand there.
ModelOutput read_states(const ModelConfig& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w = {});

/// Each sample's last output: rows of [M, ...], zeros for a sample without one.
Tensor last_rows(const Tensor& rows, const Tensor& offsets);

}  // namespace fastweights

#pragma once

#include <memory>
#include <optional>

#include "fastweights/model.h"
#include "model/batch.h"
#include "nn/layers.h"

/// Systems that fast weight programmers in continuous time are compared with. Each is a class that owns its
/// parameters; what the configuration says about method and gradients comes with every call.

namespace fastweights {

class ComparedSystem : public std::enable_shared_from_this<ComparedSystem> {
 public:
  virtual ~ComparedSystem() = default;

  virtual ModelOutput forward(const ModelConfig& config, const ModelInput& input,
                              const ForwardOptions& options) const = 0;

  const NamedParameters& parameters() const { return parameters_; }
  at::ScalarType type() const { return parameters_[0].second.scalar_type(); }

 protected:
  NamedParameters parameters_;
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

/// Static features through one hidden layer of relus: [B, F] to [B, size].
struct StaticNet {
  nn::Linear hidden, out;

  Tensor operator()(const Tensor& features) const { return linear(out, at::relu(linear(hidden, features))); }
};
/// None where the model has no static features.
std::optional<StaticNet> make_static_net(const ModelConfig& config, int64_t size, nn::ParameterMaker& make);

/// The input after checks; a start is refused.
CheckedInput check_system_input(const ModelConfig& config, at::ScalarType type, const ModelInput& input);

/// outputs = head(state) from states [M, d] at the outputs, with dropout on them in training, and what a
/// ModelOutput says besides. `w` [M, H, V, K] are fast weights; undefined: the states stand there.
ModelOutput read_states(const ModelConfig& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w = {});

/// Each sample's last output: rows of [M, ...], zeros for a sample without one.
Tensor last_rows(const Tensor& rows, const Tensor& offsets);

/// Which output is not finite, if one is.
Status finite_status(const ModelOutput& output);

}  // namespace fastweights

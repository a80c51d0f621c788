#include "systems/continuous.h"

/// The field of a GRU, with input projections W without bias and state projections U:
///
///     r = sigmoid(W_r x + U_r h),  z = sigmoid(W_z x + U_z h),  g = tanh(W_h x + U_h (r h))
///     gru(x, h) = (1 - z) (g - h)
///
/// GRU-ODE as published with neural CDEs has the path so far, p = x - x(t0), in its state, and time drives
/// it: p' = x', h' = gru(p, clamp(h)) x'_0, where channel 0 is time; it reads [p, h]. The direct form is
/// h' = tanh(gru(x, h)).

namespace fastweights {
namespace {

struct GruField {
  Tensor input;      // [3 d, C]: r, z, g
  nn::Linear gates;  // d -> 2 d: r, z
  nn::Linear state;  // d -> d: g

  GruField(int64_t channels, int64_t size, nn::ParameterMaker& make)
      : input(make.linear("field.input", channels, 3 * size, nn::Bias::No).weight),
        gates(make.linear("field.gates", size, 2 * size)),
        state(make.linear("field.state", size, size)) {}

  // projected [R, 3 d]: W x
  Tensor operator()(const Tensor& projected, const Tensor& h) const {
    const int64_t d = h.size(1);
    const Tensor gate = at::sigmoid(linear(gates, h) + projected.narrow(1, 0, 2 * d));
    const Tensor g = at::tanh(linear(state, gate.narrow(1, 0, d) * h) + projected.narrow(1, 2 * d, d));
    return (1 - gate.narrow(1, d, d)) * (g - h);
  }
};

// what both forms have
class GruSystem : public ContinuousSystem {
 public:
  GruSystem(const ModelConfig& config, nn::ParameterMaker& make)
      : channels_(signal_size(config)), size_(config.hidden_size), field_(channels_, size_, make) {}

 protected:
  std::vector<Tensor> field_parameters() const override {
    return {field_.input, field_.gates.weight, field_.gates.bias, field_.state.weight, field_.state.bias};
  }
  int64_t recorded_numbers() const override { return 16 * size_ + 4 * channels_; }

  int64_t channels_, size_;
  GruField field_;
};

class DirectGruOde : public GruSystem {
 public:
  DirectGruOde(const ModelConfig& config, nn::ParameterMaker make) : GruSystem(config, make) {
    if (config.static_features > 0) {
      static_ = make_static_net(config, size_, make);
    } else {
      first_ = make.linear("first", config.channels, size_);
    }
    head_ = make.linear("head", size_, config.outputs);
    parameters_ = make.parameters();
  }

 protected:
  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<DirectGruOde>(*this); }
  Tensor initial(const Tensor& first, const Tensor& static_features) const override {
    return static_ ? (*static_)(static_features) : linear(*first_, first);
  }
  Tensor drive(const Samples& x) const override { return at::linear(x.value, field_.input); }
  Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const override {
    const Tensor f = at::tanh(field_(drive, z));
    return dt.defined() ? f * dt : f;
  }

 private:
  std::optional<nn::Linear> first_;
  std::optional<StaticNet> static_;
};

class GruOde : public GruSystem {
 public:
  GruOde(const ModelConfig& config, nn::ParameterMaker make) : GruSystem(config, make) {
    static_ = make_static_net(config, size_, make);
    head_ = make.linear("head", channels_ + size_, config.outputs);
    parameters_ = make.parameters();
  }

 protected:
  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<GruOde>(*this); }
  // p and h begin with nothing, or h with the static features
  Tensor initial(const Tensor& first, const Tensor& static_features) const override {
    const auto zeros = [&](int64_t size) {
      return at::zeros({first.size(0), size}, first.options().requires_grad(false));
    };
    return at::cat({zeros(channels_), static_ ? (*static_)(static_features) : zeros(size_)}, 1);
  }
  Tensor drive(const Samples& x) const override { return x.derivative; }
  Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const override {
    const Tensor dx = dt.defined() ? drive * dt : drive;
    const Tensor h = at::clamp(z.narrow(1, channels_, size_), -1, 1);
    const Tensor projected = at::linear(z.narrow(1, 0, channels_), field_.input);
    return at::cat({dx, field_(projected, h) * dx.narrow(1, 0, 1)}, 1);
  }

 private:
  std::optional<StaticNet> static_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_gru_ode(const ModelConfig& config, const ModelOptions& options) {
  const nn::ParameterMaker make(options.seed, options.type);
  if (config.system == System::DirectGruOde) return std::make_shared<DirectGruOde>(config, make);
  return std::make_shared<GruOde>(config, make);
}

}  // namespace fastweights

#include "fastweights/error.h"
#include "systems/continuous.h"

/// Neural CDEs (Kidger et al. 2020) and, on log-signatures, neural RDEs (Morrill et al. 2021):
///
///     z(t0) = first(x(t0)),  z' = F(z) x'(t),  output = head(z)
///
/// F is a network of relus with d C outputs, or, of rank one, with d + C: F(z) = a(z) b(z)^T.

namespace fastweights {
namespace {

class NeuralCde : public ContinuousSystem {
 public:
  NeuralCde(const ModelConfig& config, const ModelOptions& options)
      : field_(config.field), state_(config.hidden_size), signal_(signal_size(config)) {
    nn::ParameterMaker make(options.seed, options.type);
    if (config.static_features > 0) {
      static_ = make_static_net(config, state_, make);
    } else {
      first_ = make.linear("first", config.channels, state_);
    }
    const int64_t entries = field_.form == FieldForm::RankOne ? state_ + signal_ : state_ * signal_;
    int64_t width = state_;
    for (int64_t l = 0; l < field_.layers; ++l) {
      const bool again = field_.tied && l > 1;
      layers_.push_back(again ? layers_.back()
                              : make.linear(message("field.", l), width, field_.hidden_size));
      width = field_.hidden_size;
    }
    out_ = make.linear("field.out", width, entries);
    head_ = make.linear("head", state_, config.outputs);
    parameters_ = make.parameters();
  }

 protected:
  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<NeuralCde>(*this); }

  Tensor initial(const Tensor& first, const Tensor& static_features) const override {
    return static_ ? (*static_)(static_features) : linear(*first_, first);
  }

  std::vector<Tensor> field_parameters() const override {
    std::vector<Tensor> result;
    for (const auto& [name, tensor] : parameters_) {
      if (name.rfind("field.", 0) == 0) result.push_back(tensor);
    }
    return result;
  }

  Tensor drive(const Samples& x) const override { return x.derivative; }

  // the field is linear in x', so that dt goes there
  Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const override {
    const Tensor dx = dt.defined() ? drive * dt : drive;
    const Tensor f = network(z);
    if (field_.form == FieldForm::RankOne) {
      const Tensor a = f.narrow(1, 0, state_), b = f.narrow(1, state_, signal_);
      return a * (b * dx).sum(1, /*keepdim=*/true);
    }
    return at::bmm(f.view({-1, state_, signal_}), dx.unsqueeze(2)).squeeze(2);
  }

  int64_t recorded_numbers() const override {
    return 2 * (out_.weight.size(0) + field_.layers * field_.hidden_size) + 3 * state_ + signal_;
  }

 private:
  Tensor network(const Tensor& z) const {
    Tensor hidden = z;
    for (size_t l = 0; l < layers_.size(); ++l) {
      hidden = linear(layers_[l], hidden);
      const bool last = l + 1 == layers_.size();
      hidden = last && field_.end == FieldEnd::TanhHidden ? at::tanh(hidden) : at::relu(hidden);
    }
    const Tensor out = linear(out_, hidden);
    return field_.end == FieldEnd::TanhOutput ? at::tanh(out) : out;
  }

  FieldConfig field_;
  int64_t state_, signal_;  // d, C of the signal
  std::optional<nn::Linear> first_;
  std::optional<StaticNet> static_;
  std::vector<nn::Linear> layers_;
  nn::Linear out_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_neural_cde(const ModelConfig& config,
                                                      const ModelOptions& options) {
  return std::make_shared<NeuralCde>(config, options);
}

}  // namespace fastweights

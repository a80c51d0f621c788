#include "architectures/continuous.h"
#include "base/error.h"
#include "model/architecture_spec.h"

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
class GruNetwork : public ContinuousNetwork {
 public:
  GruNetwork(const ModelConfig& model, const GruOde& config, nn::ParameterMaker& make)
      : ContinuousNetwork(model),
        channels_(signal_size(model.channels, config.control)),
        size_(config.hidden_size),
        field_(channels_, size_, make) {}

 protected:
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<GruOde>());
  }
  std::vector<Tensor> field_parameters() const override {
    return {field_.input, field_.gates.weight, field_.gates.bias, field_.state.weight, field_.state.bias};
  }
  int64_t recorded_values() const override { return 16 * size_ + 4 * channels_; }

  int64_t channels_, size_;
  GruField field_;
};

class DirectGruOdeNetwork : public GruNetwork {
 public:
  DirectGruOdeNetwork(const ModelConfig& model, const GruOde& config, const ModelOptions& options,
                      nn::ParameterMaker make)
      : GruNetwork(model, config, make) {
    if (model.static_features > 0) {
      static_ = make_static_net(shared(model), size_, make);
    } else {
      first_ = make.linear("first", model.channels, size_);
    }
    head_ = make.linear("head", size_, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<DirectGruOdeNetwork>(*this); }
  Tensor initial(const Tensor& first, const Tensor& static_features) const override {
    return static_ ? (*static_)(static_features) : linear(*first_, first);
  }
  Tensor signal(const Samples& x) const override { return x.value; }
  Tensor drive(const Tensor& signal) const override { return at::linear(signal, field_.input); }
  Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const override {
    const Tensor f = at::tanh(field_(drive, z));
    return dt.defined() ? f * dt : f;
  }

 private:
  std::optional<nn::Linear> first_;
  std::optional<StaticNet> static_;
};

class GruOdeNetwork : public GruNetwork {
 public:
  GruOdeNetwork(const ModelConfig& model, const GruOde& config, const ModelOptions& options,
                nn::ParameterMaker make)
      : GruNetwork(model, config, make) {
    static_ = make_static_net(shared(model), size_, make);
    head_ = make.linear("head", channels_ + size_, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<GruOdeNetwork>(*this); }
  // p and h begin with nothing, or h with the static features
  Tensor initial(const Tensor& first, const Tensor& static_features) const override {
    const auto zeros = [&](int64_t size) {
      return at::zeros({first.size(0), size}, first.options().requires_grad(false));
    };
    return at::cat({zeros(channels_), static_ ? (*static_)(static_features) : zeros(size_)}, 1);
  }
  Tensor slope(const Tensor& drive, const Tensor& dt, const Tensor& z) const override {
    const Tensor dx = dt.defined() ? drive * dt : drive;
    const Tensor h = at::clamp(z.narrow(1, channels_, size_), -1, 1);
    const Tensor projected = at::linear(z.narrow(1, 0, channels_), field_.input);
    return at::cat({dx, field_(projected, h) * dx.narrow(1, 0, 1)}, 1);
  }

 private:
  std::optional<StaticNet> static_;
};

std::string form_name(const GruOde& o) {
  return o.form == GruOdeForm::PathSoFar ? "gru_ode" : "direct_gru_ode";
}

void visit_options(GruOde& o, Fields& visit) {
  visit("control", o.control);
  visit("solver", o.solver);
  visit("backend", o.backend);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const GruOde& o) {
  const SharedOptions shared = shared_options(model, o);
  check_continuous(shared, o.backend);
  const bool path = o.form == GruOdeForm::PathSoFar;
  FW_CHECK(!path || !std::holds_alternative<Hold>(o.control.path),
           "[config] architecture gru_ode needs x'(t), and "
           "control.kind hold has none; take linear, hermite_cubic or natural_cubic");
  FW_CHECK(!path || !std::holds_alternative<LogSignatures>(o.control.path),
           "[config] architecture gru_ode needs a path, not control.kind log_signature");
  check_count(base_parameters(shared), "parameters", size_keys(shared));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const GruOde& o, const ModelOptions& options) {
  const nn::ParameterMaker make(options.seed, options.type);
  if (o.form == GruOdeForm::Direct) return std::make_shared<DirectGruOdeNetwork>(model, o, options, make);
  return std::make_shared<GruOdeNetwork>(model, o, options, make);
}

}  // namespace

const ArchitectureType& architecture_type(const GruOde&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<GruOde>(
      {.names = {{"gru_ode", GruOde{.form = GruOdeForm::PathSoFar}},
                 {"direct_gru_ode", GruOde{.form = GruOdeForm::Direct}}},
       .name = form_name,
       .fields = visit_options,
       .check = check,
       .make = make,
       .solver = [](GruOde& o) { return &o.solver; },
       .models = {{"gru-ode", "the field of a GRU on the path so far, driven by time",
                   "De Brouwer et al. 2019, as in Kidger et al. 2020",
                   [](const DataShape& shape) -> Architecture { return fitted(GruOde{}, shape); }},
                  {"gru-ode-direct", "the field of a GRU at x(t)", "Irie et al. 2022",
                   [](const DataShape& shape) -> Architecture {
                     return fitted(GruOde{.form = GruOdeForm::Direct}, shape);
                   }}}}));
  return kType;
}

}  // namespace fastweights

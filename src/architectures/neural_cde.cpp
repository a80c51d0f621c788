#include "architectures/continuous.h"
#include "base/error.h"
#include "model/architecture_spec.h"

/// Neural CDEs (Kidger et al. 2020) and, on log-signatures, neural RDEs (Morrill et al. 2021):
///
///     z(t0) = first(x(t0)),  z' = F(z) x'(t),  output = head(z)
///
/// F is a network of relus with d C outputs, or, of rank one, with d + C: F(z) = a(z) b(z)^T.

namespace fastweights {
namespace {

class NeuralCdeNetwork : public ContinuousNetwork {
 public:
  NeuralCdeNetwork(const ModelConfig& model, const NeuralCde& config, const ModelOptions& options)
      : ContinuousNetwork(model),
        field_(config.field),
        state_(config.hidden_size),
        signal_(signal_size(model.channels, config.control)) {
    nn::ParameterMaker make(options.seed, options.type);
    if (model.static_features > 0) {
      static_ = make_static_net(shared(model), state_, make);
    } else {
      first_ = make.linear("first", model.channels, state_);
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
    head_ = make.linear("head", state_, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<NeuralCdeNetwork>(*this); }

  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<NeuralCde>());
  }

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

  int64_t recorded_values() const override {
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

  CdeFieldConfig field_;
  int64_t state_, signal_;  // d, C of the signal
  std::optional<nn::Linear> first_;
  std::optional<StaticNet> static_;
  std::vector<nn::Linear> layers_;
  nn::Linear out_;
};

}  // namespace

void visit_fields(CdeFieldConfig& o, Fields& visit) {
  visit("hidden_size", o.hidden_size);
  visit("layers", o.layers);
  visit("form", o.form);
  visit("end", o.end);
  visit("tied", o.tied);
}

namespace {

Architecture in_windows(const DataShape& shape) {
  NeuralCde o = fitted(NeuralCde{}, shape);
  read_in_windows(o, shape);
  o.field.end = FieldEnd::TanhHidden;
  return o;
}

template <FieldForm form>
Architecture cde_for_data(const DataShape& shape) {
  NeuralCde o = needs_windows(shape) ? in_windows(shape).get<NeuralCde>() : fitted(NeuralCde{}, shape);
  o.field.form = form;
  return o;
}

void visit_options(NeuralCde& o, Fields& visit) {
  visit("control", o.control);
  visit("solver", o.solver);
  visit("backend", o.backend);
  visit("field", o.field);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const NeuralCde& o) {
  const SharedOptions shared = shared_options(model, o);
  check_continuous(shared, o.backend);
  FW_CHECK(!std::holds_alternative<Hold>(o.control.path),
           "[config] architecture neural_cde needs x'(t), and "
           "control.kind hold has none; take linear, hermite_cubic or natural_cubic");
  check_field(o.field.hidden_size, o.field.layers);
  const auto d = static_cast<double>(o.hidden_size),
             signal = static_cast<double>(signal_size(model.channels, o.control));
  const double out = o.field.form == FieldForm::Full ? d * signal : d + signal;
  check_count(base_parameters(shared) +
                  field_parameters(d, static_cast<double>(o.field.hidden_size), o.field.layers, out),
              "parameters", size_keys(shared, {{"field.hidden_size", o.field.hidden_size}}));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const NeuralCde& o,
                                    const ModelOptions& options) {
  return std::make_shared<NeuralCdeNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const NeuralCde&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<NeuralCde>(
      {.names = {{"neural_cde", NeuralCde{}}},
       .fields = visit_options,
       .check = check,
       .make = make,
       .solver = [](NeuralCde& o) { return &o.solver; },
       .models = {{"ncde", "neural controlled differential equation: z' = F(z) x'(t)", "Kidger et al. 2020",
                   cde_for_data<FieldForm::Full>},
                  {"ncde-rank-one", "the same with a field F(z) of rank one",
                   "Kidger et al. 2020, section 6.1", cde_for_data<FieldForm::RankOne>},
                  {"nrde", "neural rough differential equation: an NCDE on log-signatures of windows",
                   "Morrill et al. 2021", in_windows}}}));
  return kType;
}

}  // namespace fastweights

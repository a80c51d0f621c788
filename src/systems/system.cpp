#include "systems/system.h"

#include "base/random.h"
#include "fastweights/error.h"
#include "model/config_names.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

namespace fastweights {

namespace {

std::shared_ptr<const ComparedSystem> made_system(const ModelConfig& config, const ModelOptions& options) {
  switch (config.system) {
    case System::FastWeights:
      break;
    case System::NeuralCde:
      return make_neural_cde(config, options);
    case System::GruOde:
    case System::DirectGruOde:
      return make_gru_ode(config, options);
    case System::OdeRnn:
    case System::GruDt:
    case System::GruD:
      return make_observed_gru(config, options);
    case System::Gru:
    case System::Lem:
    case System::Lstm:
      return make_recurrent(config, options);
    case System::LatentOde:
      return make_latent_ode(config, options);
    case System::LinearTransformer:
    case System::DeltaNet:
    case System::RecurrentFwp:
      return make_discrete_fwp(config, options);
    case System::OdeRfwp:
    case System::LatentOdeRfwp:
      return make_ode_rfwp(config, options);
  }
  FW_CHECK(false, "[model] system ", name_of(config.system), " is none of those that are compared");
}

// a checked input as a prepared batch
struct PreparedRows final : PreparedBatch::Contents {
  PreparedRows(const ModelConfig& config, at::ScalarType type, const ModelInput& input)
      : checked(check_input(config, type, input)), config(config), type(type) {}

  int64_t samples() const override { return checked.series.samples(); }
  PreparedBatch select(const std::vector<int64_t>& samples) const override {
    ModelInput all = {checked.series, checked.static_features};
    if (!checked.at_ends) all.output_times = checked.requested;
    return PreparedBatch(std::make_shared<const PreparedRows>(config, type, select_samples(all, samples)));
  }

  CheckedInput checked;
  ModelConfig config;
  at::ScalarType type;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_system(const ModelConfig& config, const ModelOptions& options) {
  FW_CHECK(options.device.is_cpu(), "[model] system ", name_of(config.system),
           " is computed on the CPU; device cuda is for fast weight programmers");
  return made_system(config, options)->with_config(config);
}

std::shared_ptr<const ComparedSystem> ComparedSystem::with_config(const ModelConfig& config) const {
  const std::shared_ptr<ComparedSystem> changed = copy();
  changed->config_ = config;
  return changed;
}

std::shared_ptr<const Network> ComparedSystem::with_solver(const SolverConfig& solver) const {
  ModelConfig config = config_;
  config.solver = solver;
  check_config(config);
  return with_config(config);
}

std::shared_ptr<const Network> ComparedSystem::to(const at::Device& device) const {
  const auto result = make_system(config_, {.type = type(), .device = device});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i)
    result->parameters()[i].second.copy_(parameters_[i].second);
  return result;
}

PreparedBatch ComparedSystem::prepare(const ModelInput& input, Reuse) const {
  FW_CHECK(!input.start, "[model] system ", name_of(config_.system),
           " begins at the beginning of a series; only fast weight programmers go on from a start");
  return PreparedBatch(std::make_shared<const PreparedRows>(config_, type(), input));
}

ModelOutput ComparedSystem::forward(const PreparedBatch& batch, const PassOptions& options) const {
  return forward(config_, contents_of<PreparedRows>(batch).checked, options);
}

Tensor linear(const nn::Linear& layer, const Tensor& x) {
  return layer.bias.defined() ? at::linear(x, layer.weight, layer.bias) : at::linear(x, layer.weight);
}

Tensor layer_norm(const nn::LayerNorm& layer, const Tensor& x) {
  return at::layer_norm(x, {layer.weight.size(0)}, layer.weight, layer.bias, nn::kLayerNormEpsilon);
}

std::optional<StaticNet> make_static_net(const ModelConfig& config, int64_t size, nn::ParameterMaker& make) {
  if (config.static_features == 0) return {};
  const nn::Linear hidden = make.linear("static.hidden", config.static_features, config.static_hidden_size);
  return StaticNet{hidden, make.linear("static.out", config.static_hidden_size, size)};
}

Tensor last_rows(const Tensor& rows, const Tensor& offsets) {
  const Tensor counts = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  if (rows.size(0) == 0) {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = counts.size(0);
    return at::zeros(shape, rows.options());
  }
  const Tensor last = rows.index_select(0, at::clamp_min(offsets.slice(0, 1) - 1, 0));
  if (counts.gt(0).all().item<bool>()) return last;
  std::vector<int64_t> shape(static_cast<size_t>(rows.dim()), 1);
  shape[0] = -1;
  return at::where(counts.gt(0).view(shape), last, at::zeros({}, last.options()));
}

ModelOutput read_states(const ModelConfig& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w) {
  Tensor read = states;
  if (options.mode == Mode::Train && config.dropout > 0) {
    Random random(options.seed);
    read = read * dropout_mask(states.sizes(), config.dropout, random, states.scalar_type());
  }
  const Tensor fast = w.defined() ? w : states.view({states.size(0), 1, 1, -1});
  const Tensor& offsets = input.requested.offsets;
  return make_output(linear(head, read), input.requested, {fast},
                     {{last_rows(fast, offsets)}, last_rows(input.requested.times, offsets)});
}

}  // namespace fastweights

#include "systems/system.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "fastweights/error.h"
#include "model/config_names.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

namespace fastweights {

std::shared_ptr<const ComparedSystem> make_system(const ModelConfig& config, const ModelOptions& options) {
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

CheckedInput check_system_input(const ModelConfig& config, at::ScalarType type, const ModelInput& input) {
  FW_CHECK(!input.start, "[model] system ", name_of(config.system),
           " begins at the beginning of a series; only fast weight programmers go on from a start");
  return check_input(config, type, input);
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

Status finite_status(const ModelOutput& output) {
  const at::NoGradGuard no_grad;
  const Tensor values = output.outputs.detach();
  if (values.numel() == 0 || at::isfinite(values).all().item<bool>()) return {};
  const int64_t row = at::nonzero(at::isfinite(values).logical_not().any(-1))[0].item<int64_t>();
  const Tensor offsets = output.offsets.contiguous();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t b = std::upper_bound(o, o + offsets.size(0), row) - o - 1;
  return {Outcome::NotFinite, b, output.times[row].item<double>(), 0,
          output.w.back()[row].abs().max().item<double>()};
}

ModelOutput read_states(const ModelConfig& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w) {
  Tensor read = states;
  if (options.mode == Mode::Train && config.dropout > 0) {
    Random random(options.seed);
    read = read * dropout_mask(states.sizes(), config.dropout, random, states.scalar_type());
  }
  ModelOutput result;
  result.outputs = linear(head, read);
  result.times = input.wanted.times;
  result.offsets = input.wanted.offsets;
  result.w = {w.defined() ? w : states.view({states.size(0), 1, 1, -1})};
  result.last = {{last_rows(result.w[0], result.offsets)}, last_rows(result.times, result.offsets)};
  result.backend = "reference";
  result.status = finite_status(result);
  return result;
}

}  // namespace fastweights

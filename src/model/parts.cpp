#include "model/parts.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "tensor/random_tensor.h"

namespace fastweights {
namespace {

nn::Wiring make_wiring(const ProgrammerConfig& c, const std::vector<Rule>& custom_rules) {
  nn::Wiring wiring;
  const Rule* rule = find_rule(c.rule, custom_rules);
  FW_CHECK(rule, "[model] unknown rule '", c.rule, "'");
  wiring.rule = *rule;
  wiring.drive = c.drive;
  wiring.learning_rate = c.learning_rate;
  wiring.value_activation = c.value_activation;
  wiring.read = c.read;
  wiring.products = c.deterministic ? Products::FixedOrder : Products::Fast;
  if (c.tensor_map) {
    wiring.key_width = signal_size(c);
    wiring.value_width = c.hidden_size;
  } else {
    wiring.heads = c.heads;
    wiring.key_width = c.key_width > 0 ? c.key_width : c.hidden_size / c.heads;
    wiring.value_width = c.value_width > 0 ? c.value_width : c.hidden_size / c.heads;
  }
  return wiring;
}

// the network of a tensor map: from W to a matrix for each of its entries
std::vector<nn::Linear> make_map(const ProgrammerConfig& c, int64_t state, int64_t signal,
                                 nn::ParameterMaker& make) {
  std::vector<nn::Linear> map;
  int64_t width = state;
  for (int64_t i = 0; i < c.map_layers; ++i) {
    const int64_t next = i + 1 == c.map_layers ? state * signal : c.map_hidden_size;
    map.push_back(make.linear(message("map.", i), width, next));
    width = next;
  }
  return map;
}

void make_layers(ModelParts& parts, int64_t feed_forward_size, nn::ParameterMaker& make) {
  const ProgrammerConfig& c = parts.config;
  for (int64_t l = 0; l < c.layers; ++l) {
    nn::LayerSizes sizes = {.inputs = l == 0 ? signal_size(c) : parts.wiring.read_width(),
                            .hidden = l == 0 ? c.hidden_size : 0,
                            .value_norm = c.value_norm ? nn::ValueNorm::Yes : nn::ValueNorm::No,
                            .ff_hidden = l + 1 < c.layers ? feed_forward_size : 0};
    parts.layers.push_back(nn::make_layer(message("layers.", l), sizes, parts.wiring, make));
  }
}

}  // namespace

ModelParts make_parts(const ProgrammerConfig& config, const ModelOptions& options) {
  FW_CHECK(options.type == at::kFloat || options.type == at::kDouble,
           "[model] parameters are float32 or float64, not ", options.type);
  nn::ParameterMaker make(options.seed, options.type);
  ModelParts parts;
  parts.config = config;
  parts.wiring = make_wiring(config, options.custom_rules);
  const nn::Wiring& wiring = parts.wiring;
  const bool is_map = config.tensor_map;
  const int64_t signal = signal_size(config), state = wiring.value_width * wiring.key_width;
  const int64_t feed_forward_size =
      config.feed_forward_size > 0 ? config.feed_forward_size : 4 * config.hidden_size;
  if (is_map) {
    parts.map = make_map(config, state, signal, make);
  } else {
    make_layers(parts, feed_forward_size, make);
  }
  if (config.initial == InitialWeights::FirstObservation) {
    parts.first = make.linear("first", config.channels, is_map ? state : signal);
  }
  if (config.initial == InitialWeights::StaticFeatures) {
    parts.static_hidden = make.linear("static.hidden", config.static_features, config.static_hidden_size);
    const int64_t projections = wiring.heads * (wiring.key_width + wiring.value_width + 1);
    parts.static_out = make.linear("static.out", config.static_hidden_size, is_map ? state : projections);
  }
  if (!is_map) parts.out = make.linear("out", wiring.read_width(), config.hidden_size);
  parts.ff = make.feed_forward("ff", config.hidden_size, feed_forward_size);
  parts.head = make.linear("head", config.hidden_size, config.outputs);
  if (config.unused_layer) make.linear("unused", signal, is_map ? state : config.hidden_size);
  parts.parameters = make.parameters();
  if (!options.device.is_cpu()) move_parts(parts, options.device);
  return parts;
}

namespace {

// of the memory that is free, for training steps; the rest is for data, parameters and other programs
constexpr double kStepShare = 0.7;

}  // namespace

void move_parts(ModelParts& parts, const at::Device& device) {
  parts.flat = nn::move_parameters(parts.parameters, device);
  parts.device_limit = static_cast<int64_t>(kStepShare * static_cast<double>(device_memory(device).free));
}

std::vector<int64_t> ModelParts::weight_shape(int64_t rows) const {
  return {rows, config.layers, wiring.heads, wiring.value_width, wiring.key_width};
}

std::vector<Tensor> ModelParts::field_parameters() const {
  // the query of the last layer belongs to the readout
  const std::string last_query = message("layers.", config.layers - 1, ".query.");
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters) {
    const bool inside = name.rfind("layers.", 0) == 0 || name.rfind("map.", 0) == 0;
    if (inside && name.rfind(last_query, 0) != 0) result.push_back(tensor);
  }
  return result;
}

Masks make_masks(const ModelParts& parts, const PassOptions& options, int64_t samples, int64_t rows) {
  const ProgrammerConfig& c = parts.config;
  Masks masks;
  masks.values.resize(parts.layers.size());
  if (options.mode == Mode::Evaluate) return masks;
  Random random(options.seed);
  const auto mask = [&](at::IntArrayRef shape, double rate) {
    return parts.device().is_cpu()
               ? dropout_mask(shape, rate, random, parts.type())
               : device_dropout_mask(shape, rate, random, parts.device(), options.device_seed);
  };
  if (c.value_dropout > 0) {
    for (Tensor& values : masks.values)
      values = mask({samples, parts.wiring.heads, parts.wiring.value_width}, c.value_dropout);
  }
  if (c.dropout > 0) {
    // row by row: those of an output do not depend on how many outputs there are
    const int64_t size = c.hidden_size, hidden = parts.ff.in.weight.size(0);
    const std::vector<Tensor> all =
        mask({rows, size + hidden + size}, c.dropout).split_with_sizes({size, hidden, size}, 1);
    masks.read = all[0];
    masks.ff.hidden = all[1];
    masks.ff.output = all[2];
  }
  return masks;
}

}  // namespace fastweights

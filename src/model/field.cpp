#include "base/error.h"
#include "model/parts.h"

namespace fastweights {
namespace {

using nn::Program;

Tensor slope_of(const nn::Wiring& wiring, const Program& p, const Tensor& w) {
  Tensor slope = wiring.rule.slope(p.k, p.v, p.beta, w);
  FW_CHECK(slope.defined() && slope.sizes() == w.sizes(), "[model] rule ", wiring.rule.name,
           " must give dW/dt of the shape of W ", w.sizes(), ", got ",
           slope.defined() ? message(slope.sizes()) : "nothing");
  FW_CHECK(slope.scalar_type() == w.scalar_type(), "[model] rule ", wiring.rule.name,
           " must give dW/dt of the type of W ", w.scalar_type(), ", got ", slope.scalar_type());
  return slope;
}

// dW/dt of one layer at x
Tensor layer_slope(const ModelParts& parts, int64_t l, const Samples& x, const Tensor& w,
                   const Masks& masks) {
  return slope_of(parts.wiring, nn::program(parts.layers[l], parts.wiring, x, masks.values[l]), w);
}

// x of the next layer as in the paper: FFN(W q), with its time derivative where the drive needs x'
Samples read_weights(const ModelParts& parts, int64_t l, const Samples& x, const Tensor& w,
                     const Tensor& slope) {
  const nn::Query query = layer_query(parts, l, x);
  Samples y = {nn::read(parts.wiring, w, query.q.value), {}};
  if (query.q.derivative.defined()) {
    // (W q)' = W' q + W q'
    y.derivative =
        nn::read(parts.wiring, slope, query.q.value) + nn::read(parts.wiring, w, query.q.derivative);
  }
  return next_input(parts, l, query, y);
}

// x of the next layer as published: FFN(W' q) inside the field, FFN(W q) in the readout
Samples read_update(const ModelParts& parts, int64_t l, const Samples& x, const Tensor& source) {
  const nn::Query query = layer_query(parts, l, x);
  return next_input(parts, l, query, {nn::read(parts.wiring, source, query.q.value), {}});
}

// (dC x C matrix of W) times x'
Tensor map_slope(const ModelParts& parts, const Samples& x, const Tensor& w) {
  const int64_t rows = w.size(0);
  Tensor hidden = w.reshape({rows, -1});
  for (size_t i = 0; i < parts.map.size(); ++i) {
    if (i > 0) hidden = at::relu(hidden);
    hidden = nn::linear(parts.map[i], {hidden, {}}, parts.wiring.products).value;
  }
  const Tensor matrix = at::tanh(hidden).view({rows, -1, x.derivative.size(1)});  // [B, V K, C]
  return matvec(matrix, x.derivative).view(w.sizes());
}

// the signal that the last layer reads, at the rows of a readout
Samples last_input(const ModelParts& parts, Samples x, const Tensor& w, const Tensor& samples,
                   const Masks& masks) {
  const bool moving = nn::needs_derivative(parts.wiring.drive);
  for (int64_t l = 0; l + 1 < parts.layer_count(); ++l) {
    const Tensor here = w.select(1, l);
    if (parts.config.layer_input == LayerInput::Update) {
      x = read_update(parts, l, x, here);
      continue;
    }
    Tensor slope;
    if (moving) {
      Masks row_masks = masks;
      if (masks.values[l].defined()) row_masks.values[l] = masks.values[l].index_select(0, samples);
      slope = layer_slope(parts, l, x, here, row_masks);
    }
    x = read_weights(parts, l, x, here, slope);
  }
  return x;
}

}  // namespace

nn::Query layer_query(const ModelParts& parts, int64_t l, const Samples& x) {
  if (parts.config.layer_input == LayerInput::Update) {
    return nn::query(parts.layers[l], parts.wiring, {nn::key_input(parts.wiring.drive, x), {}});
  }
  const bool moving = nn::needs_derivative(parts.wiring.drive);
  return nn::query(parts.layers[l], parts.wiring, moving ? x : Samples{x.value, {}});
}

Samples next_input(const ModelParts& parts, int64_t l, const nn::Query& query, Samples y) {
  if (parts.config.residual) {
    y.value = y.value + query.encoded.value;
    if (y.derivative.defined()) y.derivative = y.derivative + query.encoded.derivative;
  }
  const Samples next = nn::feed_forward(*parts.layers[l].ff, y, parts.wiring.products);
  // as published it stands for whatever the drive reads
  return parts.config.layer_input == LayerInput::Update ? Samples{next.value, next.value} : next;
}

Tensor weights_slope(const ModelParts& parts, const Samples& x, const Tensor& w, const Masks& masks) {
  if (parts.layers.empty()) return map_slope(parts, x, w);
  std::vector<Tensor> slopes;
  Samples input = x;
  for (int64_t l = 0; l < parts.layer_count(); ++l) {
    const Tensor here = w.select(1, l);
    slopes.push_back(layer_slope(parts, l, input, here, masks));
    if (l + 1 == parts.layer_count()) break;
    input = parts.config.layer_input == LayerInput::Update
                ? read_update(parts, l, input, slopes.back())
                : read_weights(parts, l, input, here, slopes.back());
  }
  return at::stack(slopes, 1);
}

Tensor initial_weights(const ModelParts& parts, const Samples& x, const Tensor& first,
                       const Tensor& static_features, const Masks& masks) {
  const nn::Wiring& wiring = parts.wiring;
  const int64_t samples = first.size(0);
  const std::vector<int64_t> shape = parts.weight_shape(samples);
  const Tensor nothing = at::zeros(shape, first.options().requires_grad(false));
  const InitialWeights kind = parts.config.initial;
  const auto linear = [&](const nn::Linear& layer, const Tensor& input) {
    return nn::linear(layer, {input, {}}, wiring.products).value;
  };
  if (kind == InitialWeights::Zero) return nothing;

  Tensor w;  // [B, H, V, K] of the first layer
  const Tensor zero = nothing.select(1, 0);
  if (kind == InitialWeights::StaticFeatures) {
    const Tensor projected =
        linear(*parts.static_out, at::relu(linear(*parts.static_hidden, static_features)));
    if (parts.layers.empty()) return projected.view(shape);
    // the static network writes once, by Hebb's rule, whatever the rule is
    nn::Wiring plain = wiring;
    plain.rule = hebb();
    plain.learning_rate = LearningRate::Sigmoid;
    plain.value_activation = ValueActivation::Tanh;
    w = slope_of(plain, nn::split_program(projected.view({samples, wiring.heads, -1}), plain), zero);
  } else if (kind == InitialWeights::FirstObservation) {
    const Tensor projected = linear(*parts.first, first);
    if (parts.layers.empty()) return projected.view(shape);
    w = layer_slope(parts, 0, {projected, projected}, zero, masks);
  } else {
    w = layer_slope(parts, 0, x, zero, masks);
  }
  // layers above the first one begin empty
  return parts.layer_count() == 1 ? w.unsqueeze(1) : at::cat({w.unsqueeze(1), nothing.slice(1, 1)}, 1);
}

Tensor readout(const ModelParts& parts, const Samples& x, const Tensor& w, const Tensor& samples,
               const Masks& masks) {
  const nn::Wiring& wiring = parts.wiring;
  Tensor y;  // [M, d]
  if (parts.layers.empty()) {
    y = matvec(w.select(1, 0).select(1, 0), x.value);
  } else {
    const Samples input = last_input(parts, x, w, samples, masks);
    const nn::Query query = nn::query(parts.layers.back(), wiring, {nn::key_input(wiring.drive, input), {}});
    y = nn::read(wiring, w.select(1, parts.layer_count() - 1), query.q.value);
    if (parts.config.residual) y = y + query.encoded.value;
    y = nn::linear(*parts.out, {y, {}}, wiring.products).value;
  }
  if (masks.read.defined()) y = y * masks.read;
  y = nn::feed_forward(parts.ff, {y, {}}, wiring.products, masks.ff).value;
  return nn::linear(parts.head, {y, {}}, wiring.products).value;
}

}  // namespace fastweights

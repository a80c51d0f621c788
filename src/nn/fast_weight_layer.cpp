#include "nn/fast_weight_layer.h"

namespace fastweights::nn {
namespace {

// [R, H n] to [R, H, n]
// explicit sizes: a -1 is ambiguous without rows
Tensor by_head(const Tensor& x, int64_t heads) { return x.view({x.size(0), heads, x.size(1) / heads}); }

// activations of the projections
Program activate(const Tensor& k, const Tensor& v, const Tensor& b, const Wiring& wiring) {
  const bool squash =
      wiring.rule.value == ValueForm::Tanh && wiring.value_activation == ValueActivation::Tanh;
  return {wiring.rule.key == KeyForm::Softmax ? fastweights::softmax(k, wiring.products) : k,
          squash ? at::tanh(v) : v,
          wiring.learning_rate == LearningRate::Sigmoid ? sigmoid(b, wiring.products) : b};
}

}  // namespace

const Tensor& key_input(Drive drive, const Samples& x) {
  return drive == Drive::X || drive == Drive::DerivativeValues ? x.value : x.derivative;
}

const Tensor& value_input(Drive drive, const Samples& x) {
  return drive == Drive::X || drive == Drive::DerivativeKeys ? x.value : x.derivative;
}

bool needs_derivative(Drive drive) { return drive != Drive::X; }

FastWeightLayer make_layer(const std::string& name, const LayerSizes& sizes, const Wiring& wiring,
                           ParameterMaker& make) {
  const int64_t heads = wiring.heads, keys = wiring.key_width, values = wiring.value_width;
  const int64_t encoded = sizes.hidden > 0 ? sizes.hidden : sizes.inputs;
  FastWeightLayer layer;
  if (sizes.hidden > 0) layer.input = make.linear(name + ".input", sizes.inputs, sizes.hidden);
  layer.norm = make.layer_norm(name + ".norm", encoded);
  if (wiring.drive == Drive::X) {
    layer.program = make.linear(name + ".program", encoded, heads * (keys + values + 1));
  } else {
    layer.program = make.linear(name + ".program", encoded, heads * (keys + 1));
    layer.value = make.linear(name + ".value", sizes.inputs, heads * values);
    if (sizes.value_norm == ValueNorm::Yes) {
      layer.value_norm = make.layer_norm(name + ".value_norm", heads * values);
      layer.value_out = make.linear(name + ".value_out", heads * values, heads * values);
    }
  }
  layer.query = make.linear(name + ".query", encoded, heads * wiring.query_width());
  if (sizes.ff_hidden > 0) layer.ff = make.feed_forward(name + ".ff", wiring.read_width(), sizes.ff_hidden);
  return layer;
}

Program split_program(const Tensor& projections, const Wiring& wiring) {
  const std::vector<Tensor> parts =
      projections.split_with_sizes({wiring.key_width, wiring.value_width, 1}, -1);
  return activate(parts[0], parts[1], parts[2], wiring);
}

Program program(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                const Tensor& value_mask) {
  const Products products = wiring.products;
  Tensor u = key_input(wiring.drive, x);
  if (layer.input) u = linear(*layer.input, u, products);
  const Tensor projections =
      by_head(linear(layer.program, layer_norm(layer.norm, u), products), wiring.heads);
  Program result;
  if (!layer.value) {
    result = split_program(projections, wiring);
  } else {
    Tensor v = linear(*layer.value, value_input(wiring.drive, x), products);
    if (layer.value_norm) v = linear(*layer.value_out, layer_norm(*layer.value_norm, v), products);
    const std::vector<Tensor> parts = projections.split_with_sizes({wiring.key_width, 1}, -1);
    result = activate(parts[0], by_head(v, wiring.heads), parts[1], wiring);
  }
  if (value_mask.defined()) result.v = result.v * value_mask;
  return result;
}

Query query(const FastWeightLayer& layer, const Wiring& wiring, const Samples& u) {
  const Samples encoded = layer.input ? linear(*layer.input, u, wiring.products) : u;
  Samples q = linear(layer.query, layer_norm(layer.norm, encoded), wiring.products);
  q.value = by_head(q.value, wiring.heads);
  if (q.derivative.defined()) q.derivative = by_head(q.derivative, wiring.heads);
  return {softmax(q, wiring.products), encoded};
}

Tensor read(const Wiring& wiring, const Tensor& w, const Tensor& q) {
  const Tensor y = wiring.read == Read::Plain ? matvec(w, q) : matvec_transposed(w, q);
  return y.reshape({y.size(0), y.size(1) * y.size(2)});
}

}  // namespace fastweights::nn

#include "nn/layers.h"

#include <cmath>

#include "tensor/random_tensor.h"

namespace fastweights::nn {
namespace {

Tensor masked(const Tensor& x, const Tensor& mask) { return mask.defined() && x.defined() ? x * mask : x; }

// [..., 1], in an order that does not depend on the batch
Tensor row_sum(const Tensor& x) {
  return fastweights::linear(x, at::ones({1, x.size(-1)}, x.options()), {}, Products::FixedOrder);
}

Tensor row_mean(const Tensor& x) { return row_sum(x) / static_cast<double>(x.size(-1)); }

Samples relu(const Samples& x) {
  Samples y = {at::relu(x.value), {}};
  if (x.derivative.defined()) y.derivative = x.derivative * (x.value > 0).to(x.value.scalar_type());
  return y;
}

}  // namespace

Tensor linear(const Linear& layer, const Tensor& x, Products products) {
  return fastweights::linear(x, layer.weight, layer.bias, products);
}

Samples linear(const Linear& layer, const Samples& x, Products products) {
  Samples y = {linear(layer, x.value, products), {}};
  if (x.derivative.defined()) y.derivative = fastweights::linear(x.derivative, layer.weight, {}, products);
  return y;
}

Tensor layer_norm(const LayerNorm& layer, const Tensor& x) {
  return at::layer_norm(x, {layer.weight.size(0)}, layer.weight, layer.bias, kLayerNormEpsilon);
}

Samples layer_norm(const LayerNorm& layer, const Samples& x) {
  Samples y = {layer_norm(layer, x.value), {}};
  if (!x.derivative.defined()) return y;
  // with n = (x - mean) / deviation: n' = (x' - mean(x') - n mean(n x')) / deviation
  const Tensor centred = x.value - row_mean(x.value);
  const Tensor deviation = (row_mean(centred.square()) + kLayerNormEpsilon).sqrt();
  const Tensor n = centred / deviation;
  const Tensor moving = x.derivative - row_mean(x.derivative);
  y.derivative = layer.weight * (moving - n * row_mean(n * moving)) / deviation;
  return y;
}

Samples softmax(const Samples& x, Products products) {
  const Tensor s = fastweights::softmax(x.value, products);
  if (!x.derivative.defined()) return {s, {}};
  return {s, s * (x.derivative - row_sum(s * x.derivative))};
}

Samples feed_forward(const FeedForward& layer, const Samples& x, Products products,
                     const FeedForwardMasks& masks) {
  Samples hidden = relu(linear(layer.in, layer_norm(layer.norm, x), products));
  hidden = {masked(hidden.value, masks.hidden), masked(hidden.derivative, masks.hidden)};
  const Samples out = linear(layer.out, hidden, products);
  Samples y = {x.value + masked(out.value, masks.output), {}};
  if (x.derivative.defined()) y.derivative = x.derivative + masked(out.derivative, masks.output);
  return y;
}

Tensor move_parameters(const NamedParameters& parameters, const at::Device& device) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : parameters) all.push_back(tensor.detach().reshape({-1}));
  const Tensor flat = at::cat(all, 0).to(device);
  int64_t first = 0;
  for (const auto& [name, tensor] : parameters) {
    const int64_t count = tensor.numel();
    tensor.set_data(flat.slice(0, first, first + count).view(tensor.sizes()));
    first += count;
  }
  return flat;
}

Tensor ParameterMaker::add(const std::string& name, Tensor value) {
  parameters_.emplace_back(name, value.set_requires_grad(true));
  return value;
}

Tensor ParameterMaker::uniform(const std::string& name, at::IntArrayRef shape, double bound) {
  return add(name, fastweights::uniform(shape, -bound, bound, random_, type_));
}

Linear ParameterMaker::linear(const std::string& name, int64_t inputs, int64_t outputs, Bias bias) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  const Tensor weight = uniform(name + ".weight", {outputs, inputs}, bound);
  return {weight, bias == Bias::Yes ? uniform(name + ".bias", {outputs}, bound) : Tensor()};
}

LayerNorm ParameterMaker::layer_norm(const std::string& name, int64_t size) {
  return {add(name + ".weight", at::ones({size}, type_)), add(name + ".bias", at::zeros({size}, type_))};
}

FeedForward ParameterMaker::feed_forward(const std::string& name, int64_t size, int64_t hidden) {
  const LayerNorm norm = layer_norm(name + ".norm", size);
  const Linear in = linear(name + ".in", size, hidden);
  return {norm, in, linear(name + ".out", hidden, size)};
}

}  // namespace fastweights::nn

#include "nn/device_net.h"

namespace fastweights::nn {
namespace {

// Linear, LayerNorm, Linear
struct Net {
  const Linear& in;
  const LayerNorm& norm;
  const Linear& out;

  int64_t channels() const { return in.weight.size(1); }
  bool less_collapsed() const {
    const int64_t hidden = in.weight.size(0), numbers = out.weight.size(0);
    return (channels() + 2) * numbers <= hidden * (channels() + numbers);
  }
};

CollapsedNet collapse_of(const Net& net) {
  return device_collapse(
      {net.in.weight, net.in.bias, net.norm.weight, net.norm.bias, net.out.weight, net.out.bias});
}

Tensor numbers_of(const Net& net, const Tensor& x, const DeviceRows& rows, Products products,
                  Collapse collapse) {
  if (collapse == Collapse::Never || !net.less_collapsed() || !device_normalises(net.channels()))
    return linear(net.out, layer_norm(net.norm, linear(net.in, {x, {}}, products)), products).value;
  const CollapsedNet made = collapse_of(net);
  return fastweights::linear(device_normalise(x, made.gram, kLayerNormEpsilon, rows), made.map, {}, products);
}

// the numbers as they are, in memory
ProgrammeTensors by_numbers(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                            const DeviceRows& rows, const ProgrammeForms& forms, Collapse collapse) {
  const auto by_head = [&](const Tensor& y) {
    return y.view({y.size(0), wiring.heads, y.size(1) / wiring.heads});
  };
  const Products products = wiring.products;
  const Tensor &keys = key_input(wiring.drive, x), &values = value_input(wiring.drive, x);
  DeviceNumbers made;
  made.numbers = by_head(
      layer.input ? numbers_of({*layer.input, layer.norm, layer.programme}, keys, rows, products, collapse)
                  : linear(layer.programme, layer_norm(layer.norm, {keys, {}}), products).value);
  if (layer.value && layer.value_norm) {
    made.values = by_head(
        numbers_of({*layer.value, *layer.value_norm, *layer.value_out}, values, rows, products, collapse));
  } else if (layer.value) {
    made.values = by_head(linear(*layer.value, {values, {}}, products).value);
  }
  return device_programme(made, rows, forms);
}

DeviceMap collapsed_map(const Net& net, const Tensor& x, const DeviceRows& rows) {
  const CollapsedNet made = collapse_of(net);
  return {x, device_scale(x, made.gram, kLayerNormEpsilon, rows), made.map};
}

}  // namespace

bool keeps_no_numbers(const FastWeightLayer& layer, const Wiring& wiring) {
  if (!layer.input || wiring.key_width != wiring.value_width) return false;
  const int64_t channels = layer.input->weight.size(1);
  if (!device_normalises(channels) || !device_net_pays(channels, wiring.key_width)) return false;
  if (!Net{*layer.input, layer.norm, layer.programme}.less_collapsed()) return false;
  return !layer.value_norm || Net{*layer.value, *layer.value_norm, *layer.value_out}.less_collapsed();
}

ProgrammeTensors programme_on_device(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                                     const DeviceRows& rows, const ProgrammeForms& forms, Collapse collapse) {
  const bool followed =
      key_input(wiring.drive, x).requires_grad() || value_input(wiring.drive, x).requires_grad();
  if (collapse == Collapse::Never || followed || !keeps_no_numbers(layer, wiring))
    return by_numbers(layer, wiring, x, rows, forms, collapse);
  const Tensor& values = value_input(wiring.drive, x);
  const DeviceMap keys =
      collapsed_map({*layer.input, layer.norm, layer.programme}, key_input(wiring.drive, x), rows);
  DeviceMap own;
  if (layer.value && layer.value_norm) {
    own = collapsed_map({*layer.value, *layer.value_norm, *layer.value_out}, values, rows);
  } else if (layer.value) {
    own = {values, {}, at::cat({layer.value->weight, layer.value->bias.unsqueeze(1)}, 1)};
  }
  return device_net(keys, own, wiring.heads, rows, forms);
}

}  // namespace fastweights::nn

#include "nn/cuda/device_net.h"

namespace fastweights::nn {
namespace {

// Linear, LayerNorm, Linear
struct Net {
  const Linear& in;
  const LayerNorm& norm;
  const Linear& out;

  int64_t channels() const { return in.weight.size(1); }
  bool less_collapsed() const {
    const int64_t hidden = in.weight.size(0), outputs = out.weight.size(0);
    return (channels() + 2) * outputs <= hidden * (channels() + outputs);
  }
};

CollapsedNet collapse_of(const Net& net) {
  return device_collapse(
      {net.in.weight, net.in.bias, net.norm.weight, net.norm.bias, net.out.weight, net.out.bias});
}

Tensor project(const Net& net, const Tensor& x, const DeviceRows& rows, Products products,
               Collapse collapse) {
  if (collapse == Collapse::Never || !net.less_collapsed() || !device_normalises(net.channels()))
    return linear(net.out, layer_norm(net.norm, linear(net.in, x, products)), products);
  const CollapsedNet made = collapse_of(net);
  return fastweights::linear(device_normalise(x, made.gram, kLayerNormEpsilon, rows), made.map, {}, products);
}

// with the projections in memory
ProgramTensors by_projections(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                              const DeviceRows& rows, const ProgramForms& forms, Collapse collapse) {
  const auto by_head = [&](const Tensor& y) {
    return y.view({y.size(0), wiring.heads, y.size(1) / wiring.heads});
  };
  const Products products = wiring.products;
  const Tensor &keys = key_input(wiring.drive, x), &values = value_input(wiring.drive, x);
  DeviceProjections made;
  made.projections =
      by_head(layer.input ? project({*layer.input, layer.norm, layer.program}, keys, rows, products, collapse)
                          : linear(layer.program, layer_norm(layer.norm, keys), products));
  if (layer.value && layer.value_norm) {
    made.values = by_head(
        project({*layer.value, *layer.value_norm, *layer.value_out}, values, rows, products, collapse));
  } else if (layer.value) {
    made.values = by_head(linear(*layer.value, values, products));
  }
  return device_program(made, rows, forms);
}

DeviceMap collapsed_map(const Net& net, const Tensor& x, const DeviceRows& rows) {
  const CollapsedNet made = collapse_of(net);
  return {x, device_scale(x, made.gram, kLayerNormEpsilon, rows), made.map};
}

}  // namespace

bool fuses_projection(const FastWeightLayer& layer, const Wiring& wiring) {
  if (!layer.input || wiring.key_width != wiring.value_width) return false;
  const int64_t channels = layer.input->weight.size(1);
  if (!device_normalises(channels) || !device_net_pays(channels, wiring.key_width)) return false;
  if (!Net{*layer.input, layer.norm, layer.program}.less_collapsed()) return false;
  return !layer.value_norm || Net{*layer.value, *layer.value_norm, *layer.value_out}.less_collapsed();
}

ProgramTensors program_on_device(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                                 const DeviceRows& rows, const ProgramForms& forms, Collapse collapse) {
  const bool signal_gradient =
      key_input(wiring.drive, x).requires_grad() || value_input(wiring.drive, x).requires_grad();
  if (collapse == Collapse::Never || signal_gradient || !fuses_projection(layer, wiring))
    return by_projections(layer, wiring, x, rows, forms, collapse);
  const Tensor& values = value_input(wiring.drive, x);
  const DeviceMap keys =
      collapsed_map({*layer.input, layer.norm, layer.program}, key_input(wiring.drive, x), rows);
  DeviceMap own;
  if (layer.value && layer.value_norm) {
    own = collapsed_map({*layer.value, *layer.value_norm, *layer.value_out}, values, rows);
  } else if (layer.value) {
    own = {values, {}, at::cat({layer.value->weight, layer.value->bias.unsqueeze(1)}, 1)};
  }
  return device_net(keys, own, wiring.heads, rows, forms);
}

}  // namespace fastweights::nn

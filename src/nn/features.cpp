#include "nn/features.h"

#include "tensor/autograd.h"

namespace fastweights::nn {
namespace {

// [A a] less its column means: [d, C + 1]
Tensor centred(const Linear& layer) {
  const Tensor map = at::cat({layer.weight, layer.bias.unsqueeze(1)}, 1);
  return map - map.mean(0, /*keepdim=*/true);
}

// B^T B / d: [C + 1, C + 1]
Tensor gram(const Linear& layer, Products products) {
  const Tensor columns = centred(layer).t();
  return fastweights::linear(columns, columns, {}, products) / static_cast<double>(layer.weight.size(0));
}

// R with R^T R = G; a column that depends on others does no harm
Tensor factor(const Tensor& gram) {
  const auto [values, vectors] = at::linalg_eigh(gram.detach().to(at::kDouble));
  const Tensor root = at::sqrt(at::clamp_min(values, 0.0)).unsqueeze(1) * vectors.t();
  return root.to(gram.scalar_type()).contiguous();
}

struct Lengths {
  Tensor moved;    // [R, C + 1]: R x~
  Tensor inverse;  // [R, 1]: 1 / sqrt(|R x~|^2 + eps)
};

Tensor with_one(const Tensor& x) {
  Tensor result = at::empty({x.size(0), x.size(1) + 1}, x.options());
  result.slice(1, 0, x.size(1)).copy_(x);
  result.select(1, x.size(1)).fill_(1);
  return result;
}

Lengths lengths(const Tensor& extended, const Tensor& root, Products products) {
  Lengths result;
  result.moved = fastweights::linear(extended, root, {}, products);
  result.inverse = at::rsqrt(result.moved.square().sum(1, /*keepdim=*/true) + kLayerNormEpsilon);
  return result;
}

// gradients of x and G from that of x~ r
std::vector<Tensor> normalised_backward(const Tensor& x, const Tensor& root, const Tensor& grad,
                                        Products products) {
  const Tensor extended = with_one(x);
  const Lengths length = lengths(extended, root, products);
  const Tensor& r = length.inverse;
  // r = (|R x~|^2 + eps)^(-1/2)
  const Tensor grad_square = -0.5 * r * r * r * (grad * extended).sum(1, /*keepdim=*/true);  // [R, 1]
  const Tensor weighted = grad_square * extended;
  Tensor grad_gram;
  if (products == Products::Fast) {
    grad_gram = at::mm(weighted.t(), extended);
  } else {
    grad_gram =
        fastweights::linear(weighted.t().contiguous(), extended.t().contiguous(), {}, Products::FixedOrder);
  }
  if (!x.requires_grad()) return {Tensor(), grad_gram};
  Tensor grad_x = fastweights::linear(length.moved, root.t().contiguous(), {}, products);
  grad_x.mul_(2 * grad_square).add_(grad * r);
  return {grad_x.slice(1, 0, x.size(1)), grad_gram};
}

// x~ r: [R, C + 1], with a backward pass that keeps x alone
Tensor normalised(const Tensor& x, const Tensor& gram, Products products) {
  const Tensor root = factor(gram);
  Tensor out;
  {
    const RecordGradients off(false);
    out = with_one(x);
    out.mul_(lengths(out, root, products).inverse);
  }
  return differentiable("features", {out}, {x, gram}, {x},
                        [root, products](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          return normalised_backward(saved[0], root, grads[0].contiguous(), products);
                        })[0];
}

// the net's numbers as a product of [x~ r; 1]: [O, C + 2]
Tensor collapsed(const Linear& in, const LayerNorm& norm, const Linear& out, Products products) {
  const Tensor scaled = out.weight * norm.weight;  // [O, d]
  const Tensor map = fastweights::linear(scaled, centred(in).t().contiguous(), {}, products);
  const Tensor shift = fastweights::linear(norm.bias.unsqueeze(0), out.weight, out.bias, products);
  return at::cat({map, shift.t()}, 1);
}

}  // namespace

bool collapses(const FastWeightLayer& layer, const Wiring& wiring) {
  if (!layer.input || wiring.key_width != wiring.value_width) return false;
  const int64_t channels = layer.input->weight.size(1), hidden = layer.input->weight.size(0);
  const int64_t numbers = layer.programme.weight.size(0);
  return (channels + 2) * numbers <= hidden * (channels + numbers);
}

int64_t feature_count(const FastWeightLayer& layer) {
  const int64_t channels = layer.input->weight.size(1);
  if (!layer.value) return channels + 2;
  return 2 * channels + 2 + (layer.value_norm ? 1 : 0);
}

Tensor features(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x) {
  const Products products = wiring.products;
  const Tensor keys =
      normalised(key_input(wiring.drive, x).contiguous(), gram(*layer.input, products), products);
  const Tensor one = at::ones({keys.size(0), 1}, keys.options().requires_grad(false));
  if (!layer.value) return at::cat({keys, one}, 1);
  const Tensor& u = value_input(wiring.drive, x);
  const Tensor values =
      layer.value_norm ? normalised(u.contiguous(), gram(*layer.value, products), products) : u;
  return at::cat({keys, one, values}, 1);
}

FeatureWeights feature_weights(const FastWeightLayer& layer, const Wiring& wiring) {
  const int64_t heads = wiring.heads, width = wiring.key_width;
  const Tensor numbers = collapsed(*layer.input, layer.norm, layer.programme, wiring.products);  // [O, C + 2]
  const Tensor by_head = numbers.view({heads, numbers.size(0) / heads, numbers.size(1)});
  FeatureWeights result;
  result.k = by_head.slice(1, 0, width);
  result.beta = by_head.select(1, by_head.size(1) - 1);
  if (!layer.value) {
    result.v = by_head.slice(1, width, 2 * width);
    return result;
  }
  Tensor values;  // [H D, J], the constant first
  if (layer.value_norm) {
    const Tensor made = collapsed(*layer.value, *layer.value_norm, *layer.value_out, wiring.products);
    values = at::cat({made.slice(1, -1), made.slice(1, 0, -1)}, 1);
  } else {
    values = at::cat({layer.value->bias.unsqueeze(1), layer.value->weight}, 1);
  }
  result.v = values.view({heads, width, values.size(1)});
  return result;
}

}  // namespace fastweights::nn

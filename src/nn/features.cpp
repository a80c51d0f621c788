#include "nn/features.h"

#include <algorithm>
#include <cmath>

#include "ops/scan/cpu/normalise.h"
#include "tensor/autograd.h"
#include "tensor/parallel.h"

namespace fastweights::nn {
namespace {

// [A a] less its column means: [d, C + 1]
Tensor centred(const Linear& layer) {
  const Tensor map = at::cat({layer.weight, layer.bias.unsqueeze(1)}, 1);
  return map - map.mean(0, /*keepdim=*/true);
}

}  // namespace

Tensor gram(const Linear& layer, Products products) {
  const Tensor columns = centred(layer).t();
  return fastweights::linear(columns, columns, {}, products) / static_cast<double>(layer.weight.size(0));
}

Tensor collapsed(const Linear& in, const LayerNorm& norm, const Linear& out, Products products) {
  const Tensor scaled = out.weight * norm.weight;  // [O, d]
  const Tensor map = fastweights::linear(scaled, centred(in).t().contiguous(), {}, products);
  const Tensor shift = fastweights::linear(norm.bias.unsqueeze(0), out.weight, out.bias, products);
  return at::cat({map, shift.t()}, 1);
}

namespace {

// R^T with R^T R = B^T B / d, by Cholesky's method in float64; a column that depends on others does no harm
Tensor metric_of(const Linear& layer) {
  const Linear exact = {layer.weight.detach().to(at::kDouble), layer.bias.detach().to(at::kDouble)};
  const Tensor square = gram(exact, Products::FixedOrder).contiguous();
  const int64_t size = square.size(0);
  const double* g = square.data_ptr<double>();
  double largest = 0;
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, g[i * size + i]);
  // padded to whole vectors, as the kernel requires
  const auto bytes = static_cast<int64_t>(at::elementSize(layer.weight.scalar_type()));
  const int64_t row = kernels::normalise_row(size - 1, bytes);
  Tensor metric = at::zeros({size, row}, at::kDouble);
  double* r = metric.data_ptr<double>();  // r[i, j] = R[j, i]
  for (int64_t j = 0; j < size; ++j) {
    double left = g[j * size + j];
    for (int64_t k = 0; k < j; ++k) left -= r[j * row + k] * r[j * row + k];
    if (left <= 1e-14 * largest) continue;
    r[j * row + j] = std::sqrt(left);
    for (int64_t i = j + 1; i < size; ++i) {
      double sum = g[j * size + i];
      for (int64_t k = 0; k < j; ++k) sum -= r[j * row + k] * r[i * row + k];
      r[i * row + j] = sum / r[j * row + j];
    }
  }
  return metric.to(layer.weight.scalar_type());
}

// rows that one thread does at a time; the sum over them has the same order with any number of threads
constexpr int64_t kRows = 4096;

// what features are made of: the keys' signal, and the values' with or without a norm of their own
struct Sources {
  Tensor keys, values;              // [R, C], values may be undefined
  Tensor key_gram, value_gram;      // [C + 1, C + 1], the values' may be undefined
  Tensor key_metric, value_metric;  // R^T of these, as the kernel requires

  int64_t rows() const { return keys.size(0); }
  int64_t channels() const { return keys.size(1); }
  int64_t first_value() const { return channels() + 2; }
  int64_t count() const {
    return channels() + 2 + (values.defined() ? values.size(1) : 0) + (value_gram.defined() ? 1 : 0);
  }
};

template <typename T>
kernels::NormaliseTask<T> task_of(const Tensor& x, const Tensor& metric, int64_t out_row, int64_t begin,
                                  int64_t end) {
  return {x.data_ptr<T>() + begin * x.size(1),
          end - begin,
          x.size(1),
          metric.data_ptr<T>(),
          kLayerNormEpsilon,
          out_row};
}

template <typename T>
void make_rows(const Sources& s, T* out) {
  const int64_t row = s.count(), values = s.values.defined() ? s.values.size(1) : 0;
  parallel_for((s.rows() + kRows - 1) / kRows, 1, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kRows, end = std::min(last * kRows, s.rows());
    T* to = out + begin * row;
    kernels::normalise<T>(task_of<T>(s.keys, s.key_metric, row, begin, end), to);
    for (int64_t n = begin; n < end; ++n) out[n * row + s.channels() + 1] = T{1};
    if (s.value_gram.defined()) {
      kernels::normalise<T>(task_of<T>(s.values, s.value_metric, row, begin, end), to + s.first_value());
    } else if (values > 0) {
      const T* from = s.values.data_ptr<T>();
      for (int64_t n = begin; n < end; ++n)
        std::copy_n(from + n * values, values, out + n * row + s.first_value());
    }
  });
}

struct SourceGradients {
  Tensor keys, values;            // undefined: not required
  Tensor key_grams, value_grams;  // [blocks, C + 1, row]
};

template <typename T>
void rows_backward(const Sources& s, const T* grad, SourceGradients& to) {
  const int64_t row = s.count(), values = s.values.defined() ? s.values.size(1) : 0;
  const auto pointer = [](const Tensor& x, int64_t offset) {
    return x.defined() ? x.data_ptr<T>() + offset : nullptr;
  };
  const auto gram_of = [](const Tensor& grams, int64_t block) {
    return grams.data_ptr<T>() + block * grams.size(1) * grams.size(2);
  };
  parallel_for((s.rows() + kRows - 1) / kRows, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kRows, end = std::min(begin + kRows, s.rows());
      const T* from = grad + begin * row;
      kernels::normalise_backward<T>(task_of<T>(s.keys, s.key_metric, row, begin, end), from,
                                     pointer(to.keys, begin * s.channels()), gram_of(to.key_grams, block));
      if (s.value_gram.defined()) {
        kernels::normalise_backward<T>(task_of<T>(s.values, s.value_metric, row, begin, end),
                                       from + s.first_value(), pointer(to.values, begin * values),
                                       gram_of(to.value_grams, block));
      } else if (to.values.defined()) {
        for (int64_t n = begin; n < end; ++n)
          std::copy_n(grad + n * row + s.first_value(), values, to.values.data_ptr<T>() + n * values);
      }
    }
  });
}

Tensor summed_gram(const Tensor& blocks, int64_t channels) {
  Tensor sum = blocks[0];
  for (int64_t i = 1; i < blocks.size(0); ++i) sum.add_(blocks[i]);
  return sum.slice(1, 0, channels + 1).contiguous();
}

// of keys, values, key_gram, value_gram
std::vector<Tensor> features_backward(const Sources& s, const Tensor& given) {
  const Tensor grad = given.contiguous();
  const int64_t blocks = std::max<int64_t>(1, (s.rows() + kRows - 1) / kRows);
  const auto like = [](const Tensor& x) {
    return x.defined() && x.requires_grad() ? at::empty_like(x) : Tensor();
  };
  const auto grams = [&](const Tensor& metric) {
    return metric.defined() ? at::zeros({blocks, metric.size(0), metric.size(1)}, metric.options())
                            : Tensor();
  };
  SourceGradients to = {like(s.keys), like(s.values), grams(s.key_metric), grams(s.value_metric)};
  if (grad.scalar_type() == at::kFloat) {
    rows_backward<float>(s, grad.data_ptr<float>(), to);
  } else {
    rows_backward<double>(s, grad.data_ptr<double>(), to);
  }
  return {to.keys, to.values, summed_gram(to.key_grams, s.channels()),
          s.value_gram.defined() ? summed_gram(to.value_grams, s.values.size(1)) : Tensor()};
}

// [R, F] with a backward pass that keeps the signal alone
Tensor make_features(Sources s) {
  Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = at::empty({s.rows(), s.count()}, s.keys.options().requires_grad(false));
    if (out.scalar_type() == at::kFloat) {
      make_rows<float>(s, out.data_ptr<float>());
    } else {
      make_rows<double>(s, out.data_ptr<double>());
    }
  }
  const std::vector<Tensor> inputs = {s.keys, s.values, s.key_gram, s.value_gram};
  return differentiable("features", {out}, inputs, {s.keys, s.values},
                        [s](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) mutable {
                          s.keys = saved[0];
                          s.values = saved[1];
                          return features_backward(s, grads[0]);
                        })[0];
}

}  // namespace

bool collapses(const FastWeightLayer& layer, const Wiring& wiring) {
  if (!layer.input || wiring.key_width != wiring.value_width) return false;
  const int64_t channels = layer.input->weight.size(1), hidden = layer.input->weight.size(0);
  const int64_t outputs = layer.program.weight.size(0);
  if (channels > kernels::kNormaliseChannels) return false;
  return (channels + 2) * outputs <= hidden * (channels + outputs);
}

int64_t feature_count(const FastWeightLayer& layer) {
  const int64_t channels = layer.input->weight.size(1);
  if (!layer.value) return channels + 2;
  return 2 * channels + 2 + (layer.value_norm ? 1 : 0);
}

Tensor features(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x) {
  Sources sources;
  sources.keys = key_input(wiring.drive, x).contiguous();
  sources.key_gram = gram(*layer.input, wiring.products);
  sources.key_metric = metric_of(*layer.input);
  if (layer.value) sources.values = value_input(wiring.drive, x).contiguous();
  if (layer.value_norm) {
    sources.value_gram = gram(*layer.value, wiring.products);
    sources.value_metric = metric_of(*layer.value);
  }
  return make_features(std::move(sources));
}

FeatureWeights feature_weights(const FastWeightLayer& layer, const Wiring& wiring) {
  const int64_t heads = wiring.heads, width = wiring.key_width;
  const Tensor map = collapsed(*layer.input, layer.norm, layer.program, wiring.products);  // [O, C + 2]
  const Tensor by_head = map.view({heads, map.size(0) / heads, map.size(1)});
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

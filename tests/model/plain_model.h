#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fastweights/model.h"
#include "tensor/autograd.h"

/// Fast weight programmers written down once more, from their named parameters and in plain LibTorch
/// operations, as what the library's own must equal. R rows, H heads, K and V widths of keys and values.

namespace fastweights::testing {

/// What a slow net makes, before softmax, tanh and sigmoid.
struct Raw {
  Tensor k, v, b;  // [R, H, K], [R, H, V], [R, H, 1]
};

/// What one layer reads.
struct Reading {
  Tensor x, dx;  // [R, C]: a signal and its time derivative
};

class PlainModel {
 public:
  explicit PlainModel(const Model& model) : config(model.config()) {
    for (const auto& [name, parameter] : model.parameters()) parameters_[name] = parameter.detach();
  }

  const ModelConfig config;

  bool has(const std::string& layer) const { return parameters_.count(layer + ".weight") > 0; }
  const Tensor& weight(const std::string& layer) const { return parameters_.at(layer + ".weight"); }
  const Tensor& bias(const std::string& layer) const { return parameters_.at(layer + ".bias"); }

  Tensor linear(const std::string& layer, const Tensor& x) const {
    return x.matmul(weight(layer).t()) + bias(layer);
  }

  Tensor norm(const std::string& layer, const Tensor& x) const {
    const Tensor centred = x - x.mean(-1, true);
    const Tensor variance = (centred * centred).mean(-1, true);
    return centred / (variance + 1e-5).sqrt() * weight(layer) + bias(layer);
  }

  Tensor feed_forward(const std::string& block, const Tensor& x) const {
    const Tensor hidden = linear(block + ".in", norm(block + ".norm", x)).clamp_min(0);
    return x + linear(block + ".out", hidden);
  }

  /// What keys, rates and queries are made from, before the norm: u [R, C] itself in layers above the first.
  Tensor encoded(int64_t l, const Tensor& u) const {
    return has(name(l, "input")) ? linear(name(l, "input"), u) : u;
  }

  /// Keys and rates from u, values from w or, where the layer has no projection for them, from u as well.
  Raw raw(int64_t l, const Tensor& u, const Tensor& w) const {
    const int64_t keys = config.key_width, values = config.value_width;
    const Tensor numbers = by_head(linear(name(l, "programme"), norm(name(l, "norm"), encoded(l, u))));
    const Tensor k = numbers.slice(-1, 0, keys), b = numbers.slice(-1, -1);
    if (!has(name(l, "value"))) return {k, numbers.slice(-1, keys, keys + values), b};
    Tensor v = linear(name(l, "value"), w);
    if (has(name(l, "value_out"))) v = linear(name(l, "value_out"), norm(name(l, "value_norm"), v));
    return {k, by_head(v), b};
  }

  Tensor query(int64_t l, const Tensor& u) const {
    return at::softmax(by_head(linear(name(l, "query"), norm(name(l, "norm"), encoded(l, u)))), -1);
  }

  /// FFN(M q), with M one of W and dW/dt [R, H, V, K] and the query from u: what the next layer reads.
  Tensor read(int64_t l, const Tensor& u, const Tensor& m) const {
    Tensor y = at::matmul(m, query(l, u).unsqueeze(-1)).reshape({u.size(0), -1});
    if (config.residual) y = y + encoded(l, u);
    return feed_forward(name(l, "ff"), y);
  }

  /// The time derivative of FFN(W q(x)): a row of the Jacobian at a time, by autograd.
  Tensor read_derivative(int64_t l, const Reading& in, const Tensor& w, const Tensor& dw) const {
    const at::AutoGradMode on(true);
    std::vector<Tensor> columns;
    const int64_t width = config.heads * config.value_width;
    for (int64_t j = 0; j < width; ++j) {
      const Tensor x = in.x.detach().clone().set_requires_grad(true);
      const Tensor here = w.detach().clone().set_requires_grad(true);
      const Tensor y = read(l, x, here).select(1, j).sum();
      const std::vector<Tensor> row = vector_jacobian({y}, {x, here}, {at::ones_like(y)});
      columns.push_back((row[0] * in.dx).sum(1) + (row[1] * dw).flatten(1).sum(1));
    }
    return at::stack(columns, 1);
  }

  static std::string name(int64_t l, const char* part) { return "layers." + std::to_string(l) + "." + part; }

 private:
  Tensor by_head(const Tensor& x) const { return x.reshape({x.size(0), config.heads, -1}); }

  std::map<std::string, Tensor> parameters_;
};

/// a b^T: [R, H, V] and [R, H, K] to [R, H, V, K]
inline Tensor times_transposed(const Tensor& a, const Tensor& b) {
  return at::matmul(a.unsqueeze(-1), b.unsqueeze(-2));
}

/// M k: [R, H, V, K] and [R, H, K] to [R, H, V]
inline Tensor times(const Tensor& m, const Tensor& k) { return at::matmul(m, k.unsqueeze(-1)).squeeze(-1); }

/// Kutta's 3/8 rule.
struct ThreeEighths {
  static constexpr int kStages = 4;
  static constexpr double c[4] = {0, 1.0 / 3, 2.0 / 3, 1};
  static constexpr double a[4][3] = {{0, 0, 0}, {1.0 / 3, 0, 0}, {-1.0 / 3, 1, 0}, {1, -1, 1}};
  static constexpr double b[4] = {0.125, 0.375, 0.375, 0.125};

  /// Times of the stages of a step, the first and the last just inside of it.
  static Tensor times(double from, double to) {
    const double dt = to - from;
    return at::tensor(
        {std::nextafter(from, to), from + c[1] * dt, from + c[2] * dt, std::nextafter(to, from)},
        at::kDouble);
  }
};

/// One sample of a batch, on a clock whose unit is `time_unit`.
inline RaggedSeries sample_of(const RaggedSeries& series, int64_t b, double time_unit) {
  const int64_t from = series.offsets[b].item<int64_t>(), to = series.offsets[b + 1].item<int64_t>();
  return {series.values.slice(0, from, to), series.times.slice(0, from, to) / time_unit,
          at::tensor({int64_t{0}, to - from}, at::kLong)};
}

}  // namespace fastweights::testing

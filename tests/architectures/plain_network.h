#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fastweights/model.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// Pieces of architectures written down once more for a single sample, from their named parameters and in
/// plain LibTorch operations, as what the library's batches must equal.

namespace fastweights::testing {

/// The parameters are the model's own, so that gradients of both can be compared.
class PlainNetwork {
 public:
  explicit PlainNetwork(const Model& model) {
    for (const auto& [name, tensor] : model.parameters()) parameters_[name] = tensor;
  }

  // x is a vector everywhere
  Tensor linear(const std::string& layer, const Tensor& x) const {
    return parameters_.at(layer + ".weight").matmul(x) + parameters_.at(layer + ".bias");
  }

  Tensor norm(const std::string& layer, const Tensor& x) const {
    const Tensor centred = x - x.mean();
    return centred / (centred.square().mean() + 1e-5).sqrt() * parameters_.at(layer + ".weight") +
           parameters_.at(layer + ".bias");
  }

  Tensor field(const std::string& name, Tensor z) const {
    for (int l = 0; parameters_.contains(name + "." + std::to_string(l) + ".weight"); ++l)
      z = linear(name + "." + std::to_string(l), z).tanh();
    return linear(name + ".out", z);
  }

  // one step of Kutta's 3/8 rule
  Tensor evolve(const std::string& name, const Tensor& z, double dt) const {
    const Tensor a = field(name, z), b = field(name, z + dt * a / 3);
    const Tensor c = field(name, z + dt * (b - a / 3)), d = field(name, z + dt * (a - b + c));
    return z + dt * (a + 3 * b + 3 * c + d) / 8;
  }

  Tensor gru(const std::string& name, const Tensor& x, const Tensor& h) const {
    const std::vector<Tensor> in = linear(name + ".input", x).chunk(3),
                              own = linear(name + ".state", h).chunk(3);
    const Tensor r = (in[0] + own[0]).sigmoid(), z = (in[1] + own[1]).sigmoid();
    return (1 - z) * (in[2] + r * own[2]).tanh() + z * h;
  }

  /// Mean and logarithm of the variance.
  std::vector<Tensor> latent(const Tensor& h) const {
    return linear("latent.out", linear("latent.hidden", h).tanh()).chunk(2);
  }

 private:
  std::map<std::string, Tensor> parameters_;
};

/// Series in which values are missing, in some rows all of them, but none in the first.
inline RaggedSeries gappy_series(int64_t channels) {
  std::vector<Tensor> times, values;
  for (int64_t length : {6, 9, 4}) {
    times.push_back(irregular_times(length, 10 + length));
    Tensor x = with_missing(random({length, channels}, 20 + length), 0.4, 30 + length);
    x[0] = random({channels}, 40 + length);
    x[2].fill_(NAN);
    values.push_back(x);
  }
  return ragged(times, values);
}

/// One sample of it as a system reads it.
struct PlainRows {
  std::vector<double> times;
  std::vector<Tensor> values, mask;  // [C]: the last observation of each channel; 1 where it is one

  size_t count() const { return times.size(); }
  double gap(size_t n) const { return n == 0 ? 0 : times[n] - times[n - 1]; }
  bool seen(size_t n) const { return mask[n].sum().item<double>() > 0; }
};

inline PlainRows plain_rows(const RaggedSeries& series, int64_t sample) {
  PlainRows rows;
  const int64_t begin = series.offsets[sample].item<int64_t>(),
                end = series.offsets[sample + 1].item<int64_t>();
  Tensor held = series.values[begin];
  for (int64_t i = begin; i < end; ++i) {
    const Tensor x = series.values[i];
    held = at::where(x.isnan(), held, x);
    rows.times.push_back(series.times[i].item<double>());
    rows.values.push_back(held);
    rows.mask.push_back(x.isnan().logical_not().to(at::kDouble));
  }
  return rows;
}

/// Outputs between rows, at a row, and at the end of each sample.
inline RaggedTimes some_output_times(const RaggedSeries& series) {
  std::vector<Tensor> times;
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < series.samples(); ++b) {
    const Tensor t =
        series.times.slice(0, series.offsets[b].item<int64_t>(), series.offsets[b + 1].item<int64_t>());
    times.push_back(at::stack({0.3 * t[0] + 0.7 * t[1], t[2], 0.6 * t[2] + 0.4 * t[3], t[-1]}));
    if (t.size(0) == 4) times.back()[2] = 0.5 * (t[2] + t[3]);
    offsets.push_back(offsets.back() + 4);
  }
  return {at::cat(times, 0), at::tensor(offsets, at::kLong)};
}

/// What is compared: outputs, a number of them and the gradient of it for all parameters.
struct Compared {
  Tensor outputs;
  Tensor number;
};

/// Two ways to compute the same numbers add them in another order: some hundred roundings of 1e-16 each.
constexpr double kSame = 1e-10;

inline void expect_same(const Model& model, const Compared& got, const Compared& expected) {
  EXPECT_LT(relative_error(got.outputs.detach(), expected.outputs.detach()), kSame);
  EXPECT_LT(relative_error(got.number.detach(), expected.number.detach()), kSame);
  const std::vector<Tensor> parameters = model.parameter_tensors();
  const Tensor one = at::ones({}, at::kDouble);
  const std::vector<Tensor> ours = vector_jacobian({got.number}, parameters, {one});
  const std::vector<Tensor> theirs = vector_jacobian({expected.number}, parameters, {one});
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = model.parameters()[i].first;
    EXPECT_GT(theirs[i].abs().max().item<double>(), 0) << name << " does not matter";
    EXPECT_LT(relative_error(ours[i], theirs[i]), kSame) << name;
  }
}

/// A batch has the outputs of its samples alone; in training they draw as the sample at their place does.
inline void expect_independent(const Model& model, const ModelInput& input) {
  const ModelOutput together = model.forward(input);
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    const int64_t begin = input.series.offsets[b].item<int64_t>(),
                  end = input.series.offsets[b + 1].item<int64_t>();
    const int64_t first = together.offsets[b].item<int64_t>(), last = together.offsets[b + 1].item<int64_t>();
    ModelInput alone = {.series = ragged({input.series.times.slice(0, begin, end)},
                                         {input.series.values.slice(0, begin, end)})};
    if (input.static_features.defined()) alone.static_features = input.static_features.slice(0, b, b + 1);
    if (input.output_times)
      alone.output_times = {input.output_times->times.slice(0, first, last),
                            at::tensor({int64_t{0}, last - first})};
    const ModelOutput single = model.forward(alone);
    EXPECT_LT(relative_error(together.outputs.slice(0, first, last).detach(), single.outputs.detach()),
              1e-12);
    if (b > 0) continue;
    const ForwardOptions training = {.mode = Mode::Train, .seed = 5};
    EXPECT_LT(relative_error(model.forward(input, training).outputs.slice(0, first, last).detach(),
                             model.forward(alone, training).outputs.detach()),
              1e-12);
  }
}

}  // namespace fastweights::testing

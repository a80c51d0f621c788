#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/gradcheck.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// Architectures that process row by row, against their equations, written down for one sample and one row at
/// a time.

namespace fastweights::testing {

using Weights = std::map<std::string, Tensor>;

/// Behind each of a sample's rows: the state, and the fast weights [H, V, K] if there are any.
struct PlainStates {
  std::vector<Tensor> states, w;
};
using Equations =
    std::function<PlainStates(Weights& weights, const std::vector<Tensor>& rows, const Tensor& features)>;

inline Tensor layer(Weights& weights, const std::string& name, const Tensor& x) {
  const Tensor y = weights.at(name + ".weight").mv(x);
  return weights.count(name + ".bias") ? y + weights.at(name + ".bias") : y;
}

inline Tensor static_net(Weights& weights, const Tensor& features) {
  return layer(weights, "static.out", at::relu(layer(weights, "static.hidden", features)));
}

/// [1 + 2 C] each: the time since the row before, values and what of them was observed. A missing value is
/// the last one, before the first one that, of a channel never observed 0.
inline std::vector<Tensor> plain_rows(const RaggedSeries& series, int64_t b, double time_unit) {
  const int64_t begin = series.offsets[b].item<int64_t>(), end = series.offsets[b + 1].item<int64_t>();
  std::vector<Tensor> rows;
  for (int64_t i = begin; i < end; ++i) {
    std::vector<Tensor> values, mask;
    for (int64_t c = 0; c < series.channels(); ++c) {
      const auto missing = [&](int64_t row) { return series.values[row][c].isnan().item<bool>(); };
      int64_t from = i;
      while (from > begin && missing(from)) --from;
      while (from < end && missing(from)) ++from;
      values.push_back(from < end ? series.values[from][c] : at::zeros({}, at::kDouble));
      mask.push_back(at::full({}, missing(i) ? 0.0 : 1.0, at::kDouble));
    }
    const Tensor gap = (series.times[i] - series.times[i == begin ? i : i - 1]) / time_unit;
    rows.push_back(at::cat({gap.view(1), at::stack(values), at::stack(mask)}));
  }
  return rows;
}

/// Ragged series of irregular times, the second one with a channel that is never observed, and outputs
/// between rows, at rows and at the end.
inline ModelInput some_input(const ModelConfig& config) {
  RaggedSeries series =
      synthetic_series({.samples = 3, .length = 11, .channels = config.channels, .seed = 5});
  series.values = with_missing(series.values, 0.3, 6);
  series.values.slice(0, series.offsets[1].item<int64_t>(), series.offsets[2].item<int64_t>())
      .select(1, 0)
      .fill_(NAN);
  ModelInput input = {.series = series};
  std::vector<Tensor> wanted;
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor t =
        series.times.slice(0, series.offsets[b].item<int64_t>(), series.offsets[b + 1].item<int64_t>());
    wanted.push_back(at::stack({t[0], 0.4 * t[1] + 0.6 * t[2], t[3], t[-1]}));
  }
  input.output_times = RaggedTimes{at::cat(wanted), at::arange(4, at::kLong) * 4};
  if (config.static_features > 0) input.static_features = random({3, config.static_features}, 7);
  return input;
}

inline constexpr double kTimeUnit = 0.7;

/// Options is Recurrent or DiscreteFwp.
template <typename Options>
ModelConfig row_config(Options options, int64_t layers, int64_t static_features) {
  options.control.path = Hold{};
  options.hidden_size = 6;
  options.static_hidden_size = 5;
  options.layers = layers;
  options.time_unit = kTimeUnit;
  return {.channels = 2, .static_features = static_features, .outputs = 3, .architecture = options};
}

struct PlainOutputs {
  Tensor outputs;         // [M, O]
  std::vector<Tensor> w;  // [H, V, K] each, if there are any
};

inline PlainOutputs plain_outputs(Weights& weights, const ModelInput& input, const Equations& equations) {
  std::vector<Tensor> outputs, w;
  const RaggedSeries& series = input.series;
  for (int64_t b = 0; b < series.samples(); ++b) {
    const Tensor features = input.static_features.defined() ? input.static_features[b] : Tensor();
    const PlainStates found = equations(weights, plain_rows(series, b, kTimeUnit), features);
    const int64_t begin = series.offsets[b].item<int64_t>();
    for (int64_t i = 4 * b; i < 4 * b + 4; ++i) {
      size_t row = 0;
      const double wanted = input.output_times->times[i].item<double>();
      while (row + 1 < found.states.size() &&
             series.times[begin + static_cast<int64_t>(row) + 1].item<double>() <= wanted)
        ++row;
      outputs.push_back(layer(weights, "head", found.states[row]));
      if (!found.w.empty()) w.push_back(found.w[row]);
    }
  }
  return {at::stack(outputs), w};
}

/// Outputs, fast weights, and gradients of all parameters, of the series' values and of static features. Says
/// who computed.
inline std::string expect_equations(const ModelConfig& config, const Equations& equations) {
  const Model model(config, {.type = at::kDouble});
  Weights weights;
  std::vector<std::string> names;
  std::vector<Tensor> inputs;
  for (const auto& [name, tensor] : model.parameters()) {
    weights[name] = tensor;
    names.push_back(name);
    inputs.push_back(tensor);
  }
  ModelInput input = some_input(config);
  names.push_back("values");
  inputs.push_back(input.series.values.set_requires_grad(true));
  if (config.static_features > 0) {
    names.push_back("static features");
    inputs.push_back(input.static_features.set_requires_grad(true));
  }
  const ModelOutput output = model.forward(input);
  const PlainOutputs plain = plain_outputs(weights, input, equations);
  const Tensor &got = output.outputs, &expected = plain.outputs;
  EXPECT_LT(relative_error(got.detach(), expected.detach()), 1e-10);
  if (!plain.w.empty()) {
    EXPECT_LT(relative_error(output.w[0].detach(), at::stack(plain.w).detach()), 1e-10);
  }
  const Tensor loss = random(got.sizes(), 8);
  const std::vector<Tensor> found = vector_jacobian({got}, inputs, {loss}),
                            right = vector_jacobian({expected}, inputs, {loss});
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_GT(right[i].abs().max().item<double>(), 0) << names[i] << " does not matter";
    EXPECT_LT(relative_error(found[i], right[i]), 1e-10) << names[i];
  }
  return output.backend;
}

/// Each sample alone has the outputs that it has among others.
inline void expect_samples_alone(const ModelConfig& config) {
  const Model model(config, {.type = at::kDouble});
  const at::NoGradGuard no_grad;
  const ModelInput all = some_input(config);
  const ModelOutput together = model.forward(all);
  for (int64_t b = 0; b < all.series.samples(); ++b) {
    const int64_t begin = all.series.offsets[b].item<int64_t>(),
                  end = all.series.offsets[b + 1].item<int64_t>();
    ModelInput alone;
    alone.series = ragged({all.series.times.slice(0, begin, end)}, {all.series.values.slice(0, begin, end)});
    alone.output_times =
        RaggedTimes{all.output_times->times.slice(0, 4 * b, 4 * b + 4), at::arange(2, at::kLong) * 4};
    if (all.static_features.defined()) alone.static_features = all.static_features.slice(0, b, b + 1);
    const ModelOutput found = model.forward(alone);
    EXPECT_LT(relative_error(found.outputs, together.outputs.slice(0, 4 * b, 4 * b + 4)), 1e-12);
    EXPECT_LT(relative_error(found.w[0], together.w[0].slice(0, 4 * b, 4 * b + 4)), 1e-12);
  }
}

/// Float32 has seven digits, of which a few rows lose one or two.
inline void expect_single_precision(const ModelConfig& config) {
  const at::NoGradGuard no_grad;
  const ModelInput input = some_input(config);
  ModelInput rounded = input;
  rounded.series.values = input.series.values.to(at::kFloat);
  if (input.static_features.defined()) rounded.static_features = input.static_features.to(at::kFloat);
  const Tensor exact = Model(config, {.type = at::kDouble}).forward(input).outputs,
               found = Model(config, {.type = at::kFloat}).forward(rounded).outputs;
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_LT(relative_error(found.to(at::kDouble), exact), 1e-5);
}

}  // namespace fastweights::testing

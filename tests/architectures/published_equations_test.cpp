#include "architectures/cases.h"
#include "tensor/autograd.h"

/// Architectures without files of the published code, against their equations written down row by row, sample
/// by sample, in float64: values and gradients.

namespace fastweights {
namespace {

using testing::input_of_samples;
using testing::random;
using testing::relative_error;
using testing::small_baseline;
using testing::small_model_of;
using testing::some_samples;

using Parameters = std::map<std::string, Tensor>;

Parameters parameters_of(const Model& model) {
  Parameters found;
  for (const auto& [name, tensor] : model.parameters()) found[name] = tensor;
  return found;
}

Tensor affine(const Parameters& p, const std::string& name, const Tensor& x) {
  return at::mv(p.at(name + ".weight"), x) + p.at(name + ".bias");
}

// rows of gap, last values (0 before the first one is known only if none ever is) and mask
struct Rows {
  std::vector<Tensor> values, mask;  // [C] each
  std::vector<double> gap, since;
  std::vector<bool> observed;
};

Rows rows_of(const Tensor& times, const Tensor& values) {
  Rows rows;
  const int64_t length = values.size(0), channels = values.size(1);
  double last = times[0].item<double>();
  for (int64_t n = 0; n < length; ++n) {
    const double t = times[n].item<double>();
    rows.gap.push_back(n == 0 ? 0 : t - times[n - 1].item<double>());
    rows.since.push_back(n == 0 ? 0 : t - last);
    const Tensor seen = at::isnan(values[n].detach()).logical_not();
    std::vector<Tensor> filled;
    for (int64_t c = 0; c < channels; ++c) {
      int64_t m = n;
      while (m >= 0 && std::isnan(values[m][c].item<double>())) --m;
      // before the first observation: that one
      if (m < 0) {
        m = 0;
        while (m < length && std::isnan(values[m][c].item<double>())) ++m;
      }
      filled.push_back(m < length ? values[m][c] : at::zeros({}, at::kDouble));
    }
    rows.values.push_back(at::stack(filled, 0));
    rows.mask.push_back(seen.to(at::kDouble));
    // the first channel is time
    rows.observed.push_back(seen.slice(0, 1).any().item<bool>());
    if (rows.observed.back()) last = t;
  }
  return rows;
}

Tensor number(double x) { return at::full({1}, x, at::kDouble); }

using Equations = std::function<Tensor(const Parameters&, const Tensor& times, const Tensor& values)>;

// outputs and all gradients of a model and of its equations
void expect_equal(const ModelConfig& config, const Equations& equations) {
  const Model model = small_model_of(config);
  const auto samples = some_samples();
  ModelInput input = input_of_samples(samples);
  input.series.values = input.series.values.set_requires_grad(true);
  const Tensor weight = random({3, config.outputs}, 9);
  const Tensor outputs = model.forward(input).outputs;
  std::vector<Tensor> inputs = model.parameter_tensors();
  inputs.push_back(input.series.values);
  const Tensor loss = (outputs * weight).sum();
  const auto got = vector_jacobian({loss}, inputs, {at::ones_like(loss)});

  const Parameters p = parameters_of(model);
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t from = input.series.offsets[b].item<int64_t>(),
                  to = input.series.offsets[b + 1].item<int64_t>();
    rows.push_back(
        equations(p, input.series.times.slice(0, from, to), input.series.values.slice(0, from, to)));
  }
  const Tensor expected = at::stack(rows, 0), expected_loss = (expected * weight).sum();
  const auto wanted = vector_jacobian({expected_loss}, inputs, {at::ones_like(expected_loss)});
  EXPECT_LT(relative_error(outputs, expected), 1e-12);
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_LT(relative_error(got[i], wanted[i]), 1e-10)
        << (i < model.parameters().size() ? model.parameters()[i].first : "values");
}

Tensor gru(const Parameters& p, const std::string& name, const Tensor& x, const Tensor& h) {
  const Tensor i = affine(p, name + ".input", x), s = affine(p, name + ".state", h);
  const int64_t d = h.size(0);
  const Tensor r = at::sigmoid(i.slice(0, 0, d) + s.slice(0, 0, d));
  const Tensor z = at::sigmoid(i.slice(0, d, 2 * d) + s.slice(0, d, 2 * d));
  const Tensor n = at::tanh(i.slice(0, 2 * d) + r * s.slice(0, 2 * d));
  return (1 - z) * n + z * h;
}

TEST(PublishedEquations, Gru) {
  const ModelConfig config = small_baseline("gru");
  expect_equal(config, [](const Parameters& p, const Tensor& times, const Tensor& values) {
    const Rows rows = rows_of(times, values);
    Tensor h = at::zeros({6}, at::kDouble);
    for (size_t n = 0; n < rows.gap.size(); ++n)
      h = gru(p, "layers.0", at::cat({number(rows.gap[n]), rows.values[n], rows.mask[n]}, 0), h);
    return affine(p, "head", h);
  });
}

TEST(PublishedEquations, LstmOfTwoLayers) {
  const ModelConfig config = with_setting(small_baseline("lstm"), "layers", "2");
  expect_equal(config, [](const Parameters& p, const Tensor& times, const Tensor& values) {
    const Rows rows = rows_of(times, values);
    const int64_t d = 6;
    std::vector<Tensor> h(2, at::zeros({d}, at::kDouble)), c = h;
    for (size_t n = 0; n < rows.gap.size(); ++n) {
      Tensor x = at::cat({number(rows.gap[n]), rows.values[n], rows.mask[n]}, 0);
      for (size_t l = 0; l < 2; ++l) {
        const std::string name = "layers." + std::to_string(l);
        const Tensor a = affine(p, name + ".input", x) + affine(p, name + ".state", h[l]);
        const Tensor i = at::sigmoid(a.slice(0, 0, d)), f = at::sigmoid(a.slice(0, d, 2 * d));
        const Tensor o = at::sigmoid(a.slice(0, 2 * d, 3 * d)), g = at::tanh(a.slice(0, 3 * d));
        c[l] = f * c[l] + i * g;
        x = h[l] = o * at::tanh(c[l]);
      }
    }
    return affine(p, "head", h[1]);
  });
}

// a GRU at rows where something was observed; between rows the state goes its way
Tensor observed_gru(const Parameters& p, const Tensor& times, const Tensor& values,
                    const std::function<Tensor(const Tensor&, double)>& passed) {
  const Rows rows = rows_of(times, values);
  Tensor h = at::zeros({6}, at::kDouble);
  for (size_t n = 0; n < rows.gap.size(); ++n) {
    if (n > 0) h = passed(h, rows.gap[n]);
    if (!rows.observed[n]) continue;
    h = gru(p, "cell", at::cat({number(rows.since[n]), rows.values[n], rows.mask[n]}, 0), h);
  }
  return affine(p, "head", h);
}

TEST(PublishedEquations, GruDt) {
  expect_equal(small_baseline("gru-dt"), [](const Parameters& p, const Tensor& times, const Tensor& values) {
    return observed_gru(p, times, values, [](const Tensor& h, double) { return h; });
  });
}

TEST(PublishedEquations, GruD) {
  expect_equal(small_baseline("gru-d"), [](const Parameters& p, const Tensor& times, const Tensor& values) {
    return observed_gru(p, times, values, [&](const Tensor& h, double gap) {
      return h * at::exp(-at::relu(affine(p, "decay", number(gap))));
    });
  });
}

TEST(PublishedEquations, OdeRnn) {
  expect_equal(small_baseline("ode-rnn"), [](const Parameters& p, const Tensor& times, const Tensor& values) {
    const auto f = [&](const Tensor& h) {
      const Tensor hidden = at::tanh(affine(p, "field.1", at::tanh(affine(p, "field.0", h))));
      return affine(p, "field.out", hidden);
    };
    return observed_gru(p, times, values, [&](const Tensor& h, double dt) {
      // Kutta's 3/8 rule
      const Tensor k1 = f(h), k2 = f(h + dt * k1 / 3), k3 = f(h + dt * (k2 - k1 / 3)),
                   k4 = f(h + dt * (k1 - k2 + k3));
      return h + dt * (k1 + 3 * k2 + 3 * k3 + k4) / 8;
    });
  });
}

// an output between two rows: the state of the earlier one, when time has passed
TEST(PublishedEquations, GruDBetweenRows) {
  const Model model = small_model_of(small_baseline("gru-d"));
  const auto [times, values] = some_samples()[2];
  ModelInput input = input_of_samples({{times, values}});
  const double before = times[6].item<double>(), wanted = before + 0.4 * (times[7].item<double>() - before);
  input.output_times = {at::tensor({before, wanted}, at::kDouble),
                        at::tensor({int64_t{0}, int64_t{2}}, at::kLong)};
  const Tensor got = model.forward(input).outputs;
  const Parameters p = parameters_of(model);
  const auto decayed = [&](const Tensor& h, double gap) {
    return h * at::exp(-at::relu(affine(p, "decay", number(gap))));
  };
  const Rows rows = rows_of(times, values);
  Tensor h = at::zeros({6}, at::kDouble);
  for (size_t n = 0; n < 7; ++n) {
    if (n > 0) h = decayed(h, rows.gap[n]);
    if (rows.observed[n])
      h = gru(p, "cell", at::cat({number(rows.since[n]), rows.values[n], rows.mask[n]}, 0), h);
  }
  EXPECT_LT(relative_error(got[0], affine(p, "head", h)), 1e-12);
  EXPECT_LT(relative_error(got[1], affine(p, "head", decayed(h, wanted - before))), 1e-12);
  EXPECT_GT(relative_error(got[1], got[0]), 1e-3);
}

// F(z) = a(z) b(z)^T with straight lines between observations and Euler's steps, which are easy to write down
TEST(PublishedEquations, NeuralCdeOfRankOne) {
  ModelConfig config = small_baseline("ncde-rank-one");
  config = with_setting(with_setting(config, "control.kind", "linear"), "solver.method", "euler");
  expect_equal(config, [](const Parameters& p, const Tensor& times, const Tensor& values) {
    const RaggedSeries filled =
        fill_missing({values, times, at::tensor({int64_t{0}, values.size(0)}, at::kLong)});
    const Tensor x = filled.values;
    Tensor z = affine(p, "first", x[0]);
    for (int64_t n = 0; n + 1 < x.size(0); ++n) {
      const Tensor hidden = at::relu(affine(p, "field.1", at::relu(affine(p, "field.0", z))));
      const Tensor ab = at::tanh(affine(p, "field.out", hidden));
      z = z + ab.slice(0, 0, 6) * at::dot(ab.slice(0, 6), x[n + 1] - x[n]);
    }
    return affine(p, "head", z);
  });
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "base/random.h"
#include "fastweights/model.h"
#include "model/plain_model.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// What Oja's rules learn from a stationary signal. A rule whose steps gamma_n = beta dt fall like 1 / n ends
/// near the rest point of its mean, at a distance that the noise of the last steps decides: for the linear
/// equation d' = -A d with noise of covariance Q the errors d have the covariance Sigma of
/// A Sigma + Sigma A^T = gamma Q.

namespace fastweights {
namespace {

Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  Tensor result = at::empty(shape, at::kDouble);
  Random random(seed);
  for (int64_t i = 0; i < result.numel(); ++i) result.data_ptr<double>()[i] = random.normal();
  return result;
}

// the textbook rule for one neuron: y = W k, dW/dt = beta y (k - W^T y)
Rule textbook_oja() {
  return {"textbook_oja", KeyForm::Raw, ValueForm::Raw,
          [](const Tensor& k, const Tensor&, const Tensor& beta, const Tensor& w) {
            const Tensor y = testing::times(w, k);  // [B, 1, 1]
            return testing::times_transposed(beta * y, k - y * w.squeeze(-2));
          }};
}

// three inputs of N independent vectors each, with principal axes of their own: [3, N, 5]
Tensor stationary_inputs(int64_t n) {
  const Tensor deviations = at::tensor({0.6, 2.0, 0.3, 1.0, 0.8}, at::kDouble);
  std::vector<Tensor> inputs;
  for (uint64_t b = 0; b < 3; ++b) {
    const Tensor axes = std::get<0>(at::linalg_qr(normal({5, 5}, 100 + b)));
    inputs.push_back(at::matmul(normal({n, 5}, 110 + b) * deviations, axes));
  }
  return at::stack(inputs, 0);
}

TEST(Exactness, TextbookOjaFindsTheFirstPrincipalComponent) {
  constexpr int64_t kPieces = 3000;
  const Tensor inputs = stationary_inputs(kPieces);
  const Tensor rates = 1 / (20 + 0.5 * at::arange(kPieces, at::kDouble));
  // keys and rates, constant over one unit of time each
  const Tensor signal =
      at::cat({inputs, rates.unsqueeze(0).unsqueeze(-1).expand({3, kPieces, 1})}, 2).reshape({-1, 6});
  const Tensor grid = at::arange(kPieces + 1, at::kDouble);
  const Control control = Control::piecewise_constant(
      {grid.repeat({3}), at::arange(4, at::kLong) * (kPieces + 1)}, signal.contiguous());
  const Rule rule = textbook_oja();
  const Field field = [&](const Time& t, const Tensor& w) {
    const Tensor x = control.at(t).value.unsqueeze(1);
    return rule.slope(x.slice(-1, 0, 5), {}, x.slice(-1, 5), w);
  };
  const Tensor w0 = 0.3 * normal({3, 1, 1, 5}, 120), ts = at::tensor({0.0, double{kPieces}}, at::kDouble);
  const Solution solution =
      solve(field, w0, ts, {.method = heun3(), .steps = GivenSteps{grid, StageEdges::Inside}});
  ASSERT_TRUE(solution.status) << solution.status.message();

  const double rate = rates[-1].item<double>();
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor w = solution.ys[1][b].reshape({5});
    const Tensor covariance = at::matmul(inputs[b].t(), inputs[b]) / double{kPieces};
    const auto [values, vectors] = at::linalg_eigh(covariance);  // rising
    const double cosine = (w.dot(vectors.select(1, 4)).abs() / w.norm()).item<double>();
    // along each other axis: A = l1 - lj, Q = E[y^2 kj^2] = l1 lj
    const Tensor first = values[4], others = values.slice(0, 0, 4);
    const double angle_squared = (rate * first * others / (2 * (first - others))).sum().item<double>();
    std::printf("angle %.4f, expected %.4f\n", std::acos(cosine), std::sqrt(angle_squared));
    EXPECT_GT(cosine, std::cos(3 * std::sqrt(angle_squared))) << "sample " << b;
    EXPECT_GT(cosine, 0.99) << "sample " << b;
    // along the first axis: A = 2 l1, and Q = E[(y^2 - l1)^2] = 2 l1^2
    EXPECT_NEAR(w.norm().item<double>(), 1, 3 * std::sqrt(rate * first.item<double>() / 2)) << b;
  }
}

// rates of 1/2 at all times
void fix_rates(const Model& model) {
  const at::NoGradGuard no_grad;
  const ProgrammerConfig& c = model.config();
  for (const auto& [name, parameter] : model.parameters()) {
    if (name.rfind("layers.0.program", 0) != 0) continue;
    // a livelier net than the initial one, so that all directions of the values are excited
    parameter.mul_(4);
    for (int64_t h = 1; h <= c.heads; ++h) parameter[h * (c.key_width + c.value_width + 1) - 1].zero_();
  }
}

TEST(Exactness, LinearOjaFindsTheRegressionOfKeysOnValues) {
  ProgrammerConfig config;
  config.rule = "oja";
  config.channels = 5;
  config.hidden_size = 7;
  config.heads = 3;
  config.key_width = 4;
  config.value_width = 2;
  config.control.path = Hold{};
  config.solver.method = midpoint();
  const Model model(config, {.seed = 2, .type = at::kDouble});
  fix_rates(model);

  // gaps that fall like 1 / n make rates that do
  constexpr int64_t kPoints = 3000;
  const Tensor gaps = 20 / (100 + at::arange(kPoints, at::kDouble));
  const Tensor x = normal({kPoints, 5}, 130);
  const at::NoGradGuard no_grad;
  const Tensor got = model.forward({.series = ragged({gaps.cumsum(0)}, {x})}).w[0][0];  // [H, V, K]

  // the last observation is only seen, not held
  const testing::Raw raw = testing::PlainModel(model).raw(0, x.slice(0, 0, -1), {});
  for (int64_t h = 0; h < config.heads; ++h) {
    const Tensor k = at::softmax(raw.k.select(1, h), -1), v = at::tanh(raw.v.select(1, h));  // [N, .]
    const double n = kPoints - 1;
    const Tensor second = at::matmul(v.t(), v) / n;
    // enough time to forget the start in every direction
    const double slowest = at::linalg_eigvalsh(second)[0].item<double>();
    ASSERT_GT(slowest * 0.5 * gaps.sum().item<double>(), 8) << "head " << h;
    const Tensor regression = at::linalg_solve(second, at::matmul(v.t(), k) / n);
    // the errors' covariance has the trace gamma / 2 tr(A^-1 Q), with the noise v (k - W^T v)^T
    const Tensor residual = (k - at::matmul(v, regression)).square().sum(1);
    const Tensor leverage = (v * at::linalg_solve(second, v.t()).t()).sum(1);
    const double rate = 0.5 * gaps[-1].item<double>();
    const double expected = std::sqrt(rate / 2 * (residual * leverage).mean().item<double>());
    const double error = (got[h] - regression).norm().item<double>();
    std::printf("head %ld: error %.4f, expected %.4f, of %.4f\n", h, error, expected,
                regression.norm().item<double>());
    EXPECT_LT(error, 3 * expected) << "head " << h;
    // and that is not much: nothing else would be as near
    EXPECT_LT(error, 0.1 * regression.norm().item<double>()) << "head " << h;
  }
}

}  // namespace
}  // namespace fastweights

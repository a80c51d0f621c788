#include <algorithm>
#include <set>

#include "architectures/latent.h"
#include "architectures/plain_network.h"
#include "fastweights/gradcheck.h"

/// Latent ODEs against their equations, sample by sample, and first states that are drawn.

namespace fastweights {
namespace {

using namespace testing;

constexpr int64_t kBaselineChannels = 2, kStatic = 3;

ModelConfig some_config() {
  return {
      .channels = kBaselineChannels,
      .static_features = kStatic,
      .outputs = 3,
      .architecture = fastweights::LatentOde{.control = {.path = Hold{}},
                                             .field = {.hidden_size = 6, .layers = 1},
                                             .latent = {.size = 4, .divergence = 0.2, .reconstruction = 0.7},
                                             .hidden_size = 5,
                                             .static_hidden_size = 4}};
}

ModelInput latent_input() {
  const RaggedSeries series = gappy_series(kBaselineChannels);
  return {.series = series,
          .static_features = random({series.samples(), kStatic}, 7),
          .output_times = some_output_times(series)};
}

// mean and logarithm of the variance of one sample's first state
std::vector<Tensor> plain_encoded(const PlainNetwork& net, const PlainRows& rows, const Tensor& features) {
  Tensor h = net.linear("static.out", net.linear("static.hidden", features).relu());
  for (size_t n = rows.count(); n-- > 0;) {
    if (n + 1 < rows.count()) h = net.evolve("encoder.field", h, rows.gap(n + 1));
    if (rows.seen(n)) h = net.gru("encoder", at::cat({rows.values[n], rows.mask[n]}), h);
  }
  return net.latent(h);
}

// z at all times of a sample, rows' and outputs'
std::map<double, Tensor> plain_solution(const PlainNetwork& net, const PlainRows& rows, const Tensor& wanted,
                                        const Tensor& z0) {
  std::set<double> times(rows.times.begin(), rows.times.end());
  for (int64_t i = 0; i < wanted.size(0); ++i) times.insert(wanted[i].item<double>());
  std::map<double, Tensor> result;
  Tensor z = z0;
  double before = *times.begin();
  for (double time : times) {
    z = net.evolve("field", z, time - before);
    result[time] = z;
    before = time;
  }
  return result;
}

Compared plain_latent(const Model& model, const ModelInput& input, const ForwardOptions& options) {
  const PlainNetwork net(model);
  const LatentConfig& latent = model.config().architecture.get<fastweights::LatentOde>().latent;
  std::vector<Tensor> mean, variance, outputs;
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    const std::vector<Tensor> said =
        plain_encoded(net, plain_rows(input.series, b), input.static_features[b]);
    mean.push_back(said[0]);
    variance.push_back(said[1].exp());
  }
  const Tensor m = at::stack(mean), s = at::stack(variance), z0 = draw({m, s.log()}, options);
  Tensor error = at::zeros({}, at::kDouble);
  double observed = 0;
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    const PlainRows rows = plain_rows(input.series, b);
    const Tensor wanted = input.output_times->times.slice(0, 4 * b, 4 * b + 4);
    const std::map<double, Tensor> z = plain_solution(net, rows, wanted, z0[b]);
    for (int64_t i = 0; i < 4; ++i)
      outputs.push_back(net.linear("head", at::cat({z0[b], z.at(wanted[i].item<double>())})));
    for (size_t n = 0; n < rows.count(); ++n) {
      const Tensor told = net.linear("decoder", z.at(rows.times[n]));
      error = error + (rows.mask[n] * (told - rows.values[n]).square()).sum();
      observed += rows.mask[n].sum().item<double>();
    }
  }
  const Tensor all = at::stack(outputs);
  const Tensor divergence = (m.square() + s - s.log() - 1).sum() / 2 / static_cast<double>(m.numel());
  Tensor number = random_loss(3)(all);
  if (options.mode == Mode::Train)
    number = number + latent.divergence * divergence + latent.reconstruction * error / observed;
  return {all, number};
}

TEST(LatentOde, EqualsItsEquationsInTraining) {
  const ModelInput input = latent_input();
  const ForwardOptions options = {.mode = Mode::Train, .seed = 11};
  const Model model(some_config(), {.type = at::kDouble});
  const ModelOutput output = model.forward(input, options);
  expect_same(model, {output.outputs, random_loss(3)(output.outputs) + output.auxiliary_loss},
              plain_latent(model, input, options));
}

TEST(LatentOde, DrawsNothingInEvaluation) {
  const ModelInput input = latent_input();
  const Model model(some_config(), {.type = at::kDouble});
  const ModelOutput output = model.forward(input);
  EXPECT_LT(relative_error(output.outputs.detach(), plain_latent(model, input, {}).outputs.detach()), kSame);
  EXPECT_FALSE(output.auxiliary_loss.defined());
}

TEST(LatentOde, SamplesDoNotDependOnTheirBatch) {
  const Model model(some_config(), {.type = at::kDouble});
  expect_independent(model, latent_input());
}

TEST(LatentOde, GradientsEqualCentralDifferences) {
  const Model model(some_config(), {.type = at::kDouble});
  const GradcheckOptions options = {
      .modes = {Gradient::Exact, Gradient::Checkpointed}, .directions = 1, .step = 1e-5};
  for (const GradcheckRow& row : gradcheck(model, latent_input(), random_loss(3), options)) {
    // outputs do not come from the decoder
    EXPECT_EQ(row.norm > 0, row.name.rfind("decoder.", 0) != 0) << row.name;
    EXPECT_LT(row.errors[0], 1e-7) << row.name;
    EXPECT_LT(row.errors[1], 1e-7) << row.name;
  }
}

TEST(LatentOde, AdjointConvergesToTheGradient) {
  const ModelInput input = latent_input();
  Model model(some_config(), {.type = at::kDouble});
  const auto gradient = [&](const SolverConfig& solver) {
    model.set_solver(solver);
    const Tensor number = random_loss(3)(model.forward(input).outputs);
    std::vector<Tensor> flat;
    for (const Tensor& g : vector_jacobian({number}, model.parameter_tensors(), {at::ones_like(number)}))
      flat.push_back(g.flatten());
    return at::cat(flat);
  };
  std::vector<double> errors;
  for (double step : {0.1, 0.05}) {
    const Tensor exact = gradient({.steps = ObservationSteps{.max_step = step}, .gradient = Gradient::Exact});
    errors.push_back(relative_error(
        gradient({.steps = ObservationSteps{.max_step = step}, .gradient = Gradient::Adjoint}), exact));
  }
  // order 4 would be 16 times
  EXPECT_GT(errors[0], 0);
  EXPECT_LT(errors[1], errors[0] / 8);
}

TEST(LatentOde, DivergenceIsTheIntegral) {
  // the integral of p log(p / q) for p = N(m, s^2) and q = N(0, 1) on a fine grid
  const double m = 0.7, s = 0.4, step = 1e-3;
  double integral = 0;
  for (double x = m - 12 * s; x <= m + 12 * s; x += step) {
    const double log_p = -0.5 * (x - m) * (x - m) / (s * s) - std::log(s), log_q = -0.5 * x * x;
    integral += std::exp(log_p) / std::sqrt(2 * M_PI) * (log_p - log_q) * step;
  }
  const Distribution one = {at::full({2, 3}, m, at::kDouble), at::full({2, 3}, 2 * std::log(s), at::kDouble)};
  EXPECT_NEAR(one.divergence().item<double>(), integral, 1e-10);
  const Distribution prior = {at::zeros({2, 3}, at::kDouble), at::zeros({2, 3}, at::kDouble)};
  EXPECT_EQ(prior.divergence().item<double>(), 0);
}

TEST(LatentOde, DrawsAreNormalAndDependOnSeedAndPlace) {
  const int64_t samples = 500, size = 40;
  const Distribution prior = {at::zeros({samples, size}, at::kDouble),
                              at::zeros({samples, size}, at::kDouble)};
  const Tensor noise = draw(prior, {.mode = Mode::Train, .seed = 3});
  // five deviations of the mean and of the mean square of 20,000 numbers
  EXPECT_LT(std::abs(noise.mean().item<double>()), 5 / std::sqrt(2e4));
  EXPECT_LT(std::abs(noise.square().mean().item<double>() - 1), 5 * std::sqrt(2 / 2e4));
  EXPECT_TRUE(noise.equal(draw(prior, {.mode = Mode::Train, .seed = 3})));
  EXPECT_FALSE(noise.equal(draw(prior, {.mode = Mode::Train, .seed = 4})));
  const Distribution fewer = {prior.mean.slice(0, 0, 7), prior.log_variance.slice(0, 0, 7)};
  EXPECT_TRUE(draw(fewer, {.mode = Mode::Train, .seed = 3}).equal(noise.slice(0, 0, 7)));
  EXPECT_TRUE(draw(prior, {}).equal(prior.mean));
}

}  // namespace
}  // namespace fastweights

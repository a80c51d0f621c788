#include "architectures/latent.h"
#include "architectures/plain_network.h"
#include "fastweights/gradcheck.h"

/// Recurrent fast weight programmers with an ODE against the paper's equations, sample by sample.

namespace fastweights {
namespace {

using namespace testing;

constexpr int64_t kRfwpChannels = 3, kRfwpStatic = 2;

ModelConfig config_of(RfwpForm form, const std::string& rule, UpdateOrder order) {
  return {.channels = kRfwpChannels,
          .static_features = kRfwpStatic,
          .outputs = 2,
          .architecture = fastweights::OdeRfwp{.form = form,
                                               .rule = rule,
                                               .control = {.path = Hold{}},
                                               .field = {.hidden_size = 7, .layers = 2},
                                               .rows = {.order = order},
                                               .latent = {.divergence = 0.3},
                                               .hidden_size = 6,
                                               .heads = 2,
                                               .feed_forward_size = 5,
                                               .static_hidden_size = 4}};
}

ModelInput rfwp_input() {
  const RaggedSeries series = gappy_series(kRfwpChannels);
  return {.series = series,
          .static_features = random({series.samples(), kRfwpStatic}, 7),
          .output_times = some_output_times(series)};
}

Tensor weight_update(const std::string& rule, const Tensor& k, const Tensor& v, const Tensor& w) {
  const Tensor key = k.softmax(0);
  if (rule == "hebb") return v.tanh().outer(key);
  if (rule == "oja") return v.tanh().outer(key - w.t().matmul(v.tanh()));
  if (rule == "oja_softmax") return v.tanh().outer((k - w.t().matmul(v.tanh())).softmax(0));
  if (rule == "delta_pre") return (v.tanh() - w.matmul(key)).outer(key);
  return (v - w.matmul(key)).tanh().outer(key);
}

// states [outputs, d] of one series at the given times, from h
std::vector<Tensor> plain_states(const PlainNetwork& net, const fastweights::OdeRfwp& c,
                                 const PlainRows& rows, Tensor h, const Tensor& wanted) {
  const int64_t width = c.hidden_size / c.heads;
  std::vector<Tensor> w(c.heads, at::zeros({width, width}, at::kDouble)), behind, result;
  for (size_t n = 0; n < rows.count(); ++n) {
    const Tensor x = at::cat({at::full({1}, rows.gap(n), at::kDouble), rows.values[n], rows.mask[n]});
    if (c.rows.order == UpdateOrder::OdeFirst) h = net.evolve("field", h, rows.gap(n));
    if (rows.seen(n)) {
      const Tensor encoded = net.norm("write.norm", net.linear("write.input", x));
      const Tensor merged = net.linear("write.merge", at::cat({encoded, c.rule == "hebb" ? h.tanh() : h}));
      const Tensor numbers = net.linear("write.program", merged).view({c.heads, 2 * width + 1});
      const Tensor asked = net.linear("read.query", net.norm("read.norm", net.linear("read.input", x)));
      std::vector<Tensor> read;
      for (int64_t i = 0; i < c.heads; ++i) {
        const Tensor k = numbers[i].slice(0, 0, width), v = numbers[i].slice(0, width, 2 * width);
        w[i] = w[i] + numbers[i][2 * width].sigmoid() * weight_update(c.rule, k, v, w[i]);
        read.push_back(w[i].matmul(asked.slice(0, i * width, (i + 1) * width).softmax(0)));
      }
      const Tensor y = net.linear("read.out", at::cat(read));
      h = y + net.linear("read.ff.out", net.linear("read.ff.in", net.norm("read.ff.norm", y)).relu());
    }
    if (c.rows.order == UpdateOrder::DataFirst) h = net.evolve("field", h, rows.gap(n));
    behind.push_back(h);
  }
  for (int64_t i = 0; i < wanted.size(0); ++i) {
    const double time = wanted[i].item<double>();
    size_t n = 0;
    while (n + 1 < rows.count() && rows.times[n + 1] <= time) ++n;
    result.push_back(net.evolve("field", behind[n], time - rows.times[n]));
  }
  return result;
}

// all outputs, and a number of them with what a training pass adds to the loss
Compared plain_rfwp(const Model& model, const ModelInput& input, const ForwardOptions& options) {
  const PlainNetwork net(model);
  const auto& c = model.config().architecture.get<fastweights::OdeRfwp>();
  std::vector<Tensor> first, mean, variance, outputs;
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    first.push_back(net.linear("static.out", net.linear("static.hidden", input.static_features[b]).relu()));
    if (c.form != RfwpForm::Latent) continue;
    const PlainRows rows = plain_rows(input.series, b);
    Tensor h = at::zeros({c.hidden_size}, at::kDouble);
    for (size_t n = 0; n < rows.count(); ++n) {
      const Tensor x = at::cat({at::full({1}, rows.gap(n), at::kDouble), rows.values[n], rows.mask[n]});
      h = net.gru("encoder", x, h);
    }
    mean.push_back(net.latent(h)[0]);
    variance.push_back(net.latent(h)[1].exp());
  }
  Tensor h0 = at::stack(first), further = at::zeros({}, at::kDouble);
  if (!mean.empty()) {
    const Tensor m = at::stack(mean), s = at::stack(variance);
    h0 = h0 + draw({m, s.log()}, options);
    if (options.mode == Mode::Train)
      further =
          c.latent.divergence * (m.square() + s - s.log() - 1).sum() / 2 / static_cast<double>(m.numel());
  }
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    const Tensor wanted = input.output_times->times.slice(0, 4 * b, 4 * b + 4);
    for (const Tensor& h : plain_states(net, c, plain_rows(input.series, b), h0[b], wanted))
      outputs.push_back(net.linear("head", h));
  }
  const Tensor all = at::stack(outputs);
  return {all, random_loss(3)(all) + further};
}

Compared model_forward(const Model& model, const ModelInput& input, const ForwardOptions& options) {
  const ModelOutput output = model.forward(input, options);
  const Tensor number = random_loss(3)(output.outputs);
  return {output.outputs, output.auxiliary_loss.defined() ? number + output.auxiliary_loss : number};
}

TEST(OdeRfwp, EqualsItsEquationsWithEveryRuleInBothOrders) {
  const ModelInput input = rfwp_input();
  for (const Rule& rule : all_rules()) {
    for (UpdateOrder order : {UpdateOrder::OdeFirst, UpdateOrder::DataFirst}) {
      SCOPED_TRACE(rule.name + (order == UpdateOrder::OdeFirst ? ", ODE first" : ", data first"));
      const Model model(config_of(RfwpForm::Plain, rule.name, order), {.type = at::kDouble});
      expect_same(model, model_forward(model, input, {}), plain_rfwp(model, input, {}));
    }
  }
}

TEST(OdeRfwp, LatentVariantEqualsItsEquationsInTraining) {
  const ModelInput input = rfwp_input();
  const ForwardOptions options = {.mode = Mode::Train, .seed = 11};
  const Model model(config_of(RfwpForm::Latent, "delta_post", UpdateOrder::OdeFirst), {.type = at::kDouble});
  expect_same(model, model_forward(model, input, options), plain_rfwp(model, input, options));
  const Tensor mean = plain_rfwp(model, input, {}).outputs;
  EXPECT_LT(relative_error(model.forward(input).outputs.detach(), mean.detach()), kSame);
  EXPECT_FALSE(model.forward(input).auxiliary_loss.defined());
}

TEST(OdeRfwp, SamplesDoNotDependOnTheirBatch) {
  for (RfwpForm form : {RfwpForm::Plain, RfwpForm::Latent}) {
    const Model model(config_of(form, "delta_pre", UpdateOrder::OdeFirst), {.type = at::kDouble});
    expect_independent(model, rfwp_input());
  }
}

TEST(OdeRfwp, GradientsEqualCentralDifferences) {
  for (RfwpForm form : {RfwpForm::Plain, RfwpForm::Latent}) {
    const Model model(config_of(form, "oja_softmax", UpdateOrder::OdeFirst), {.type = at::kDouble});
    const GradcheckOptions options = {
        .modes = {Gradient::Exact, Gradient::Checkpointed}, .directions = 1, .step = 1e-5};
    // differences of that step leave about 1e-10 of a third derivative, which may be large
    for (const GradcheckRow& row : gradcheck(model, rfwp_input(), random_loss(3), options)) {
      EXPECT_GT(row.norm, 0) << row.name;
      EXPECT_LT(row.errors[0], 1e-7) << row.name;
      EXPECT_LT(row.errors[1], 1e-7) << row.name;
    }
  }
}

TEST(OdeRfwp, AdaptiveStepsKeepToTheirLimitAndToTheirSample) {
  const ModelInput input = rfwp_input();
  Model model(config_of(RfwpForm::Plain, "hebb", UpdateOrder::OdeFirst), {.type = at::kDouble});
  const auto outputs = [&](const SolverConfig& solver) {
    model.set_solver(solver);
    return model.forward(input).outputs.detach();
  };
  const Tensor exact = outputs({.method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-12, .atol = 1e-13}});
  expect_independent(model, input);
  // a method of order 2 that takes any step it may
  SolverConfig careless = {.method = adaptive_heun(), .steps = AdaptiveSteps{.rtol = 1e3, .atol = 1e3}};
  std::vector<double> errors;
  for (double limit : {0.04, 0.02}) {
    std::get<AdaptiveSteps>(careless.steps).largest_step = limit;
    errors.push_back(relative_error(outputs(careless), exact));
  }
  EXPECT_GT(errors[0], 1e-9);
  EXPECT_LT(errors[1], errors[0] / 2);
}

TEST(OdeRfwp, JointErrorControlIsAsGoodAsItsTolerance) {
  const ModelInput input = rfwp_input();
  Model model(config_of(RfwpForm::Plain, "hebb", UpdateOrder::DataFirst), {.type = at::kDouble});
  SolverConfig solver = {.method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-10, .atol = 1e-12}};
  model.set_solver(solver);
  const Tensor alone = model.forward(input).outputs.detach();
  std::get<AdaptiveSteps>(solver.steps).control = ErrorControl::Joint;
  model.set_solver(solver);
  EXPECT_LT(relative_error(model.forward(input).outputs.detach(), alone), 1e-8);
}

TEST(OdeRfwp, FastWeightsAtTheOutputsAreToldBySample) {
  const ModelConfig config = config_of(RfwpForm::Plain, "hebb", UpdateOrder::OdeFirst);
  const Model model(config, {.type = at::kDouble});
  ModelInput input = rfwp_input();
  const ModelOutput output = model.forward(input);
  EXPECT_EQ(output.w[0].sizes(), (std::vector<int64_t>{12, 2, 3, 3}));
  // the second and third output of a sample follow the same row, after which nothing was written
  EXPECT_TRUE(output.w[0][1].equal(output.w[0][2]));
  EXPECT_FALSE(output.w[0][2].equal(output.w[0][3]));
  input.output_times.reset();
  EXPECT_TRUE(model.forward(input).w[0][1].equal(output.w[0][7]));
}

TEST(OdeRfwp, SinglePrecisionIsTheSameModel) {
  const ModelConfig config = config_of(RfwpForm::Latent, "delta_pre", UpdateOrder::DataFirst);
  const Model exact(config, {.type = at::kDouble}), rounded(config, {.type = at::kFloat});
  ModelInput input = rfwp_input();
  const Tensor expected = exact.forward(input).outputs.detach();
  input.series.values = input.series.values.to(at::kFloat);
  input.static_features = input.static_features.to(at::kFloat);
  const Tensor got = rounded.forward(input).outputs.detach();
  EXPECT_EQ(got.scalar_type(), at::kFloat);
  // some hundred roundings of 6e-8
  EXPECT_LT(relative_error(got.to(at::kDouble), expected), 1e-5);
}

TEST(OdeRfwp, RefusesWhatItDoesNotHave) {
  ModelConfig config = config_of(RfwpForm::Plain, "own", UpdateOrder::OdeFirst);
  EXPECT_NE(error_message([&] { Model{config}; }).find("built-in rules only, got 'own'"), std::string::npos);
  config = config_of(RfwpForm::Latent, "hebb", UpdateOrder::OdeFirst);
  EXPECT_NE(
      error_message([&] { with_setting(config, "latent.size", "3"); }).find("latent.size would not be used"),
      std::string::npos);
}

}  // namespace
}  // namespace fastweights

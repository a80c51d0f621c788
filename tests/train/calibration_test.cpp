#include "fastweights/calibration.h"

#include <array>
#include <cmath>

#include "base/random.h"
#include "support/support.h"

namespace fastweights {
namespace {

// outputs [M, O] of as many series
Predictions scored(const Tensor& outputs, const Tensor& classes) {
  return {.outputs = outputs,
          .times = at::zeros({outputs.size(0)}, at::kDouble),
          .samples = at::arange(outputs.size(0), at::kLong),
          .classes = classes,
          .targets = {}};
}

double log_loss(const Tensor& outputs, const Tensor& classes) {
  return metric(classification_metrics(class_probabilities(outputs), classes), "log_loss");
}

double log_loss(const Predictions& p, const Calibration& c) {
  return log_loss(calibrated(p.outputs, c), p.classes);
}

// of guessing the frequencies
double guessing(const Tensor& classes, const Tensor& counts) {
  const Tensor smoothed = (counts + 1).to(at::kDouble);
  return -(smoothed / smoothed.sum()).log().index_select(0, classes).mean().item<double>();
}

// drawn from the probabilities of logits
Tensor classes_of(const Tensor& logits, uint64_t seed) {
  const Tensor p = at::softmax(logits, 1).contiguous();
  Random random(seed + 1000);
  std::vector<int64_t> y;
  for (int64_t i = 0; i < p.size(0); ++i) {
    double left = random.uniform();
    int64_t k = 0;
    while (k + 1 < p.size(1) && (left -= p[i][k].item<double>()) > 0) ++k;
    y.push_back(k);
  }
  return at::tensor(y, at::kLong);
}

// the mean over classes of -log p
Tensor margin(const Tensor& logits) { return -at::log_softmax(logits, 1).mean(1, /*keepdim=*/true); }

// classes drawn from logits, which a model exaggerates by `factor` and shifts
struct Drawn {
  Predictions predictions;
  Tensor counts;
};
Drawn drawn(int64_t series, int64_t classes, double factor, double shift, uint64_t seed) {
  const Tensor z = testing::random({series, classes}, seed) * 1.5;
  Tensor outputs = classes == 2 ? z.slice(1, 1, 2) - z.slice(1, 0, 1) : z;
  outputs = outputs * factor;
  outputs.select(1, 0) += shift;
  const Tensor labels = classes_of(z, seed);
  return {scored(outputs, labels), class_counts(labels, classes)};
}

TEST(Calibration, ScalesAndShiftsOutputs) {
  const Tensor z = at::tensor({1.0, -2.0, 0.5, 3.0}, at::kDouble).reshape({2, 2});
  EXPECT_TRUE(calibrated(z, {}).is_same(z));
  const Tensor y = calibrated(z, {.scale = 0.5, .bias = {1, 0}});
  EXPECT_TRUE(at::equal(y, at::tensor({1.5, -1.0, 1.25, 1.5}, at::kDouble).reshape({2, 2})));
  EXPECT_EQ(testing::error_message([&] { calibrated(z, {.bias = {1}}); }),
            "[calibration] 1 biases are for as many outputs, got 2");
  const Calibration by_margin = {.scale = 0.5, .power = -0.6, .typical = 2};
  EXPECT_LT((calibrated(z, by_margin) - 0.5 * (margin(z) / 2).pow(-0.6) * z).abs().max().item<double>(),
            1e-14);
}

TEST(Calibration, ASingleOutputIsTheDifferenceOfTwo) {
  const Tensor one = at::linspace(-60, 60, 1001, at::kDouble).unsqueeze(1);
  const Tensor two = at::cat({at::zeros_like(one), one}, 1);
  for (const double power : {-0.99, -0.3, 0.7}) {
    const Calibration c = {.scale = 0.8, .power = power, .typical = 3};
    const Tensor found = calibrated(one, c), both = calibrated(two, c);
    EXPECT_LT((found - both.slice(1, 1) + both.slice(1, 0, 1)).abs().max().item<double>(), 1e-12);
    // the order of series stays, and with it every threshold and AUROC
    EXPECT_TRUE(found.diff(1, 0).gt(0).all().item<bool>()) << power;
  }
}

// the penalised loss in a few lines, of one logit per class
double posterior(const Tensor& logits, const Tensor& classes, double log_scale, double log_power,
                 const Tensor& bias) {
  const Tensor margins = margin(logits);
  const Tensor factor = (margins / margins.median()).pow(std::expm1(log_power)) * std::exp(log_scale);
  const Tensor logs = at::log_softmax(logits * factor + bias, 1);
  const Tensor likely = logs.gather(1, classes.unsqueeze(1)).sum();
  // half an observation of unknown class, deviations 1 of the scale and 0.5 of the power and of a bias
  return -likely.item<double>() -
         0.5 * logs.sum(1).mean().item<double>() / static_cast<double>(logits.size(1)) +
         log_scale * log_scale / 2 + log_power * log_power / (2 * 0.25) +
         bias.square().sum().item<double>() / (2 * 0.25);
}

TEST(Calibration, NoNeighbourOfTheFitIsBetter) {
  for (const int64_t classes : {3, 5}) {
    const Drawn data = drawn(60, classes, 3, 0.7, static_cast<uint64_t>(classes));
    const Predictions& p = data.predictions;
    const Calibration c = fit_calibration(p, data.counts);
    ASSERT_EQ(c.bias.size(), static_cast<size_t>(classes));
    const Tensor bias = at::tensor(c.bias, at::kDouble);
    const double scale = std::log(c.scale), power = std::log1p(c.power);
    EXPECT_NEAR(c.typical, margin(p.outputs).median().item<double>(), 1e-12);
    const double best = posterior(p.outputs, p.classes, scale, power, bias);
    for (const double step : {-1e-3, 1e-3}) {
      EXPECT_GT(posterior(p.outputs, p.classes, scale + step, power, bias), best);
      EXPECT_GT(posterior(p.outputs, p.classes, scale, power + step, bias), best);
      for (int64_t k = 0; k < classes; ++k) {
        Tensor moved = bias.clone();
        moved[k] += step;
        EXPECT_GT(posterior(p.outputs, p.classes, scale, power, moved), best);
      }
    }
  }
}

TEST(Calibration, FindsWhatExaggeratedTheOutputs) {
  const Drawn several = drawn(20000, 4, 3, 0, 7);
  const Calibration c = fit_calibration(several.predictions, several.counts);
  // a standard error is about 1 %
  EXPECT_NEAR(c.scale, 1 / 3.0, 0.015);
  for (const double b : c.bias) EXPECT_NEAR(b, 0, 0.06);
  const Drawn two = drawn(20000, 2, 4, 2, 8);
  const Calibration platt = fit_calibration(two.predictions, two.counts);
  EXPECT_NEAR(platt.scale, 0.25, 0.015);
  ASSERT_EQ(platt.bias.size(), 1u);
  EXPECT_NEAR(platt.bias[0], -0.5, 0.06);
  const Calibration scale =
      fit_calibration(several.predictions, several.counts, {.rule = CalibrationRule::Temperature});
  EXPECT_NEAR(scale.scale, 1 / 3.0, 0.015);
  EXPECT_EQ(scale.power, 0);
  EXPECT_TRUE(scale.bias.empty());
}

TEST(Calibration, FindsATemperatureThatDependsOnTheConfidence) {
  for (const double power : {-0.4, 0.5}) {
    const Tensor outputs = testing::random({20000, 5}, 11) * 3;
    const Tensor factor = (margin(outputs) / margin(outputs).median()).pow(power) * 0.5;
    const Tensor classes = classes_of(outputs * factor, 12);
    const Calibration c = fit_calibration(scored(outputs, classes), class_counts(classes, 5));
    EXPECT_NEAR(c.scale, 0.5, 0.02);
    EXPECT_NEAR(c.power, power, 0.1);
  }
}

TEST(Calibration, OfVeryManyClassesFitsTheScaleAlone) {
  const Drawn data = drawn(300, 2000, 3, 0, 9);
  const Calibration c = fit_calibration(data.predictions, at::full({2000}, 5, at::kLong));
  EXPECT_TRUE(c.bias.empty());
  EXPECT_EQ(c.power, 0);
  EXPECT_LT(c.scale, 0.9);
}

TEST(Calibration, IsNeverWorseThanOutputsOrGuessing) {
  int changed = 0;
  for (uint64_t seed = 1; seed < 60; ++seed) {
    const auto series = static_cast<int64_t>(2 + seed % 17);
    const int64_t classes = 2 + static_cast<int64_t>(seed % 4);
    const double factor = std::array{0.3, 1.0, 8.0}[seed % 3];
    Drawn data = drawn(series, classes, factor, seed % 2 == 0 ? 0 : 1.5, seed);
    // half of them know nothing
    if (seed % 2 == 0) data.predictions.outputs = testing::random(data.predictions.outputs.sizes(), seed) * 9;
    for (const int64_t epochs : {1, 150}) {
      const Calibration c = fit_calibration(data.predictions, data.counts, {.epochs = epochs});
      const double found = log_loss(data.predictions, c);
      EXPECT_LE(found, log_loss(data.predictions, Calibration{}) + 1e-12) << seed;
      EXPECT_LE(found, guessing(data.predictions.classes, data.counts) + 1e-4) << seed;
      changed += c.is_identity() ? 0 : 1;
    }
  }
  // otherwise this says nothing
  EXPECT_GT(changed, 60);
}

TEST(Calibration, FewSeriesWithoutMistakesAreNoEvidenceForCertainty) {
  // all right, with these outputs for the true class and 0 for the two others
  const auto perfect = [](int64_t series, double output) {
    const Tensor classes = at::arange(series, at::kLong).remainder(3);
    const Tensor outputs = at::one_hot(classes, 3).to(at::kDouble) * output;
    const Calibration c = fit_calibration(scored(outputs, classes), class_counts(classes, 3));
    const Tensor p = class_probabilities(calibrated(outputs, c));
    return std::pair(c.scale, p.max().item<double>());
  };
  // half an observation of any class among six and a half
  EXPECT_LE(perfect(6, 3).second, 1 - 0.5 * 2 / 3 / 6.5);
  EXPECT_GT(perfect(3000, 3).first, 2);
  // more confident outputs cannot be corrected without a mistake
  EXPECT_EQ(perfect(6, 30).first, 1);
}

TEST(Calibration, ChanceOfTheBestEpochMovesUselessOutputsToTheFrequencies) {
  const Tensor classes = at::cat({at::zeros({30}, at::kLong), at::ones({10}, at::kLong)});
  const Predictions p = scored(testing::random({40, 1}, 5) * 6, classes);
  const Tensor counts = at::tensor({299, 99}, at::kLong);
  const Calibration c = fit_calibration(p, counts, {.epochs = 150});
  const Tensor probabilities = class_probabilities(calibrated(p.outputs, c)).select(1, 1);
  EXPECT_LT((probabilities - 0.25).abs().max().item<double>(), 0.05);
  EXPECT_GT(c.scale, 0);
}

TEST(Calibration, RowsOfASeriesCountAsOne) {
  // twice the rows of the same series say no more
  const Drawn data = drawn(40, 3, 4, 0, 3);
  Predictions twice = data.predictions;
  for (Tensor* part : {&twice.outputs, &twice.classes, &twice.samples, &twice.times})
    *part = at::cat({*part, *part}, 0);
  const Calibration once = fit_calibration(data.predictions, data.counts),
                    again = fit_calibration(twice, data.counts);
  EXPECT_NEAR(again.scale, once.scale, 1e-6);
  twice.samples = at::arange(80, at::kLong);
  EXPECT_LT(fit_calibration(twice, data.counts).scale, once.scale);
}

TEST(Calibration, WithNothingKnownIsTheIdentity) {
  const Predictions p = scored(testing::random({4, 3}, 1), at::full({4}, -1, at::kLong));
  EXPECT_TRUE(fit_calibration(p, at::tensor({1, 2, 3}, at::kLong)).is_identity());
  EXPECT_TRUE(fit_calibration({}, at::tensor({1, 2}, at::kLong)).is_identity());
  const Drawn data = drawn(40, 3, 4, 0, 3);
  EXPECT_TRUE(fit_calibration(data.predictions, data.counts, {.rule = CalibrationRule::None}).is_identity());
  EXPECT_EQ(testing::error_message([&] { fit_calibration(data.predictions, at::ones({2}, at::kLong)); }),
            "[calibration] 3 classes need as many counts, got 2");
}

}  // namespace
}  // namespace fastweights

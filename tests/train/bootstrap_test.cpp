#include <cmath>

#include "fastweights/predictions.h"
#include "support/support.h"
#include "train/metric_sums.h"

namespace fastweights {
namespace {

constexpr TaskConfig kSteps = {.kind = TaskKind::StepClassification},
                     kChannels = {.kind = TaskKind::Forecast};

double length_of(const ConfidenceInterval& interval) { return interval.high - interval.low; }

// each row is right or wrong; series of `rows` rows that agree
Predictions answers(int64_t series, int64_t rows, double right) {
  const auto correct = static_cast<int64_t>(std::llround(right * static_cast<double>(series)));
  const Tensor samples = at::repeat_interleave(at::arange(series, at::kLong), rows);
  const Tensor classes = samples.remainder(2);
  const Tensor guess = at::where(samples.lt(correct), classes, 1 - classes);
  return {.outputs = (guess * 2 - 1).to(at::kDouble).unsqueeze(1),
          .times = at::zeros_like(samples).to(at::kDouble),
          .samples = samples,
          .classes = classes,
          .targets = {}};
}

TEST(Bootstrap, HasTheWidthOfABinomial) {
  const ConfidenceIntervals found = bootstrap(answers(400, 1, 0.8), kSteps, {});
  const ConfidenceInterval accuracy = interval_of(found, "accuracy");
  const double expected = 2 * 1.96 * std::sqrt(0.8 * 0.2 / 400);
  // ends of a thousand resamples are known to about 5 %
  EXPECT_NEAR(length_of(accuracy), expected, 0.15 * expected);
  EXPECT_NEAR((accuracy.low + accuracy.high) / 2, 0.8, 0.1 * expected);
  EXPECT_TRUE(std::isnan(interval_of(found, "mse").low));
}

// 0.025 is the probability that 7 of 7 are right if each is with the probability of the lower end
TEST(Bootstrap, OfAllOrNoneRightIsThatOfClopperAndPearson) {
  for (const int64_t rows : {1, 4}) {
    const ConfidenceInterval all = interval_of(bootstrap(answers(7, rows, 1), kSteps, {}), "accuracy");
    EXPECT_NEAR(std::pow(all.low, 7), 0.025, 1e-12);
    EXPECT_EQ(all.high, 1);
    const ConfidenceInterval none = interval_of(bootstrap(answers(7, rows, 0), kSteps, {}), "accuracy");
    EXPECT_EQ(none.low, 0);
    EXPECT_NEAR(std::pow(1 - none.high, 7), 0.025, 1e-12);
  }
  const ConfidenceIntervals wide = bootstrap(answers(7, 1, 1), kSteps, {}, {.level = 0.8});
  EXPECT_NEAR(std::pow(interval_of(wide, "accuracy").low, 7), 0.1, 1e-12);
  // nothing bounds other metrics there
  EXPECT_TRUE(std::isnan(interval_of(wide, "auroc").low) && std::isnan(interval_of(wide, "auroc").high));
  // a single mistake: resamples differ
  const ConfidenceInterval most = interval_of(bootstrap(answers(7, 1, 6.0 / 7), kSteps, {}), "accuracy");
  EXPECT_EQ(most.high, 1);
  EXPECT_NEAR(most.low, 4.0 / 7, 0.1);
}

TEST(Bootstrap, OfValuesThatAreAllInsideTheirIntervalsIsThatOfClopperAndPearson) {
  const Tensor y = testing::random({5, 2}, 3).to(at::kDouble);
  Predictions p = {.outputs = at::zeros_like(y),
                   .times = at::zeros({5}, at::kDouble),
                   .samples = at::arange(5, at::kLong),
                   .classes = {},
                   .targets = y};
  p.half_widths = y.abs() + 1;
  const ConfidenceInterval coverage = interval_of(bootstrap(p, kChannels, {}), "coverage");
  EXPECT_NEAR(std::pow(coverage.low, 5), 0.025, 1e-12);
  EXPECT_EQ(coverage.high, 1);
}

TEST(Bootstrap, OfASingleSeriesIsUnknown) {
  const Tensor y = testing::random({6, 1}, 3).to(at::kDouble);
  const Predictions p = {.outputs = at::zeros_like(y),
                         .times = at::zeros({6}, at::kDouble),
                         .samples = at::zeros({6}, at::kLong),
                         .classes = {},
                         .targets = y};
  EXPECT_TRUE(std::isnan(interval_of(bootstrap(p, kChannels, {}), "mae").low));
}

TEST(Bootstrap, DrawsSeriesNotRows) {
  const double alone = length_of(interval_of(bootstrap(answers(100, 1, 0.8), kSteps, {}), "accuracy"));
  const double repeated = length_of(interval_of(bootstrap(answers(100, 25, 0.8), kSteps, {}), "accuracy"));
  EXPECT_NEAR(repeated, alone, 1e-12);
}

TEST(Bootstrap, HasTheWidthOfAMean) {
  const Tensor y = testing::random({500, 1}, 3).to(at::kDouble);
  const Predictions p = {.outputs = at::zeros_like(y),
                         .times = at::zeros({500}, at::kDouble),
                         .samples = at::arange(500, at::kLong),
                         .classes = {},
                         .targets = y};
  const double deviation = y.abs().std().item<double>(), expected = 2 * 1.96 * deviation / std::sqrt(500);
  EXPECT_NEAR(length_of(interval_of(bootstrap(p, kChannels, {}), "mae")), expected, 0.15 * expected);
}

TEST(Bootstrap, IsReproducibleAndContainsTheMetric) {
  const Tensor z = testing::random({40, 3}, 1), classes = at::arange(40, at::kLong).remainder(3);
  const Predictions p = {.outputs = z,
                         .times = at::zeros({40}, at::kDouble),
                         .samples = at::arange(40, at::kLong),
                         .classes = classes,
                         .targets = {}};
  const Metrics own = evaluate(p, kSteps, {});
  const ConfidenceIntervals first = bootstrap(p, kSteps, {}), again = bootstrap(p, kSteps, {}),
                            other = bootstrap(p, kSteps, {}, {.seed = 2});
  ASSERT_EQ(first.size(), own.size());
  int different = 0;
  for (const auto& [name, value] : own) {
    const ConfidenceInterval interval = interval_of(first, name);
    EXPECT_LE(interval.low, value) << name;
    EXPECT_GE(interval.high, value) << name;
    EXPECT_EQ(interval.low, interval_of(again, name).low) << name;
    different += interval.low != interval_of(other, name).low ? 1 : 0;
  }
  EXPECT_GT(different, 4);
}

TEST(Bootstrap, AResampleIsTheSetWithRepeatedRows) {
  const Tensor z = at::round(testing::random({12, 3}, 4) * 4) / 2;
  const Tensor classes = at::tensor({0, 1, 2, 0, 1, 2, 0, 0, 1, 1, 2, 2}, at::kLong);
  const std::vector<double> weights = {0, 2, 1, 1, 0, 3, 1, 1, 1, 0, 2, 0};
  const Tensor index =
      at::repeat_interleave(at::arange(12, at::kLong), at::tensor(weights, at::kDouble).to(at::kLong));
  for (const int64_t count : {2, 3}) {
    const Tensor outputs = count == 2 ? z.slice(1, 0, 1) : z, truth = classes.clamp_max(count - 1);
    const Tensor p = class_probabilities(outputs);
    const Metrics weighted = ClassSums(p, truth, 0.4).metrics(weights);
    const Metrics repeated =
        classification_metrics(p.index_select(0, index), truth.index_select(0, index), 0.4);
    for (const auto& [name, value] : repeated) EXPECT_NEAR(metric(weighted, name), value, 1e-12) << name;
  }
  const Tensor targets = testing::random({12, 2}, 5).masked_fill(testing::random({12, 2}, 6).gt(1), NAN);
  const Metrics weighted =
      RegressionSums(z.slice(1, 0, 2), targets, {}, at::arange(12, at::kLong), 12).metrics(weights);
  const Metrics repeated =
      regression_metrics(z.slice(1, 0, 2).index_select(0, index), targets.index_select(0, index));
  for (const auto& [name, value] : repeated) EXPECT_NEAR(metric(weighted, name), value, 1e-12) << name;
}

TEST(Bootstrap, OfNothingIsNothing) {
  EXPECT_TRUE(bootstrap({}, kSteps, {}).empty());
  EXPECT_EQ(
      testing::error_message([] { bootstrap(answers(4, 1, 0.5), kSteps, {}, {.level = 1}); }),
      "[bootstrap] the level must be between 0 and 1, and the number of resamples positive, got 1 and 1000");
}

}  // namespace
}  // namespace fastweights

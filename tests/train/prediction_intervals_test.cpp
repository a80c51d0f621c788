#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "fastweights/calibration.h"
#include "support/support.h"

namespace fastweights {
namespace {

constexpr TaskConfig kRegression = {.kind = TaskKind::Regression}, kForecast = {.kind = TaskKind::Forecast},
                     kImputation = {.kind = TaskKind::Imputation};

// predictions 0 and the given targets: rows [M], series [M]
Predictions errors(const std::vector<double>& targets, const std::vector<int64_t>& samples) {
  const Tensor y = at::tensor(targets, at::kDouble).unsqueeze(1);
  return {.outputs = at::zeros_like(y),
          .times = at::zeros({y.size(0)}, at::kDouble),
          .samples = at::tensor(samples, at::kLong),
          .classes = {},
          .targets = y};
}

std::vector<int64_t> numbered(int64_t count) {
  std::vector<int64_t> list(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) list[static_cast<size_t>(i)] = i;
  return list;
}

TEST(PredictionIntervals, AreTheOrderStatisticWithTheCorrection) {
  // of 19 series the 18th smallest: ceil(20 * 0.9)
  std::vector<double> targets;
  for (int64_t i = 19; i >= 1; --i) targets.push_back((i % 2 == 0 ? -1.0 : 1.0) * static_cast<double>(i));
  const PredictionIntervals found = fit_intervals(errors(targets, numbered(19)), kRegression, 0.9);
  EXPECT_EQ(found.level, 0.9);
  ASSERT_EQ(found.pooled.size(), 1u);
  EXPECT_EQ(found.pooled[0], 18);
  EXPECT_TRUE(found.ahead.empty());
  // of 9 the largest, of fewer the plain quantile
  targets.resize(9);
  EXPECT_EQ(fit_intervals(errors(targets, numbered(9)), kRegression, 0.9).pooled[0], 19);
  targets.resize(4);
  EXPECT_EQ(fit_intervals(errors(targets, numbered(4)), kRegression, 0.5).pooled[0], 18);
  EXPECT_EQ(fewest_for_level(0.9), 9);
  EXPECT_EQ(fewest_for_level(0.5), 1);
}

// the share of new values inside, over many draws of validation parts
TEST(PredictionIntervals, ContainTheirShareOfNewSeries) {
  constexpr int kDraws = 4000;
  for (const int64_t series : {9, 24, 50}) {
    Random random(static_cast<uint64_t>(series));
    double inside = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<double> targets;
      for (int64_t i = 0; i < series; ++i) targets.push_back(std::exp(random.normal()));
      const PredictionIntervals found = fit_intervals(errors(targets, numbered(series)), kRegression, 0.9);
      inside += std::exp(random.normal()) <= found.pooled[0] ? 1 : 0;
    }
    const double share = inside / kDraws, error = std::sqrt(0.09 / kDraws);
    // at least the level, and with continuous residuals at most 1 / (n + 1) more
    EXPECT_GT(share, 0.9 - 3.5 * error) << series;
    EXPECT_LT(share, 0.9 + 1 / static_cast<double>(series + 1) + 3.5 * error) << series;
  }
}

TEST(PredictionIntervals, RowsOfASeriesShareItsWeight) {
  // nine series with an error of 1, and one with a hundred errors of 5
  std::vector<double> targets(9, 1);
  std::vector<int64_t> samples = numbered(9);
  targets.insert(targets.end(), 100, 5);
  samples.insert(samples.end(), 100, 9);
  // 9 of 11 weights are at 1, and 10 at most at 5
  EXPECT_EQ(fit_intervals(errors(targets, samples), kImputation, 0.8).pooled[0], 1);
  EXPECT_EQ(fit_intervals(errors(targets, samples), kImputation, 0.9).pooled[0], 5);
}

TEST(PredictionIntervals, OfForecastsGrowWithTheStepsAhead) {
  // 40 series of three rows; the last row of most is unknown
  std::vector<double> targets;
  std::vector<int64_t> samples;
  for (int64_t b = 0; b < 40; ++b) {
    for (int64_t step = 0; step < 3; ++step) {
      targets.push_back(step == 2 && b >= 20 ? NAN : static_cast<double>((step + 1) * 100 + b));
      samples.push_back(b);
    }
  }
  const PredictionIntervals found = fit_intervals(errors(targets, samples), kForecast, 0.9);
  // ceil(41 * 0.9) = 37, the last one is 39 + 100 or 200
  ASSERT_EQ(found.ahead.size(), 2u);
  EXPECT_EQ(found.ahead[0][0], 136);
  EXPECT_EQ(found.ahead[1][0], 236);
  EXPECT_GT(found.pooled[0], 236);
  const Tensor widths = half_widths(found, at::tensor({4, 4, 7, 4, 7}, at::kLong));
  const std::vector<double> expected = {136, 236, 136, found.pooled[0], 236};
  EXPECT_TRUE(at::equal(widths, at::tensor(expected, at::kDouble).unsqueeze(1)));
  // values of imputation have no order ahead
  EXPECT_TRUE(fit_intervals(errors(targets, samples), kImputation, 0.9).ahead.empty());
}

TEST(PredictionIntervals, WithoutTargetsThereAreNone) {
  EXPECT_EQ(fit_intervals(errors({NAN, NAN}, {0, 1}), kRegression, 0.9).level, 0);
  EXPECT_EQ(fit_intervals(errors({1, 2}, {0, 1}), kRegression, 0).level, 0);
  EXPECT_EQ(fit_intervals({}, kRegression, 0.9).level, 0);
  EXPECT_EQ(testing::error_message([] { fit_intervals(errors({1}, {0}), kRegression, 1); }),
            "[intervals] the level must be in [0, 1), got 1");
}

TEST(PredictionIntervals, CoverageAndWidthAreMetrics) {
  Predictions p = errors({1, -2, 3, NAN}, {0, 1, 2, 3});
  p.half_widths = at::full({4, 1}, 2.0, at::kDouble);
  const Metrics m = evaluate(p, kForecast, {});
  EXPECT_DOUBLE_EQ(metric(m, "coverage"), 2 / 3.0);
  EXPECT_DOUBLE_EQ(metric(m, "width"), 4);
  EXPECT_DOUBLE_EQ(metric(m, "mae"), 2);
  // targets in their own units
  Preparation preparation;
  preparation.target_scales = {{5, 10}};
  EXPECT_DOUBLE_EQ(metric(evaluate(p, kRegression, preparation), "width"), 40);
}

}  // namespace
}  // namespace fastweights

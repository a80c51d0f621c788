#include "fastweights/predictions.h"
#include "fastweights/task.h"

#include <cmath>
#include <set>

#include "fastweights/predictions.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::random;

std::vector<double> numbers(const Tensor& x) {
  const Tensor y = x.to(at::kDouble).contiguous();
  return {y.data_ptr<double>(), y.data_ptr<double>() + y.numel()};
}

// scores with many ties, truths that they say something about
struct MetricCase {
  Tensor scores, positive;  // [M], [M]
};
MetricCase tied_case(uint64_t seed, int64_t count) {
  const Tensor x = random({count}, seed);
  return {at::round(x * 4) / 4, (x + random({count}, seed + 100)).gt(0.3).to(at::kLong)};
}

double pair_share(const MetricCase& c) {
  const std::vector<double> s = numbers(c.scores), y = numbers(c.positive);
  double right = 0, pairs = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    for (size_t j = 0; j < s.size(); ++j) {
      if (y[i] != 1 || y[j] != 0) continue;
      pairs += 1;
      right += s[i] > s[j] ? 1 : s[i] == s[j] ? 0.5 : 0;
    }
  }
  return right / pairs;
}

// the precision among all with at least the score of a positive, averaged over positives
double mean_precision(const MetricCase& c) {
  const std::vector<double> s = numbers(c.scores), y = numbers(c.positive);
  double sum = 0, positives = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (y[i] != 1) continue;
    double above = 0, right = 0;
    for (size_t j = 0; j < s.size(); ++j) {
      if (s[j] < s[i]) continue;
      above += 1;
      right += y[j];
    }
    sum += right / above;
    positives += 1;
  }
  return sum / positives;
}

TEST(Metrics, RankingsAreThoseOfAllPairs) {
  for (uint64_t seed = 1; seed < 8; ++seed) {
    const MetricCase c = tied_case(seed, 30 + static_cast<int64_t>(seed));
    EXPECT_NEAR(auroc(c.scores, c.positive), pair_share(c), 1e-14);
    EXPECT_NEAR(average_precision(c.scores, c.positive), mean_precision(c), 1e-14);
    const MetricCase distinct = {random({41}, seed), c.positive.slice(0, 0, 30).repeat({2}).slice(0, 0, 41)};
    EXPECT_NEAR(auroc(distinct.scores, distinct.positive), pair_share(distinct), 1e-14);
    EXPECT_NEAR(average_precision(distinct.scores, distinct.positive), mean_precision(distinct), 1e-14);
  }
}

TEST(Metrics, RankingsOfOneKindAreUnknown) {
  EXPECT_TRUE(std::isnan(auroc(random({3}, 1), at::ones({3}))));
  EXPECT_TRUE(std::isnan(auroc(random({3}, 1), at::zeros({3}))));
  EXPECT_TRUE(std::isnan(average_precision(random({3}, 1), at::zeros({3}))));
  EXPECT_EQ(auroc(at::zeros({4}), at::tensor({1, 0, 1, 0}, at::kLong)), 0.5);
  EXPECT_EQ(error_message([] { auroc(at::zeros({4}), at::zeros({3})); }),
            "[metrics] 4 scores need as many truths, got 3");
}

TEST(Metrics, ScoresThatAreNotNumbersRankNothing) {
  // enough of them that a sort which trusts its comparison would leave its bounds
  const Tensor scores =
      at::where(random({200}, 1).gt(0), at::full({200}, NAN, at::kDouble), random({200}, 2));
  const Tensor positive = random({200}, 3).gt(0).to(at::kLong);
  EXPECT_TRUE(std::isnan(auroc(scores, positive)));
  EXPECT_TRUE(std::isnan(average_precision(scores, positive)));
  EXPECT_EQ(best_threshold(at::stack({1 - scores, scores}, 1), positive, "f1"), 0.5);
  EXPECT_EQ(roc(scores, positive).thresholds.size(), 1u);
}

Tensor two_columns(const std::vector<double>& p) {
  const Tensor column = at::tensor(p, at::kDouble);
  return at::stack({1 - column, column}, 1);
}

TEST(Metrics, OfTwoClassesByHand) {
  // true: 1 1 1 0 0 ?; from 0.5 on: 1 1 0 1 0 ?
  const Tensor p = two_columns({0.9, 0.5, 0.2, 0.7, 0.1, 0.8}),
               classes = at::tensor({1, 1, 1, 0, 0, -1}, at::kLong);
  const Metrics m = classification_metrics(p, classes);
  EXPECT_DOUBLE_EQ(metric(m, "accuracy"), 3 / 5.0);
  EXPECT_DOUBLE_EQ(metric(m, "balanced_accuracy"), (2 / 3.0 + 1 / 2.0) / 2);
  // precision and recall are 2 / 3
  EXPECT_DOUBLE_EQ(metric(m, "f1"), 2 / 3.0);
  EXPECT_NEAR(metric(m, "log_loss"),
              -(std::log(0.9) + std::log(0.5) + std::log(0.2) + std::log(0.3) + std::log(0.9)) / 5, 1e-14);
  // of six pairs (0.5, 0.7) and (0.2, 0.7) are the wrong way round
  EXPECT_DOUBLE_EQ(metric(m, "auroc"), 4 / 6.0);
  EXPECT_DOUBLE_EQ(metric(m, "average_precision"), (1 + 2 / 3.0 + 3 / 4.0) / 3);
  // bins of the confidence of the more probable class: both of 0.9 are right; 0.5, 0.8 and 0.7 are wrong, or
  // a tie
  EXPECT_NEAR(metric(m, "ece"), (0.2 + 0.5 + 0.8 + 0.7) / 5, 1e-14);
  EXPECT_NEAR(metric(m, "brier"), (0.01 + 0.25 + 0.64 + 0.49 + 0.01) / 5, 1e-14);
  // from 0.15 on: 1 1 1 1 0
  const Metrics lower = classification_metrics(p, classes, 0.15);
  EXPECT_DOUBLE_EQ(metric(lower, "accuracy"), 4 / 5.0);
  EXPECT_DOUBLE_EQ(metric(lower, "balanced_accuracy"), 3 / 4.0);
  EXPECT_DOUBLE_EQ(metric(lower, "f1"), 6 / 7.0);
  EXPECT_EQ(metric(lower, "auroc"), metric(m, "auroc"));
  EXPECT_TRUE(std::isnan(metric(m, "nonsense")));
}

TEST(Metrics, OfManyClassesByHand) {
  // true 0 0 1 1 1, taken for 0 1 1 1 3; nothing is of class 2 or 3
  const Tensor p = at::tensor({0.7, 0.1, 0.1, 0.1,   //
                               0.2, 0.6, 0.1, 0.1,   //
                               0.1, 0.8, 0.0, 0.1,   //
                               0.2, 0.5, 0.1, 0.2,   //
                               0.1, 0.2, 0.3, 0.4},  //
                              at::kDouble)
                       .reshape({5, 4});
  const Metrics m = classification_metrics(p, at::tensor({0, 0, 1, 1, 1}, at::kLong));
  EXPECT_DOUBLE_EQ(metric(m, "accuracy"), 3 / 5.0);
  EXPECT_DOUBLE_EQ(metric(m, "balanced_accuracy"), (1 / 2.0 + 2 / 3.0) / 2);
  EXPECT_DOUBLE_EQ(metric(m, "f1"), (2 / 3.0 + 4 / 6.0) / 2);
  EXPECT_NEAR(metric(m, "log_loss"),
              -(std::log(0.7) + std::log(0.2) + std::log(0.8) + std::log(0.5) + std::log(0.2)) / 5, 1e-14);
  // 0.7 and 0.8 are right, 0.6 and 0.4 wrong, 0.5 is right
  EXPECT_NEAR(metric(m, "ece"), (0.3 + 0.6 + 0.2 + 0.5 + 0.4) / 5, 1e-14);
  EXPECT_NEAR(metric(m, "brier"), (0.12 + 1.02 + 0.06 + 0.34 + 0.9) / 5, 1e-14);
  // 0 against the rest: 5.5 of 6 pairs; 1 against the rest: 0.8 beats both, 0.5 and 0.2 one each
  EXPECT_DOUBLE_EQ(metric(m, "auroc"), (5.5 / 6 + 4 / 6.0) / 2);
}

TEST(Metrics, WithNothingKnownAreUnknown) {
  const Metrics m = classification_metrics(two_columns({0.3, 0.6}), at::tensor({-1, -1}, at::kLong));
  for (const char* name : {"accuracy", "balanced_accuracy", "auroc", "average_precision", "log_loss"})
    EXPECT_TRUE(std::isnan(metric(m, name))) << name;
}

TEST(Metrics, CertainMistakesHaveAFiniteLogLoss) {
  const Metrics m = classification_metrics(two_columns({0, 1}), at::tensor({1, 0}, at::kLong));
  EXPECT_NEAR(metric(m, "log_loss"), -std::log(1e-15), 1e-12);
}

TEST(Metrics, TheBestThresholdIsThatOfAnExhaustiveSearch) {
  for (uint64_t seed = 1; seed < 30; ++seed) {
    const MetricCase c = tied_case(seed, 5 + static_cast<int64_t>(seed % 9));
    // of some, good scores are those of negatives
    const double sign = seed % 3 == 0 ? -0.4 : 0.4;
    const Tensor p = two_columns(numbers(c.scores * sign + 0.5));
    for (const char* name : {"accuracy", "balanced_accuracy", "f1"}) {
      const auto value = [&](double threshold) {
        return metric(classification_metrics(p, c.positive, threshold), name);
      };
      double best = -1;
      for (double threshold = 0; threshold <= 1.01; threshold += 0.005)
        best = std::max(best, value(threshold));
      EXPECT_DOUBLE_EQ(value(best_threshold(p, c.positive, name)), best) << name << ", " << seed;
    }
  }
}

TEST(Metrics, AThresholdMayKeepEverythingOut) {
  // the only positive has the lowest score
  const Tensor p = two_columns({0.2, 0.5, 0.8, 1}), classes = at::tensor({1, 0, 0, 0}, at::kLong);
  const double threshold = best_threshold(p, classes, "accuracy");
  EXPECT_DOUBLE_EQ(metric(classification_metrics(p, classes, threshold), "accuracy"), 0.75);
}

TEST(Metrics, AThresholdLiesBetweenNeighbouringNumbers) {
  const double low = std::nextafter(0.5, 0), high = 0.5, higher = std::nextafter(0.5, 1);
  for (const auto& [negative, positive] : {std::pair(low, high), {high, higher}}) {
    const Tensor p = two_columns({negative, positive}), classes = at::tensor({0, 1}, at::kLong);
    const double threshold = best_threshold(p, classes, "accuracy");
    EXPECT_EQ(metric(classification_metrics(p, classes, threshold), "accuracy"), 1);
  }
}

TEST(Metrics, AThresholdForNothingKnownIsOneHalf) {
  EXPECT_EQ(best_threshold(two_columns({0.3}), at::tensor({-1}, at::kLong), "f1"), 0.5);
  EXPECT_EQ(error_message([] { best_threshold(two_columns({0.3}), at::tensor({1}, at::kLong), "auroc"); }),
            "[threshold] can be chosen for accuracy, balanced_accuracy or f1, not for 'auroc'");
}

TEST(Metrics, OfRegressionByHand) {
  const Tensor truth = at::tensor({1.0, 10.0, 3.0, NAN, 5.0, 30.0}, at::kDouble).reshape({3, 2}),
               guess = at::tensor({2.0, 12.0, 3.0, 99.0, 4.0, 30.0}, at::kDouble).reshape({3, 2});
  const Metrics m = regression_metrics(guess, truth);
  EXPECT_DOUBLE_EQ(metric(m, "mse"), (1 + 4 + 0 + 1 + 0) / 5.0);
  EXPECT_DOUBLE_EQ(metric(m, "mae"), (1 + 2 + 0 + 1 + 0) / 5.0);
  // squares around the means 3 and 20
  EXPECT_DOUBLE_EQ(metric(m, "r2"), 1 - 6.0 / (4 + 0 + 4 + 100 + 100));
  EXPECT_TRUE(std::isnan(metric(regression_metrics(guess, at::full({3, 2}, NAN)), "mse")));
}

// two channels with values 1 + 2 x and x
Preparation two_channels() {
  return {.channels = {"a", "b"}, .channel_scales = {{1, 2}, {0, 1}}, .naive_errors = {0.5, 0}};
}

// of rows 1, 2 and 3 ahead of one series and row 1 of another
Predictions four_rows() {
  Predictions p;
  p.outputs = at::tensor({1.0, 1.0, 1.0, 5.0, -0.5, 2.0, 3.0, 0.0}, at::kDouble).reshape({4, 2});
  p.targets = at::tensor({0.0, 1.0, 1.0, NAN, -0.5, 1.0, 3.0, 0.0}, at::kDouble).reshape({4, 2});
  p.samples = at::tensor({0, 0, 0, 1}, at::kLong);
  p.times = at::arange(4, at::kDouble);
  return p;
}

TEST(Metrics, ScaledErrorsOfChannels) {
  const Metrics m = evaluate(four_rows(), {.kind = TaskKind::Forecast}, two_channels());
  // in their own units 3 and 1, 3 and 3, 0 and 0, 7 and 7; 1 and 1, 2 and 1, 0 and 0
  EXPECT_DOUBLE_EQ(metric(m, "smape"), (2 * 2.0 / 4 + 2 * 1.0 / 3) / 7);
  // channel b has no naive error
  EXPECT_DOUBLE_EQ(metric(m, "mase"), (1 / 0.5) / 4);
  Preparation old = two_channels();
  old.naive_errors.clear();
  EXPECT_TRUE(std::isnan(metric(evaluate(four_rows(), {.kind = TaskKind::Forecast}, old), "mase")));
  Preparation targets = two_channels();
  targets.target_scales = targets.channel_scales;
  EXPECT_TRUE(std::isnan(metric(evaluate(four_rows(), {.kind = TaskKind::Regression}, targets), "smape")));
  Predictions none = four_rows();
  none.targets = at::full({4, 2}, NAN);
  EXPECT_TRUE(std::isnan(metric(evaluate(none, {.kind = TaskKind::Forecast}, two_channels()), "smape")));
}

TEST(Metrics, OfChannelsAndRowsAhead) {
  const TaskConfig task = {.kind = TaskKind::Forecast};
  const std::vector<MetricsGroup> groups = metrics_by_group(four_rows(), task, two_channels());
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].kind + groups[0].name + groups[1].name, "channelsab");
  // in own units
  EXPECT_DOUBLE_EQ(metric(groups[0].metrics, "mse"), 4.0 / 4);
  EXPECT_DOUBLE_EQ(metric(groups[0].metrics, "mase"), (2 / 1.0) / 4);
  EXPECT_DOUBLE_EQ(metric(groups[1].metrics, "mae"), 1.0 / 3);
  EXPECT_TRUE(std::isnan(metric(groups[1].metrics, "mase")));
  EXPECT_EQ(groups[2].kind + groups[2].name + groups[3].name + groups[4].name, "rows_ahead123");
  // of row 1 the values 0, 1; 3, 0
  EXPECT_DOUBLE_EQ(metric(groups[2].metrics, "mse"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(metric(groups[3].metrics, "mse"), 0);
  EXPECT_DOUBLE_EQ(metric(groups[4].metrics, "mse"), 1.0 / 2);
  Predictions longer = four_rows();
  longer.samples = at::zeros({4}, at::kLong);
  EXPECT_EQ(metrics_by_group(longer, task, two_channels()).back().name, "3 to 4");
  EXPECT_EQ(metrics_by_group(four_rows(), {.kind = TaskKind::Imputation}, two_channels()).size(), 2u);
  EXPECT_TRUE(metrics_by_group(four_rows(), {.kind = TaskKind::Regression}, two_channels()).empty());
}

TEST(Metrics, NaiveErrorsAreThoseOfTheTrainingPart) {
  const DataSet data = collect_series({.name = "set", .channels = {"x", "never"}},
                                      {{.id = "a", .times = {0, 1, 2}, .values = {1, NAN, NAN, NAN, 3, NAN}},
                                       {.id = "b", .times = {0, 1}, .values = {5, NAN, 4, NAN}},
                                       {.id = "c", .times = {0, 1}, .values = {0, NAN, 100, NAN}}});
  const PrepareConfig plain = {.scaling = Scaling::None, .clip = 0};
  EXPECT_EQ(fit_preparation(data, {0, 1}, plain, {.kind = TaskKind::Forecast}).naive_errors,
            (std::vector<double>{1.5, 0}));
}

TEST(Metrics, TheCurveGoesFromCornerToCorner) {
  const MetricCase c = tied_case(3, 33);
  const Roc curve = roc(c.scores, c.positive);
  EXPECT_EQ(curve.false_positive.front(), 0);
  EXPECT_EQ(curve.true_positive.front(), 0);
  EXPECT_EQ(curve.false_positive.back(), 1);
  EXPECT_EQ(curve.true_positive.back(), 1);
  const std::vector<double> s = numbers(c.scores);
  EXPECT_EQ(curve.thresholds.size(), std::set<double>(s.begin(), s.end()).size() + 1);
  double area = 0;
  for (size_t i = 1; i < curve.thresholds.size(); ++i) {
    EXPECT_LT(curve.thresholds[i], curve.thresholds[i - 1]);
    area += (curve.false_positive[i] - curve.false_positive[i - 1]) *
            (curve.true_positive[i] + curve.true_positive[i - 1]) / 2;
  }
  EXPECT_NEAR(area, auroc(c.scores, c.positive), 1e-14);
}

TEST(Metrics, ConfusionHasTrueClassesInRows) {
  const auto table = confusion(at::tensor({0, 1, 1, 2}, at::kLong), at::tensor({0, 0, 1, -1}, at::kLong), 3);
  EXPECT_EQ(table, (std::vector<std::vector<int64_t>>{{1, 1, 0}, {0, 1, 0}, {0, 0, 0}}));
}

TEST(Metrics, ProbabilitiesOfOutputs) {
  const Tensor two = class_probabilities(at::tensor({0.0, std::log(3.0)}, at::kDouble).reshape({2, 1}));
  EXPECT_DOUBLE_EQ(two[0][1].item<double>(), 0.5);
  EXPECT_DOUBLE_EQ(two[1][1].item<double>(), 0.75);
  EXPECT_DOUBLE_EQ(two[1][0].item<double>(), 0.25);
  const Tensor three =
      class_probabilities(at::tensor({0.0, std::log(2.0), 0.0}, at::kDouble).reshape({1, 3}));
  EXPECT_DOUBLE_EQ(three[0][1].item<double>(), 0.5);
  EXPECT_TRUE(at::equal(predicted_classes(two, 0.6), at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(predicted_classes(three, 0.6), at::tensor({1}, at::kLong)));
}

TEST(Metrics, ErrorsAreBetterWhenSmall) {
  for (const char* name : {"mse", "mae", "log_loss", "loss", "ece", "brier", "width", "smape", "mase"})
    EXPECT_FALSE(larger_is_better(name));
  for (const char* name : {"auroc", "accuracy", "f1", "r2", "coverage"}) EXPECT_TRUE(larger_is_better(name));
}

}  // namespace
}  // namespace fastweights

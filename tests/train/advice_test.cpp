#include "train/advice.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fastweights {
namespace {

// 40 epochs with losses as functions of the epoch
template <typename Training, typename Validation>
RunResult run_with(Training training, Validation validation) {
  RunResult result = {.best_epoch = 12};
  for (int64_t e = 1; e <= 40; ++e) {
    const auto x = static_cast<double>(e);
    result.epochs.push_back(
        {.epoch = e, .loss = training(x), .validation = {{"accuracy", 0.8}, {"log_loss", validation(x)}}});
  }
  return result;
}

double falling(double x) { return std::exp(-x / 8); }
// lowest in epoch 12
double turning(double x) { return 0.3 + 0.001 * (x - 12) * (x - 12); }

std::string verdict(const RunResult& result) { return training_advice(result, "accuracy").front(); }

TEST(Advice, ARisingValidationLossIsOverfitting) {
  const std::vector<std::string> advice = training_advice(run_with(falling, turning), "accuracy");
  EXPECT_EQ(advice.front().rfind("Overfitting: the validation loss was lowest in epoch 12 (0.3)", 0), 0u)
      << advice.front();
  ASSERT_EQ(advice.size(), 2u);
  EXPECT_NE(advice.back().find("--preset small"), std::string::npos);
}

TEST(Advice, ARisingTrainingLossIsNot) {
  // training that diverges does not learn its series by heart
  const auto rising = [](double x) { return x; };
  EXPECT_EQ(verdict(run_with(rising, turning)).rfind("Overfitting", 0), std::string::npos);
}

TEST(Advice, ARiseNextToZeroIsNot) {
  const auto tiny = [](double x) { return x < 2 ? 0.7 : 1e-4 * x; };
  EXPECT_EQ(verdict(run_with(falling, tiny)).rfind("No overfitting", 0), 0u);
}

TEST(Advice, OneBadEpochIsNoVerdict) {
  RunResult result = run_with(falling, [](double) { return 0.3; });
  result.epochs.back().validation[1].second = 3;
  EXPECT_EQ(verdict(result).rfind("No overfitting: the validation loss ends at 0.3", 0), 0u)
      << verdict(result);
}

TEST(Advice, ALossThatStillFallsAsksForMoreEpochs) {
  const std::vector<std::string> advice = training_advice(run_with(falling, falling), "accuracy");
  EXPECT_NE(advice.front().find("still falling"), std::string::npos) << advice.front();
  EXPECT_NE(advice.back().find("--epochs 80"), std::string::npos);
}

TEST(Advice, AGapBetweenPartsCountsIfItIsMoreThanNoise) {
  RunResult result = run_with(falling, [](double) { return 0.3; });
  result.parts = {{.name = "train", .samples = 500, .metrics = {{"accuracy", 1.0}}},
                  {.name = "validation", .samples = 200, .metrics = {{"accuracy", 0.8}}}};
  EXPECT_NE(verdict(result).find("accuracy is 1 on the training part and 0.8 on validation"),
            std::string::npos);
  // two standard errors of 8 series are 0.28
  result.parts[1].samples = 8;
  EXPECT_EQ(verdict(result).rfind("No overfitting", 0), 0u);
}

TEST(Advice, WithoutValidationOrWithFewEpochsItSaysSo) {
  RunResult result = run_with(falling, turning);
  result.epochs.resize(3);
  EXPECT_NE(verdict(result).find("too short"), std::string::npos);
  for (TrainEpoch& epoch : result.epochs) epoch.validation.clear();
  EXPECT_NE(verdict(result).find("no validation part"), std::string::npos);
}

TEST(PositiveNote, NamesTheSecondOfTwoClasses) {
  DataSet data;
  data.head.classes = {"failure", "ok"};
  EXPECT_EQ(positive_note(data, TaskKind::Classification),
            "the positive class is 'ok' (f1, average_precision, threshold)");
  EXPECT_EQ(positive_note(data, TaskKind::Imputation), "");
  data.head.classes.push_back("unknown");
  EXPECT_EQ(positive_note(data, TaskKind::Classification), "");
}

}  // namespace
}  // namespace fastweights

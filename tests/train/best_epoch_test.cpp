#include <algorithm>
#include <cmath>

#include "train/trainer_steps.h"

namespace fastweights {
namespace {

using testing::run;

// accuracy and log loss of all epochs
struct EpochScores {
  std::vector<double> accuracy, log_loss;
  int64_t marked = 0;  // the last one that was the best so far
};
EpochScores train_and_score(Trainer& trainer) {
  EpochScores scores;
  for (const TrainStep& step : run(trainer)) {
    if (!step.epoch_record) continue;
    scores.accuracy.push_back(metric(step.epoch_record->validation, "accuracy"));
    scores.log_loss.push_back(metric(step.epoch_record->validation, "log_loss"));
    if (step.epoch_record->best) scores.marked = step.epoch_record->epoch;
  }
  return scores;
}

TEST(BestEpoch, OfEquallyGoodEpochsOnManySeriesTheOneWithTheSmallestLogLossIsTaken) {
  const TrainData data = train_data(two_classes(400));
  ASSERT_EQ(data.validation.samples(), 100);
  int not_the_last = 0;
  for (const int64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    Trainer trainer(Model(small_model(data)), data,
                    {.epochs = 15,
                     .batch_size = 30,
                     .learning_rate = 0.05,
                     .schedule = RateSchedule::Constant,
                     .metric = "accuracy",
                     .seed = seed});
    const EpochScores scores = train_and_score(trainer);
    const double top = *std::max_element(scores.accuracy.begin(), scores.accuracy.end());
    size_t expected = 0, last = 0;
    double smallest = INFINITY;
    for (size_t i = 0; i < scores.accuracy.size(); ++i) {
      if (scores.accuracy[i] != top) continue;
      last = i;
      if (scores.log_loss[i] > smallest) continue;
      smallest = scores.log_loss[i];
      expected = i;
    }
    EXPECT_EQ(trainer.best_epoch(), static_cast<int64_t>(expected) + 1) << seed;
    EXPECT_EQ(scores.marked, trainer.best_epoch());
    not_the_last += expected != last ? 1 : 0;
  }
  // otherwise this says nothing
  EXPECT_GT(not_the_last, 0);
}

TEST(BestEpoch, OfOneClassIsThatWithTheSmallestLogLoss) {
  TrainData data = train_data(two_classes(64));
  data.validation.labels.fill_(0);
  Trainer trainer(Model(small_model(data)), data,
                  {.epochs = 8, .batch_size = 16, .learning_rate = 0.2, .schedule = RateSchedule::Constant});
  const std::vector<double> losses = train_and_score(trainer).log_loss;
  const auto smallest = std::min_element(losses.begin(), losses.end());
  ASSERT_NE(smallest, losses.end() - 1) << "the last epoch says nothing";
  EXPECT_EQ(trainer.best_epoch(), smallest - losses.begin() + 1);
}

TEST(BestEpoch, OnFewSeriesTheLastEpochWithinOneMistakeIsTaken) {
  const TrainData data = train_data(two_classes(64));
  ASSERT_EQ(data.validation.samples(), 16);
  Trainer trainer(
      Model(small_model(data)), data,
      {.epochs = 8, .learning_rate = 0.05, .schedule = RateSchedule::Constant, .metric = "accuracy"});
  const EpochScores scores = train_and_score(trainer);
  double top = 0;
  int64_t expected = 0;
  for (size_t i = 0; i < scores.accuracy.size(); ++i) {
    top = std::max(top, scores.accuracy[i]);
    if (scores.accuracy[i] > top - 1.5 / 16) expected = static_cast<int64_t>(i) + 1;
  }
  EXPECT_EQ(trainer.best_epoch(), expected);
  EXPECT_EQ(scores.marked, expected);
}

// training follows the targets, whose opposites validation asks for: its loss rises
TEST(BestEpoch, TheLossOfValuesIsThatOfTheValidationPart) {
  TrainData data = train_data(two_classes(64), {.kind = TaskKind::Regression});
  data.validation.targets = -data.validation.targets;
  Trainer trainer(Model(small_model(data)), data,
                  {.epochs = 8,
                   .batch_size = 16,
                   .learning_rate = 0.02,
                   .schedule = RateSchedule::Constant,
                   .metric = "loss"});
  std::vector<double> validation, training;
  for (const TrainStep& step : run(trainer)) {
    if (!step.epoch_record) continue;
    validation.push_back(metric(step.epoch_record->validation, "mse"));
    training.push_back(step.epoch_record->loss);
  }
  const auto least = [](const std::vector<double>& list) {
    return std::min_element(list.begin(), list.end()) - list.begin() + 1;
  };
  ASSERT_NE(least(validation), least(training));
  EXPECT_EQ(trainer.best_epoch(), least(validation));
}

}  // namespace
}  // namespace fastweights

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/data_support.h"
#include "fastweights/run.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "tensor/runtime.h"
#include "train/prepared_set.h"
#include "train/trainer_steps.h"

namespace fastweights {
namespace {

using testing::copies;
using testing::equal;
using testing::error_message;
using testing::expect_same;
using testing::run;
using testing::small_trainer;

TEST(Trainer, TheSameSeedGivesTheSameBits) {
  Trainer first = small_trainer({.epochs = 3}), second = small_trainer({.epochs = 3}),
          other = small_trainer({.epochs = 3, .seed = 2});
  const auto records = run(first);
  expect_same(records, run(second));
  EXPECT_EQ(records.size(), 9u);
  EXPECT_TRUE(equal(copies(first), copies(second)));
  run(other);
  EXPECT_FALSE(equal(copies(first), copies(other)));
}

TEST(Trainer, AStateOnDiskInMidEpochGoesOnBitForBit) {
  const TestFolder folder;
  // plateau and best epoch belong to what must be kept
  const TrainConfig config = {.epochs = 6,
                              .learning_rate = 0.03,
                              .schedule = RateSchedule::Plateau,
                              .plateau_patience = 1,
                              .positive_weight = 2,
                              .penalty = 1e-3};
  Trainer whole = small_trainer(config);
  const auto records = run(whole);
  whole.restore_best();
  for (const int64_t steps : {2, 7, 15}) {
    Trainer before = small_trainer(config), after = small_trainer(config, 99);
    auto all = run(before, steps);
    save_safetensors(folder.path("state"), before.state());
    after.set_state(load_safetensors(folder.path("state")));
    EXPECT_EQ(after.steps_done(), steps);
    const auto rest = run(after);
    all.insert(all.end(), rest.begin(), rest.end());
    expect_same(all, records);
    EXPECT_EQ(after.best_epoch(), whole.best_epoch());
    EXPECT_EQ(after.best_value(), whole.best_value());
    after.restore_best();
    EXPECT_TRUE(same_bits(after.model(), whole.model()));
  }
}

TEST(Trainer, AHandedOutStateIsACopy) {
  Trainer trainer = small_trainer({.epochs = 3});
  run(trainer, 4);
  const NamedTensors state = trainer.state();
  NamedTensors copy = state;
  for (auto& [name, tensor] : copy.tensors) tensor = tensor.clone();
  run(trainer);
  EXPECT_TRUE(same_bits(state, copy));
}

TEST(Trainer, AnEpochSeesEverySeriesOnce) {
  const TrainData data = train_data(two_classes(40));
  Trainer trainer(Model(small_model(data)), data, {.epochs = 1, .batch_size = 7});
  EXPECT_EQ(trainer.steps_per_epoch(), 5);
  int64_t seen = 0;
  double sum = 0;
  const auto records = run(trainer);
  for (const TrainStep& step : records) {
    seen += step.samples;
    sum += step.loss * static_cast<double>(step.samples);
  }
  EXPECT_EQ(records.size(), 5u);
  EXPECT_EQ(seen, 30);
  EXPECT_DOUBLE_EQ(records.back().epoch_record->loss, sum / 30);
  EXPECT_EQ(error_message([&] { trainer.step(); }), "[train] there is nothing left to do");
}

TEST(Trainer, BucketingSortsByLengthWithinPools) {
  const TrainData data = train_data(two_classes(64));
  const int64_t* offsets = data.train.offsets.data_ptr<int64_t>();
  // between the shortest and the longest series of a batch, over all batches
  const auto spread = [&](int64_t bucket_batches) {
    int64_t sum = 0;
    std::multiset<int64_t> seen;
    for (const std::vector<int64_t>& batch : random_batches(data.train.offsets, 4, bucket_batches, 3)) {
      std::vector<int64_t> lengths;
      for (const int64_t b : batch) lengths.push_back(offsets[b + 1] - offsets[b]);
      const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
      sum += *most - *least;
      seen.insert(batch.begin(), batch.end());
    }
    EXPECT_EQ(seen.size(), 48u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 48u);
    return sum;
  };
  // lengths are 4 to 8: in one sorted row only the four steps between them lie in a batch
  EXPECT_LE(spread(12), 4);
  EXPECT_GT(spread(4), 4);
  EXPECT_GT(spread(1), spread(4));
}

TEST(Trainer, CosineFallsFromTheFullRateAfterTheWarmUp) {
  Trainer trainer = small_trainer({.epochs = 4, .learning_rate = 0.01, .warm_up = 0.25});
  const auto records = run(trainer);
  ASSERT_EQ(records.size(), 12u);
  for (int i = 0; i < 12; ++i) {
    const double expected = i < 3 ? (i + 1) / 3.0 : 0.5 * (1 + std::cos(std::numbers::pi * (i - 3) / 9.0));
    EXPECT_NEAR(records[static_cast<size_t>(i)].learning_rate, 0.01 * expected, 1e-15) << i;
  }
}

TEST(Trainer, PlateauDividesByTenAndConstantStays) {
  // steps too small to change anything
  const TrainConfig config = {.epochs = 6,
                              .learning_rate = 1e-12,
                              .schedule = RateSchedule::Plateau,
                              .warm_up = 0,
                              .plateau_patience = 2,
                              .metric = "accuracy"};
  Trainer trainer = small_trainer(config);
  // epoch 1 is the best; 2 and 3 are not better, nor are 4 and 5
  const std::vector<double> expected = {1, 1, 1, 0.1, 0.1, 0.01};
  for (const TrainStep& step : run(trainer))
    EXPECT_NEAR(step.learning_rate / 1e-12, expected[static_cast<size_t>(step.epoch - 1)], 1e-12);
  TrainConfig constant = config;
  constant.schedule = RateSchedule::Constant;
  Trainer other = small_trainer(constant);
  for (const TrainStep& step : run(other)) EXPECT_EQ(step.learning_rate, 1e-12);
}

TEST(Trainer, EndsEarlyWhenNothingImproves) {
  Trainer trainer =
      small_trainer({.epochs = 50, .learning_rate = 1e-12, .patience = 3, .metric = "accuracy"});
  run(trainer);
  EXPECT_EQ(trainer.epochs_done(), 4);
  EXPECT_TRUE(trainer.finished());
}

TEST(Trainer, TakesTheParametersOfTheBestEpoch) {
  Trainer trainer = small_trainer({.epochs = 12,
                                   .batch_size = 8,
                                   .learning_rate = 0.3,
                                   .schedule = RateSchedule::Constant,
                                   .metric = "log_loss"});
  std::vector<std::vector<Tensor>> parameters;
  std::vector<double> losses;
  int64_t last_best = 0;
  while (!trainer.finished()) {
    const TrainStep step = trainer.step();
    if (!step.epoch_record) continue;
    parameters.push_back(copies(trainer));
    losses.push_back(metric(step.epoch_record->validation, "log_loss"));
    if (step.epoch_record->best) last_best = step.epoch_record->epoch;
  }
  const auto best = std::min_element(losses.begin(), losses.end());
  // otherwise this says nothing
  ASSERT_LT(best - losses.begin(), 11);
  EXPECT_EQ(trainer.best_epoch(), best - losses.begin() + 1);
  EXPECT_EQ(last_best, trainer.best_epoch());
  EXPECT_EQ(trainer.best_value(), *best);
  EXPECT_FALSE(equal(copies(trainer), parameters[static_cast<size_t>(best - losses.begin())]));
  trainer.restore_best();
  EXPECT_TRUE(equal(copies(trainer), parameters[static_cast<size_t>(best - losses.begin())]));
}

TEST(Trainer, OfEquallyGoodEpochsTheLastIsTaken) {
  Trainer trainer = small_trainer({.epochs = 5, .learning_rate = 1e-12, .metric = "accuracy"});
  run(trainer);
  EXPECT_EQ(trainer.best_epoch(), 5);
}

TEST(Trainer, TroubleLeavesTheParametersAlone) {
  DataSet data = two_classes(16);
  data.values[2] = 1e30;
  const TrainData prepared = train_data(data, {}, {.scaling = Scaling::None, .clip = 0});
  Trainer trainer(Model(small_model(prepared)), prepared,
                  {.epochs = 20, .batch_size = 4, .learning_rate = 1e20, .clip = 0, .warm_up = 0});
  std::vector<Tensor> before;
  TrainStep step;
  while (step.not_finite.empty() && !trainer.finished()) {
    before = copies(trainer);
    step = trainer.step();
  }
  EXPECT_NE(step.not_finite, "");
  EXPECT_EQ(step.batch.size(), 4u);
  EXPECT_TRUE(equal(copies(trainer), before));
  // and the step is not counted
  const int64_t done = trainer.steps_done();
  EXPECT_EQ(trainer.step().not_finite, step.not_finite);
  EXPECT_EQ(trainer.steps_done(), done);
}

TEST(Trainer, LearnsToTellTwoClassesApart) {
  const TrainData data = train_data(two_classes(32));
  const Model model(small_model(data));
  Trainer trainer(model, data, {.epochs = 15, .batch_size = 8, .learning_rate = 0.02});
  run(trainer);
  const Metrics m =
      evaluate(predict(model, data.train, data.preparation, data.task), data.task, data.preparation);
  EXPECT_EQ(metric(m, "accuracy"), 1);
  EXPECT_LT(metric(m, "log_loss"), 0.1);
}

TEST(Trainer, LearnsTargetsValuesAndRows) {
  for (const TaskKind kind : {TaskKind::Regression, TaskKind::Forecast, TaskKind::Imputation}) {
    const TrainData data = train_data(two_classes(32), {.kind = kind});
    Trainer trainer(Model(small_model(data)), data, {.epochs = 8, .batch_size = 8, .learning_rate = 0.02});
    const auto records = run(trainer);
    EXPECT_EQ(trainer.config().metric, "mse");
    const double first = records[2].epoch_record->loss, last = records.back().epoch_record->loss;
    EXPECT_LT(last, 0.9 * first) << static_cast<int>(kind);
  }
}

TEST(Trainer, WithoutValidationTheTrainingLossChooses) {
  TrainData data = train_data(two_classes(16));
  data.validation = prepare(select_series(two_classes(16), {}), data.preparation);
  Trainer trainer(Model(small_model(data)), data, {.epochs = 4, .batch_size = 4, .learning_rate = 0.01});
  double best = INFINITY;
  for (const TrainStep& step : run(trainer)) {
    if (!step.epoch_record) continue;
    EXPECT_TRUE(step.epoch_record->validation.empty());
    EXPECT_EQ(step.epoch_record->best, step.epoch_record->loss < best);
    best = std::min(best, step.epoch_record->loss);
  }
}

TEST(Trainer, AnEpochWhosePredictionsAreNotNumbersIsNotTheBest) {
  TrainData data = train_data(two_classes(16), {.kind = TaskKind::Regression});
  // a spline through these overflows, while training has nothing to do with them
  data.validation.values = at::full_like(data.validation.values, 3e38f);
  data.validation.values.slice(0, 0, data.validation.values.size(0), 2).neg_();
  Trainer trainer(Model(small_model(data)), data, {.epochs = 2, .batch_size = 4});
  for (const TrainStep& step : run(trainer)) {
    if (!step.epoch_record) continue;
    ASSERT_TRUE(std::isnan(metric(step.epoch_record->validation, "mse")));
    EXPECT_FALSE(step.epoch_record->best);
  }
  EXPECT_EQ(trainer.best_epoch(), 0);
}

TEST(Trainer, OpenSettingsBecomeNumbers) {
  const TrainData data = train_data(two_classes(400));
  const Trainer trainer(Model(small_model(data)), data, {});
  EXPECT_EQ(trainer.config().batch_size, 300 / 16);
  EXPECT_EQ(trainer.config().epochs, 2000 / 17);
  EXPECT_EQ(trainer.config().metric, "auroc");
  // a batch is not larger than the data
  EXPECT_EQ(small_trainer({.batch_size = 100}).config().batch_size, 12);
}

TEST(Trainer, BadSettingsGetASentence) {
  const auto refused = [](const TrainConfig& config) {
    return error_message([&] { small_trainer(config); });
  };
  EXPECT_EQ(refused({.epochs = -1}), "[train] epochs must not be negative, got -1");
  // one that leaves nothing to divide by
  EXPECT_EQ(refused({.batch_size = -10}), "[train] batch_size must not be negative, got -10");
  EXPECT_EQ(refused({.learning_rate = 0}), "[train] learning_rate must be positive, got 0");
  EXPECT_EQ(refused({.clip = -1}), "[train] clip must not be negative, got -1");
  EXPECT_EQ(refused({.warm_up = 1}), "[train] warm_up must be in [0, 1), got 1");
  EXPECT_EQ(refused({.patience = -1}), "[train] patience must not be negative");
  EXPECT_EQ(refused({.head_rate = 0}), "[train] penalty, head_rate and positive_weight must not be negative");
  EXPECT_EQ(refused({.metric = "acuracy"}), "[train] metric cannot be 'acuracy'; the nearest is 'accuracy'");
  EXPECT_EQ(refused({.threshold_for = "f2"}), "[train] threshold_for cannot be 'f2'; the nearest is 'f1'");
  TrainData three = train_data(two_classes(16));
  three.preparation.classes = {"up", "down", "left"};
  EXPECT_EQ(error_message([&] { Trainer(Model(small_model(three)), three, {.positive_weight = 2}); }),
            "[train] positive_weight is for two classes, there are 3");
}

TEST(Trainer, BadStatesGetASentence) {
  Trainer trainer = small_trainer({.epochs = 3});
  run(trainer, 4);
  const auto refused = [&](auto change) {
    NamedTensors state = trainer.state();
    change(state.tensors);
    Trainer fresh = small_trainer({.epochs = 3});
    return refusal([&] { fresh.set_state(state); });
  };
  using Tensors = std::map<std::string, Tensor>;
  EXPECT_EQ(refused([](Tensors&) {}), "");
  EXPECT_EQ(refused([](Tensors& t) { t.erase("counts"); }), "the checkpoint has no 'counts'");
  EXPECT_EQ(refused([](Tensors& t) { t.erase("adam.first.head.bias"); }),
            "the checkpoint has no 'adam.first.head.bias'");
  EXPECT_EQ(refused([](Tensors& t) { t["counts"] = t["counts"].slice(0, 0, 4); }),
            "the checkpoint's counts must be 5 of Long, got [4] of Long");
  EXPECT_EQ(refused([](Tensors& t) { t["numbers"] = t["numbers"].to(at::kFloat); }),
            "the checkpoint's numbers must be 4 of Double, got [4] of Float");
  for (const char* name : {"parameter.head.bias", "adam.first.head.bias", "best.head.bias"})
    EXPECT_EQ(refused([&](Tensors& t) { t[name] = at::zeros({2}); }),
              std::string("the checkpoint's ") + name + " is [2], the model's [1]");
  // the third of three steps is the last that can be next
  EXPECT_EQ(refused([](Tensors& t) { t["counts"][1] = 3; }),
            "the checkpoint is at step 3 of an epoch, and there are 3; was the batch size another?");
}

TEST(Trainer, AnEpochCountsItsReplayedStepsAcrossAResume) {
  Trainer trainer = small_trainer({.epochs = 3});
  run(trainer, 4);
  NamedTensors state = trainer.state();
  EXPECT_EQ(state.tensors.at("replayed_steps").item<int64_t>(), 0);
  const auto second_epoch = [&] {
    Trainer resumed = small_trainer({.epochs = 3});
    resumed.set_state(state);
    const std::vector<TrainStep> records = run(resumed);
    // the third epoch begins with none
    EXPECT_EQ(records.back().epoch_record->replayed_steps, 0);
    return *records[1].epoch_record;
  };
  EXPECT_EQ(second_epoch().steps, 3);
  EXPECT_EQ(second_epoch().replayed_steps, 0);
  // a step before the checkpoint was replayed; those on the CPU are not
  state.tensors["replayed_steps"] = at::ones({1}, at::kLong);
  EXPECT_EQ(second_epoch().replayed_steps, 1);
  // checkpoints of an earlier version
  state.tensors.erase("replayed_steps");
  EXPECT_EQ(second_epoch().replayed_steps, 0);
}

TEST(Trainer, BalancedWeightsMakeClassesWeighTheSame) {
  const Tensor classes = at::tensor({0, 0, 0, 2, -1, 0, 2, 0}, at::kLong);
  const Tensor weights = balanced_weights(classes, 4);
  // 7 known, 2 classes that occur: 7 / (2 * 5) and 7 / (2 * 2)
  EXPECT_LT(testing::relative_error(weights, at::tensor({0.7, 0.0, 1.75, 0.0}, at::kDouble)), 1e-15);
}

TEST(Trainer, ASetThatIsPreparedOnceGivesTheSamePredictions) {
  const TrainData data = train_data(two_classes(40));
  const Model model(small_model(data));
  const PredictOptions options = {.batch_size = 7};
  const Predictions expected = predict(model, data.train, data.preparation, data.task, options);
  const std::vector<ReadyBatch> set = prepare_set(model, data.train, data.preparation, data.task, options);
  ASSERT_EQ(set.size(), 5u);
  for (int i = 0; i < 2; ++i) {
    const Predictions got = predict(model, set);
    EXPECT_TRUE(at::equal(got.outputs, expected.outputs));
    EXPECT_TRUE(at::equal(got.classes, expected.classes));
    EXPECT_TRUE(at::equal(got.samples, expected.samples));
  }
}

TEST(Trainer, PredictionsDoNotDependOnTheBatch) {
  const TrainData data = train_data(two_classes(20), {.kind = TaskKind::Forecast});
  const Model model(small_model(data));
  const Predictions whole = predict(model, data.train, data.preparation, data.task),
                    parts = predict(model, data.train, data.preparation, data.task, {.batch_size = 4});
  EXPECT_TRUE(at::equal(whole.samples, parts.samples));
  EXPECT_TRUE(at::equal(whole.times, parts.times));
  // sums of float32 in another order
  EXPECT_LT(testing::relative_error(parts.outputs, whole.outputs), 1e-5);
}

}  // namespace
}  // namespace fastweights

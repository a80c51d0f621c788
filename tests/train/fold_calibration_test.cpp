#include "train/fold_calibration.h"

#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

class FoldCalibrations : public ::testing::Test {
 protected:
  std::string folds(const Settings& more = {}) {
    RunsOptions options = small_runs(folder_.path("folds"), 3, {});
    // outputs that are far too confident
    options.setup.settings.push_back({"training.positive_weight", "9"});
    options.setup.settings.insert(options.setup.settings.end(), more.begin(), more.end());
    train_runs(options, data_);
    return options.folder;
  }
  Split parts(int64_t fold) const {
    return split_data(data_, {.rule = SplitRule::Folds, .folds = 3, .fold = fold});
  }
  // of each fold, for the series that it tests
  std::vector<Predictions> tested(const std::string& path) const {
    std::vector<Predictions> all;
    for (int64_t fold = 0; fold < 3; ++fold) {
      TrainedModel one = load_trained(message(path, "/fold-", fold + 1));
      one.calibration = {};
      const std::vector<int64_t> test = parts(fold).test;
      all.push_back(one.predict(select_series(data_, test)));
      all.back().samples = at::tensor(test, at::kLong);
    }
    return all;
  }

  TestFolder folder_;
  DataSet data_ = two_classes(60);
};

void expect_same(const Calibration& a, const Calibration& b) {
  EXPECT_DOUBLE_EQ(a.scale, b.scale);
  EXPECT_DOUBLE_EQ(a.power, b.power);
  EXPECT_DOUBLE_EQ(a.typical, b.typical);
  EXPECT_EQ(a.bias, b.bias);
}

TEST_F(FoldCalibrations, AreFittedToSeriesThatNeitherTheirModelNorItsFoldHasSeen) {
  data_.labels[4] = data_.labels[9] = 0;
  const std::string path = folds();
  const TrainedModel all = load_trained(path);
  const std::vector<Predictions> raw = tested(path);
  const Tensor outputs = at::cat({raw[0].outputs, raw[2].outputs}, 0),
               classes = at::cat({raw[0].classes, raw[2].classes}, 0),
               samples = at::cat({raw[0].samples, raw[2].samples}, 0);
  // no series of the second fold is among them
  for (const int64_t b : parts(1).test) EXPECT_FALSE(samples.eq(b).any().item<bool>());
  EXPECT_EQ(samples.size(0), 40);
  Predictions others;
  others.outputs = outputs;
  others.classes = classes;
  others.samples = samples;
  ASSERT_FALSE(all.members[1].calibration.is_identity());
  expect_same(all.members[1].calibration, fit_calibration(others, class_counts(classes, 2), {.epochs = 100}));
}

TEST_F(FoldCalibrations, DoNotDependOnLabelsOfTheirOwnFold) {
  std::vector<Predictions> raw = tested(folds());
  const FoldCalibration before = fit_fold_calibration(raw, CalibrationRule::Automatic, "f1");
  raw[1].classes = 1 - raw[1].classes;
  const FoldCalibration after = fit_fold_calibration(raw, CalibrationRule::Automatic, "f1");
  expect_same(after.members[1], before.members[1]);
  EXPECT_NE(after.members[0].scale, before.members[0].scale);
  EXPECT_NE(after.members[2].scale, before.members[2].scale);
}

TEST_F(FoldCalibrations, AreUsedByEverythingThatReadsTheFolder) {
  const std::string path = folds();
  const TrainedModel all = load_trained(path);
  // the series of the folds: log loss by hand
  const std::vector<Predictions> raw = tested(path);
  double sum = 0, threshold = 0;
  for (size_t m = 0; m < 3; ++m) {
    const Tensor p = class_probabilities(calibrated(raw[m].outputs, all.members[m].calibration));
    sum -= p.gather(1, raw[m].classes.unsqueeze(1)).log().sum().item<double>();
    Predictions others;
    const size_t a = m == 0 ? 1 : 0, b = m == 2 ? 1 : 2;
    others.outputs = calibrated(at::cat({raw[a].outputs, raw[b].outputs}, 0), all.members[m].calibration);
    others.classes = at::cat({raw[a].classes, raw[b].classes}, 0);
    threshold += fit_threshold(others, "balanced_accuracy") / 3;
  }
  const Json result = parse_json(read_file(path + "/result.json"));
  EXPECT_NEAR(result["out_of_fold"]["log_loss"].get<double>(), sum / 60, 1e-9);
  const PartSamples part = choose_part(path, data_, "table.csv");
  const Evaluation found = evaluate(all, data_, {.members = part.members});
  EXPECT_NEAR(metric(found.metrics, "log_loss"), sum / 60, 1e-9);
  EXPECT_NEAR(all.threshold, threshold, 1e-12);
  // other series: the mean, with a calibration of its own, applied once
  const DataSet other = two_classes(9, 7);
  Tensor mean = at::zeros({9, 2}, at::kDouble);
  for (const TrainedModel& member : all.members)
    mean += class_probabilities(member.predict(other).outputs) / 3;
  const Tensor logits = mean.select(1, 1).log() - mean.select(1, 0).log();
  EXPECT_GT(all.calibration.scale, 1);
  EXPECT_LT(
      (all.predict(other).outputs.squeeze(1) - calibrated(logits.unsqueeze(1), all.calibration).squeeze(1))
          .abs()
          .max()
          .item<double>(),
      1e-9);
}

// models that see logits with noise: each is calibrated, their mean is not
TEST(FoldCalibration, OfTheMeanMakesItMoreConfident) {
  constexpr int64_t kFolds = 5, kSeries = 4000;
  const Tensor truth = testing::random({kSeries, 1}, 1) * 3;
  const Tensor classes =
      testing::random({kSeries}, 2).add(1).div(2).lt(at::sigmoid(truth).squeeze(1)).to(at::kLong);
  std::vector<Predictions> tested;
  std::vector<Tensor> seen;
  for (int64_t m = 0; m < kFolds; ++m) {
    seen.push_back(truth + testing::random({kSeries, 1}, static_cast<uint64_t>(10 + m)) * 2);
    const Tensor own = at::arange(m, kSeries, kFolds, at::kLong);
    Predictions p;
    p.samples = own;
    p.outputs = seen.back().index_select(0, own);
    p.classes = classes.index_select(0, own);
    tested.push_back(p);
  }
  const FoldCalibration fitted = fit_fold_calibration(tested, CalibrationRule::Automatic, "none");
  EXPECT_EQ(fitted.threshold, 0.5);
  Tensor mean = at::zeros({kSeries, 2}, at::kDouble);
  for (size_t m = 0; m < seen.size(); ++m)
    mean += class_probabilities(calibrated(seen[m], fitted.members[m])) / static_cast<double>(kFolds);
  const Tensor logits = (mean.select(1, 1) / mean.select(1, 0)).log().unsqueeze(1);
  const Metrics plain = classification_metrics(mean, classes),
                sharp = classification_metrics(class_probabilities(calibrated(logits, fitted.mean)), classes);
  EXPECT_LT(metric(sharp, "log_loss"), metric(plain, "log_loss"));
  EXPECT_LT(metric(sharp, "ece"), metric(plain, "ece"));
}

// 27 of 50 series of each fold are right, which chance explains
TEST(FoldCalibration, OfOutputsLittleBetterThanChanceIsNearlyThatOfClassFrequencies) {
  std::vector<Predictions> tested;
  for (int64_t m = 0; m < 5; ++m) {
    Predictions p;
    p.samples = at::arange(50 * m, 50 * m + 50, at::kLong);
    p.classes = p.samples.remainder(2);
    const Tensor right = at::arange(50, at::kLong).lt(27).to(at::kDouble) * 2 - 1;
    p.outputs = (right * (p.classes * 2 - 1)).unsqueeze(1);
    tested.push_back(p);
  }
  const FoldCalibration fitted = fit_fold_calibration(tested, CalibrationRule::Automatic, "none");
  const Tensor p = class_probabilities(calibrated(tested[0].outputs, fitted.members[0])).select(1, 1);
  EXPECT_LT((p - 0.5).abs().max().item<double>(), 0.02);
}

TEST_F(FoldCalibrations, AreAbsentWhereNothingIsCalibrated) {
  for (const Settings& settings :
       {Settings{{"training.calibration", "none"}},
        Settings{{"task.kind", "regression"}, {"training.positive_weight", "0"}}}) {
    const std::string path = folds(settings);
    EXPECT_FALSE(std::filesystem::exists(path + "/calibration.json"));
    EXPECT_TRUE(load_trained(path).calibration.is_identity());
    TestFolder trash;
    std::filesystem::rename(path, trash.path("folds"));
  }
}

TEST_F(FoldCalibrations, OfEarlierVersionsAreThoseOfTheRuns) {
  const std::string path = folds();
  std::filesystem::remove(path + "/calibration.json");
  const TrainedModel all = load_trained(path);
  EXPECT_TRUE(all.calibration.is_identity());
  for (size_t m = 0; m < 3; ++m)
    expect_same(all.members[m].calibration, load_trained(message(path, "/fold-", m + 1)).calibration);
}

TEST_F(FoldCalibrations, OfADamagedFileAreRefusedUntilTheyAreWrittenAgain) {
  const std::string path = folds(), file = path + "/calibration.json", good = read_file(file);
  Json fewer = parse_json(good), wrong = parse_json(good);
  fewer["members"].erase(0);
  wrong["mean"]["scale"] = -1;
  for (const std::string& text : {std::string(), std::string("{}"), fewer.dump(), wrong.dump()}) {
    replace_file(file, text);
    const std::string says = refusal([&] { load_trained(path); });
    EXPECT_EQ(says.rfind(file + ": ", 0), 0u) << says;
    EXPECT_EQ(says.find("json.exception"), std::string::npos) << says;
  }
  resume_runs(path, data_);
  EXPECT_EQ(read_file(file), good);
}

}  // namespace
}  // namespace fastweights

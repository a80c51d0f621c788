#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/run_set.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;

// 24 series, trained as folds or with several seeds
class Runs : public ::testing::Test {
 protected:
  RunsOptions options(const std::string& name, int64_t folds, std::vector<int64_t> seeds,
                      Settings more = {}) {
    RunsOptions out = small_runs(folder_.path(name), folds, std::move(seeds));
    out.setup.settings.insert(out.setup.settings.end(), more.begin(), more.end());
    return out;
  }
  std::string folds(const Settings& more = {}) {
    train_runs(options("folds", 3, {}, more), data_);
    return folder_.path("folds");
  }
  std::string seeds(const Settings& more = {}) {
    train_runs(options("seeds", 0, {1, 2, 5}, more), data_);
    return folder_.path("seeds");
  }
  // of one model, whatever its task
  static Tensor values(const TrainedModel& trained, const Predictions& p) {
    return is_classification(trained.task.kind) ? class_probabilities(p.outputs)
                                                : in_own_units(p.outputs, trained.task, trained.preparation);
  }
  // the plain mean of separate predictions
  static Tensor plain_mean(const std::string& folder, const std::vector<std::string>& names,
                           const DataSet& data, const PredictOptions& how = {}) {
    Tensor sum;
    for (const std::string& name : names) {
      const TrainedModel one = load_trained(folder + "/" + name);
      const Tensor mine = values(one, one.predict(data, how));
      sum = sum.defined() ? sum + mine : mine;
    }
    return sum / static_cast<double>(names.size());
  }
  void expect_mean(const std::string& folder, const std::vector<std::string>& names,
                   const PredictOptions& how = {}) {
    const DataSet other = two_classes(7, 3);
    const TrainedModel all = load_trained(folder);
    // values of the data are of order ten, and conversions to and from a scale round
    EXPECT_LT((values(all, all.predict(other, how)) - plain_mean(folder, names, other, how))
                  .abs()
                  .max()
                  .item<double>(),
              1e-12);
  }
  void three_classes() {
    data_.head.classes.emplace_back("third");
    for (size_t b = 0; b < data_.labels.size(); b += 3) data_.labels[b] = 2;
  }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
};

TEST_F(Runs, AnEnsemblePredictsTheMeanProbabilities) {
  const std::string two = seeds();
  EXPECT_EQ(load_trained(two).members.size(), 3u);
  expect_mean(two, {"seed-1", "seed-2", "seed-5"});
  three_classes();
  train_runs(options("three", 0, {1, 2}), data_);
  expect_mean(folder_.path("three"), {"seed-1", "seed-2"});
}

TEST_F(Runs, AnEnsembleOfOneModelTwiceIsThatModel) {
  const std::string path = seeds();
  for (const char* other : {"/seed-2", "/seed-5"})
    std::filesystem::copy_file(path + "/seed-1/model.safetensors", path + other + "/model.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
  const TrainedModel one = load_trained(path + "/seed-1"), all = load_trained(path);
  EXPECT_NEAR(all.threshold, one.threshold, 1e-15);
  const Evaluation a = evaluate(one, data_), b = evaluate(all, data_);
  for (const auto& [name, value] : a.metrics) EXPECT_NEAR(metric(b.metrics, name), value, 1e-12) << name;
}

// folds have scales of their own
TEST_F(Runs, MeansOfValuesAreInTheirOwnUnits) {
  const std::string path = folds({{"task.kind", "regression"}});
  const auto mean_of = [&](const char* fold) {
    return load_trained(path + fold).preparation.target_scales[0].mean;
  };
  EXPECT_NE(mean_of("/fold-1"), mean_of("/fold-2"));
  expect_mean(path, {"fold-1", "fold-2", "fold-3"});
  train_runs(options("filled", 2, {}, {{"task.kind", "imputation"}}), data_);
  expect_mean(folder_.path("filled"), {"fold-1", "fold-2"}, {.targets = Targets::Missing});
}

TEST_F(Runs, ProbabilitiesOfZeroAndOneStayFinite) {
  const std::string path = seeds();
  TrainedModel all = load_trained(path);
  const at::NoGradGuard no_grad;
  for (TrainedModel& member : all.members) {
    member.calibration = {};
    for (const auto& [name, tensor] : member.model.parameters()) {
      if (name == "head.bias") tensor.fill_(1000);
    }
  }
  const Tensor outputs = all.predict(data_).outputs;
  EXPECT_TRUE(outputs.isfinite().all().item<bool>());
  EXPECT_TRUE(class_probabilities(outputs).select(1, 1).eq(1).all().item<bool>());
}

TEST_F(Runs, EverySeriesIsPredictedByTheFoldThatTestsIt) {
  for (const char* task : {"classification", "regression", "forecast"}) {
    const std::string path = folder_.path(task);
    train_runs(options(task, 3, {}, {{"task.kind", task}}), data_);
    const std::vector<int64_t> members = out_of_fold_members(path, data_);
    const TrainedModel all = load_trained(path);
    const Predictions p = all.predict(data_, {.members = members});
    EXPECT_TRUE(at::equal(p.samples, std::get<0>(at::sort(p.samples)))) << task;
    const Tensor got = values(all, p);
    int64_t tested = 0;
    for (int64_t fold = 0; fold < 3; ++fold) {
      const std::vector<int64_t> test =
          split_data(data_, {.rule = SplitRule::Folds, .folds = 3, .fold = fold}).test;
      TrainedModel one = load_trained(message(path, "/fold-", fold + 1));
      // the folder has calibrations of its own
      one.calibration = all.members[static_cast<size_t>(fold)].calibration;
      const Predictions alone = one.predict(select_series(data_, test));
      const Tensor rows = at::isin(p.samples, at::tensor(test, at::kLong)).nonzero().squeeze(1);
      tested += static_cast<int64_t>(test.size());
      EXPECT_LT((got.index_select(0, rows) - values(one, alone)).abs().max().item<double>(), 1e-12) << task;
      EXPECT_TRUE(at::equal(p.times.index_select(0, rows), alone.times)) << task;
      if (!p.targets.defined()) continue;
      const Tensor truth = in_own_units(p.targets, all.task, all.preparation).index_select(0, rows),
                   known = in_own_units(alone.targets, one.task, one.preparation);
      EXPECT_LT((truth - known).nan_to_num().abs().max().item<double>(), 1e-5) << task;
    }
    EXPECT_EQ(tested, 24);
  }
}

TEST_F(Runs, MembersMustExist) {
  const TrainedModel all = load_trained(seeds());
  EXPECT_EQ(error_message([&] {
              all.predict(data_, {.members = {0, 1}});
            }),
            "[predict] 24 series need as many members, got 2");
  EXPECT_EQ(error_message([&] { all.predict(data_, {.members = std::vector<int64_t>(24, 3)}); }),
            "[predict] there is no member 3 in an ensemble of 3");
}

TEST_F(Runs, FoldsSummariseTheirTestParts) {
  // otherwise each fold has one calibration of its own, and one from the other folds
  const Settings raw = {{"training.calibration", "none"}};
  const RunsResult result = train_runs(options("folds", 3, {}, raw), data_);
  ASSERT_EQ(result.parts.size(), 2u);
  const RunsPart& test = result.parts.back();
  EXPECT_EQ(test.name, "test");
  ASSERT_EQ(test.runs.size(), 3u);
  double sum = 0, right = 0;
  for (const PartResult& run : test.runs) {
    EXPECT_EQ(run.samples, 8);
    sum += metric(run.metrics, "log_loss");
    right += metric(run.metrics, "accuracy") * static_cast<double>(run.samples);
  }
  for (const Spread& of : test.spread) {
    if (of.name == "log_loss") {
      EXPECT_NEAR(of.mean, sum / 3, 1e-12);
    }
  }
  // parts of equal size: the mean over all series is the mean over folds
  EXPECT_EQ(test.together.name, "out-of-fold");
  EXPECT_EQ(test.together.samples, 24);
  EXPECT_NEAR(metric(test.together.metrics, "log_loss"), sum / 3, 1e-6);
  EXPECT_NEAR(metric(test.together.metrics, "accuracy"), right / 24, 1e-12);
  EXPECT_TRUE(result.parts.front().together.metrics.empty());
  const Json json = parse_json(read_file(folder_.path("folds/result.json")));
  EXPECT_EQ(json["folds"].size(), 3u);
  EXPECT_EQ(json["summary"]["log_loss"]["folds"], 3);
  EXPECT_EQ(json["out_of_fold"]["samples"], 24);
}

TEST_F(Runs, SeedsShareTheirSplitAndDifferOtherwise) {
  std::vector<std::vector<int64_t>> splits;
  RunsOptions o = options("seeds", 0, {4, 9});
  o.train = [&](const fastweights::Run& run, const RunOptions& one) {
    splits.push_back(run.data.split.test);
    return train_run(run, one);
  };
  const RunsResult result = train_runs(o, data_);
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0], splits[1]);
  for (const int64_t seed : {4, 9})
    EXPECT_EQ(read_run_config(message(o.folder, "/seed-", seed)).training.seed, seed);
  EXPECT_FALSE(same_bits(load_trained(o.folder + "/seed-4").model, load_trained(o.folder + "/seed-9").model));
  // each is the run that --seed makes
  Settings one = small_runs("", 0, {}).setup.settings;
  one.push_back({"training.seed", "9"});
  train_run(make_run({.model = "gru", .settings = one}, data_), {.folder = folder_.path("single")});
  EXPECT_EQ(read_file(folder_.path("single/model.safetensors")),
            read_file(o.folder + "/seed-9/model.safetensors"));
  const Json json = parse_json(read_file(o.folder + "/result.json"));
  EXPECT_EQ(json["summary"]["log_loss"]["seeds"], 2);
  EXPECT_TRUE(json["validation"]["ensemble"].contains("log_loss"));
  EXPECT_EQ(result.parts.back().together.name, "test");
  EXPECT_EQ(result.parts.back().together.samples, result.parts.back().runs[0].samples);
}

TEST_F(Runs, SpreadIsMeanDeviationAndRange) {
  const std::vector<PartResult> runs = {
      {.name = "test", .metrics = {{"accuracy", 1}, {"f1", NAN}, {"auroc", NAN}}},
      {.name = "test", .metrics = {{"accuracy", 2}, {"f1", 3}, {"auroc", NAN}}},
      {.name = "test", .metrics = {{"accuracy", 6}, {"f1", 3}, {"auroc", NAN}}}};
  const std::vector<Spread> spread = spread_of(runs);
  ASSERT_EQ(spread.size(), 2u);
  EXPECT_EQ(spread[0].name, "accuracy");
  EXPECT_DOUBLE_EQ(spread[0].mean, 3);
  // of a sample: (4 + 1 + 9) / 2
  EXPECT_DOUBLE_EQ(spread[0].deviation, std::sqrt(7.0));
  EXPECT_DOUBLE_EQ(spread[0].least, 1);
  EXPECT_DOUBLE_EQ(spread[0].largest, 6);
  EXPECT_EQ(spread[0].runs, 3);
  EXPECT_EQ(spread[1].runs, 2);
  EXPECT_DOUBLE_EQ(spread[1].deviation, 0);
}

TEST_F(Runs, ThePartOfFoldsIsOutOfFold) {
  const std::string path = folds();
  PartSamples part = choose_part(path, data_, "table.csv");
  EXPECT_EQ(part.name, "out-of-fold");
  EXPECT_EQ(part.samples.size(), 24u);
  EXPECT_EQ(part.members, out_of_fold_members(path, data_));
  EXPECT_EQ(choose_part(path, data_, "table.csv", "test").members, part.members);
  // all of the models together, if that is asked for
  EXPECT_TRUE(choose_part(path, data_, "table.csv", "all").members.empty());
  EXPECT_EQ(error_message([&] { choose_part(path, data_, "table.csv", "train"); }),
            "the folds of " + path + " have different train parts; evaluate one of them, such as " + path +
                "/fold-1");
  const DataSet other = two_classes(12, 5);
  part = choose_part(path, other, "other.csv");
  EXPECT_EQ(part.name, "all");
  EXPECT_TRUE(part.members.empty());
  // seeds have one split
  const std::string same = seeds();
  EXPECT_EQ(choose_part(same, data_, "table.csv").samples, split_data(data_, {}).test);
  EXPECT_EQ(choose_part(same, data_, "table.csv", "validation").samples, split_data(data_, {}).validation);
}

TEST_F(Runs, AFoldWhoseSplitHasChangedIsNoticed) {
  const std::string path = folds();
  std::string text = read_file(path + "/fold-2/config.json");
  text.replace(text.find("\"fold\": 1"), 9, "\"fold\": 0");
  folder_.file("folds/fold-2/config.json", text);
  EXPECT_NE(refusal([&] { choose_part(path, data_, "table.csv"); }).find("the split has changed since"),
            std::string::npos);
}

TEST_F(Runs, BadFoldersAreRefusedWithASentence) {
  const std::string path = seeds(), model = path + "/seed-2/model.safetensors", good = read_file(model);
  const auto says = [&] { return refusal([&] { load_trained(path); }); };
  folder_.file("seeds/seed-2/model.safetensors", good.substr(0, good.size() - 5));
  EXPECT_EQ(says().rfind(model + ": ", 0), 0u) << says();
  std::filesystem::remove(model);
  EXPECT_EQ(says(), path +
                        "/seed-2 has no model.safetensors: its training has not finished; continue it with "
                        "--resume " +
                        path);
  // of other classes, channels, another task
  const auto replace_by = [&](const DataSet& data, const Settings& settings) {
    Settings all = small_runs("", 0, {}).setup.settings;
    all.insert(all.end(), settings.begin(), settings.end());
    const std::string other = folder_.path("other");
    train_run(make_run({.model = "gru", .settings = all}, data), {.folder = other});
    std::filesystem::rename(other + "/model.safetensors", model);
    TestFolder trash;
    std::filesystem::rename(other, trash.path("other"));
  };
  const auto wrong = [&](const char* what) {
    return path + "/seed-2 was trained with " + what + " than " + path +
           "/seed-1; an ensemble needs models of one task and of the same names";
  };
  DataSet other = data_;
  other.head.classes = {"falls", "rises"};
  replace_by(other, {});
  EXPECT_EQ(says(), wrong("other classes"));
  other = data_;
  other.head.channels[1] = "sound";
  replace_by(other, {});
  EXPECT_EQ(says(), wrong("other channels"));
  replace_by(data_, {{"task.kind", "regression"}});
  EXPECT_EQ(says(), wrong("another task"));
  folder_.file("seeds/seed-2/model.safetensors", good);
  EXPECT_EQ(says(), "");
  for (const char* text : {"", "{}", "[1]", R"({"seeds": "x"})"}) {
    folder_.file("seeds/seeds.json", text);
    EXPECT_EQ(says().rfind(path + "/seeds.json: ", 0), 0u) << text;
    EXPECT_EQ(says().find("json.exception"), std::string::npos) << text;
  }
}

TEST_F(Runs, AnEnsembleIsNoSingleModel) {
  const std::string path = seeds();
  EXPECT_EQ(error_message([&] { save_trained(folder_.path("x.safetensors"), load_trained(path)); }),
            "[train] an ensemble is a folder of runs; save its members one by one");
  RunsOptions from = options("from", 0, {1, 2});
  from.setup.initialise_from = path;
  EXPECT_NE(refusal([&] { train_runs(from, data_); }).find("holds 3 models; name one of them, such as "),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(from.folder));
}

TEST_F(Runs, FoldersWithRunsAreLeftAlone) {
  const std::string path = seeds();
  for (const RunsOptions& o : {options("seeds", 3, {}), options("seeds", 0, {7, 8})})
    EXPECT_NE(error_message([&] { train_runs(o, data_); }).find("already: resume it with --resume"),
              std::string::npos);
  const auto refused = [&](int64_t count, std::vector<int64_t> list) {
    return error_message([&] { train_runs(options("none", count, std::move(list)), data_); });
  };
  EXPECT_EQ(refused(0, {}), "runs are either folds or seeds, not neither");
  EXPECT_EQ(refused(2, {1, 2}), "runs are either folds or seeds, not both");
  EXPECT_EQ(refused(0, {3}), "seeds must be 2 to 1000 numbers, got 1");
  EXPECT_EQ(refused(0, {3, 3}), "seed 3 is given twice");
  EXPECT_EQ(refused(0, {3, -1}), "seeds must not be negative, got -1");
  EXPECT_EQ(refused(1, {}), "folds must be 2 to 1000, got 1");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("none")));
}

TEST_F(Runs, TheReportShowsAllRunsAndTheirSpread) {
  const std::string path = seeds();
  const Json report = parse_json(read_file(path + "/report.json"));
  EXPECT_EQ(report["runs"]["runs"].size(), 3u);
  EXPECT_EQ(report["runs"]["runs"][2]["href"], "seed-5/report.html");
  EXPECT_TRUE(std::filesystem::exists(path + "/seed-5/report.html"));
  EXPECT_EQ(report["metrics"]["columns"], parse_json(R"(["mean", "deviation", "min", "max", "ensemble"])"));
  for (const char* key : {"confusion", "roc", "calibration", "mistakes", "fast_weights"})
    EXPECT_FALSE(report.contains(key)) << key;
  std::filesystem::remove(path + "/report.json");
  write_report(path, data_);
  Json again = parse_json(read_file(path + "/report.json"));
  again["finished"] = report["finished"];
  EXPECT_EQ(again, report);
  data_.values[0] += 1;
  EXPECT_EQ(refusal([&] { write_report(path, data_); }).rfind("the data have changed since", 0), 0u);
}

TEST_F(Runs, TheReportOfTwoClassesNamesTheThreshold) {
  const std::string run = seeds() + "/seed-5";
  const Json report = parse_json(read_file(run + "/report.json")),
             result = parse_json(read_file(run + "/result.json"));
  char threshold[16];
  std::snprintf(threshold, sizeof threshold, "%.3f", result["threshold"].get<double>());
  const std::string note =
      message("'", data_.head.classes[1], "' is predicted from a probability of ", threshold, " on.");
  EXPECT_EQ(report["confusion"]["note"], note);
  EXPECT_EQ(report["classes"]["note"], note);
}

}  // namespace
}  // namespace fastweights

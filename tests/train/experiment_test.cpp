#include "fastweights/train.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;

const Settings kSmall = {{"model.hidden_size", "8"}, {"training.epochs", "2"}, {"training.batch_size", "8"}};

class Experiment : public ::testing::Test {
 protected:
  // the folder of a finished run
  std::string trained() {
    const RunSetup setup = {.model = "delta-ode", .preset = "small", .settings = {{"training.epochs", "2"}}};
    train_run(make_run(setup, data_), {.folder = folder_.path("run")});
    return folder_.path("run");
  }

  TestFolder folder_;
  DataSet data_ = two_classes(24);
};

TEST_F(Experiment, FoldsWithoutAFingerprintAreAnErrorThatNamesTheFile) {
  const std::string path = folder_.file(
      "broken/folds.json",
      R"({"folds": 2, "model": "gru", "settings": {"training": {"epochs": 2}}, "from": "", "data": {}})");
  EXPECT_EQ(refusal([&] { read_runs(folder_.path("broken")); }).rfind(path + ": ", 0), 0u);
}

TEST_F(Experiment, DeepJsonOfFoldsIsAnErrorThatNamesTheFile) {
  const std::string deep = "[config] objects and lists are nested deeper than 8 levels";
  std::string objects;
  for (int i = 0; i < 40'000; ++i) objects += R"({"a":)";
  const std::string settings =
      R"({"folds": 2, "model": "gru", "settings": )" + objects + "1" + std::string(40'001, '}');
  for (const std::string& text : {std::string(100'000, '['), settings}) {
    const std::string path = folder_.file("broken/folds.json", text);
    EXPECT_EQ(refusal([&] { read_runs(folder_.path("broken")); }), path + ": " + deep);
  }
}

TEST_F(Experiment, ComparedModelsShareOneSplitAndOneScaling) {
  CompareOptions options = {
      .folder = folder_.path("compared"), .models = {"gru", "delta-ode"}, .setup = {.settings = kSmall}};
  options.setup.settings[0] = {"model.hidden_size", "16"};
  std::vector<Tensor> values;
  options.train = [&](const fastweights::Run& run, const RunOptions& one) {
    values.push_back(run.data.train.values);
    return train_run(run, one);
  };
  const Comparison comparison = compare(options, data_);
  ASSERT_EQ(comparison.models.size(), 2u);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_TRUE(values[0].is_same(values[1]));
  EXPECT_EQ(comparison.models[0].model, "gru");
  EXPECT_EQ(comparison.models[0].part.name, "test");
  EXPECT_EQ(parse_json(to_json(comparison)), parse_json(read_file(folder_.path("compared/comparison.json"))));
  EXPECT_EQ(markdown_table(comparison), read_file(folder_.path("compared/comparison.md")));
  // finished runs are not repeated
  compare(options, data_);
  EXPECT_EQ(values.size(), 2u);
  // one that was killed before its last file is completed
  std::filesystem::remove(folder_.path("compared/gru/model_card.md"));
  EXPECT_EQ(to_json(compare(options, data_)), to_json(comparison));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("compared/gru/model_card.md")));
}

TEST_F(Experiment, AModelThatFailsIsInTheTable) {
  CompareOptions options = {
      .folder = folder_.path("compared"), .models = {"gru", "lstm"}, .setup = {.settings = kSmall}};
  options.train = [](const fastweights::Run& run, const RunOptions& one) {
    if (one.folder.ends_with("gru")) throw std::runtime_error("out of memory");
    return train_run(run, one);
  };
  const Comparison comparison = compare(options, data_);
  ASSERT_EQ(comparison.models.size(), 2u);
  EXPECT_EQ(comparison.models[0].failure, "failed: out of memory");
  EXPECT_EQ(comparison.models[1].failure, "");
  EXPECT_NE(markdown_table(comparison).find("| gru | failed: out of memory |"), std::string::npos);
}

TEST_F(Experiment, ComparedSeedsHaveMeanAndDeviation) {
  CompareOptions options = {.folder = folder_.path("compared"),
                            .models = {"gru", "delta-ode"},
                            .setup = {.settings = kSmall},
                            .seeds = {3, 4}};
  options.setup.settings[0] = {"model.hidden_size", "16"};
  const Comparison comparison = compare(options, data_);
  ASSERT_EQ(comparison.models.size(), 2u);
  const auto loss_of = [&](const char* run) {
    const Json result =
        parse_json(read_file(folder_.path(std::string("compared/gru/") + run + "/result.json")));
    return result["test"]["log_loss"].get<double>();
  };
  const double a = loss_of("seed-3"), b = loss_of("seed-4"), mean = (a + b) / 2;
  const ComparedModel& row = comparison.models[0];
  EXPECT_NEAR(metric(row.part.metrics, "log_loss"), mean, 1e-12);
  EXPECT_NEAR(metric(row.deviations, "log_loss"), std::abs(a - b) / std::sqrt(2.0), 1e-12);
  char cell[64];
  std::snprintf(cell, sizeof cell, "| %.4f (%.4f) |", mean, std::abs(a - b) / std::sqrt(2.0));
  EXPECT_NE(markdown_table(comparison).find(cell), std::string::npos) << markdown_table(comparison);
  // finished runs are not repeated, and other seeds are another comparison
  options.train = [](const fastweights::Run&, const RunOptions&) -> RunResult {
    throw std::runtime_error("trained again");
  };
  EXPECT_EQ(to_json(compare(options, data_)), to_json(comparison));
  for (const std::vector<int64_t>& seeds : {std::vector<int64_t>{3, 5}, std::vector<int64_t>{}}) {
    options.seeds = seeds;
    EXPECT_NE(error_message([&] { compare(options, data_); }).find("has runs with other seeds"),
              std::string::npos);
  }
}

TEST_F(Experiment, PresetsSetTheSizesThatAModelHas) {
  const auto keys = [](const char* preset, const char* model) {
    std::string text;
    for (const auto& [key, value] : preset_settings(preset, model)) text += key + "=" + value + " ";
    return text;
  };
  EXPECT_EQ(keys("small", "delta-cde"), "model.hidden_size=32 model.heads=8 model.feed_forward_size=64 ");
  EXPECT_EQ(keys("large", "gru"), "model.hidden_size=128 ");
  EXPECT_EQ(keys("standard", "gru"), "");
  EXPECT_EQ(error_message([&] { keys("smal", "gru"); }),
            "unknown preset 'smal'; expected one of small, standard, large");
}

TEST_F(Experiment, ASummaryNamesWhatTheArchitectureHas) {
  const auto has = [](const char* model, const std::string& key) {
    for (const auto& [name, value] : model_summary(named_model(model, {.channels = 2}))) {
      if (name == key) return true;
    }
    return false;
  };
  EXPECT_TRUE(has("delta-cde", "rule"));
  EXPECT_FALSE(has("gru", "rule"));
  EXPECT_FALSE(has("gru", "heads"));
  EXPECT_TRUE(has("gru", "hidden size"));
}

TEST_F(Experiment, EffectiveRankCountsDirections) {
  EXPECT_NEAR(effective_rank(at::eye(5, at::kDouble)), 5, 1e-12);
  const Tensor u = at::arange(1, 4, at::kDouble);
  EXPECT_NEAR(effective_rank(at::outer(u, u)), 1, 1e-12);
  EXPECT_EQ(effective_rank(at::zeros({3, 3}, at::kDouble)), 0);
}

TEST_F(Experiment, TheReportOfTheFolderIsThatOfTheRun) {
  const std::string path = trained(), before = read_file(path + "/report.json");
  write_report(path, data_);
  const auto without_time = [](const std::string& text) {
    Json json = Json::parse(text);
    json.erase("finished");
    return json.dump();
  };
  EXPECT_EQ(without_time(read_file(path + "/report.json")), without_time(before));
}

TEST_F(Experiment, AReportHasTheKeysAndLengthsThatThePageReads) {
  const Json report = Json::parse(read_file(trained() + "/report.json"));
  for (const char* key :
       {"version", "title", "subtitle", "finished", "facts", "headline", "curves", "metrics", "confusion",
        "roc", "calibration", "mistakes", "model", "fast_weights", "commands"})
    EXPECT_TRUE(report.contains(key)) << key;
  for (const Json& curve : report["curves"]) {
    for (const Json& line : curve["lines"]) EXPECT_EQ(line["x"].size(), line["y"].size());
  }
  for (const Json& row : report["metrics"]["rows"])
    EXPECT_EQ(row["values"].size(), report["metrics"]["columns"].size());
  EXPECT_EQ(report["roc"]["true_positive"].size(), report["roc"]["false_positive"].size());
  EXPECT_EQ(report["calibration"]["count"].size(), report["calibration"]["predicted"].size());
  const Json& view = report["fast_weights"];
  EXPECT_EQ(view["values"].size(), view["times"].size());
  EXPECT_EQ(view["outputs"]["values"].size(), view["outputs"]["times"].size());
  EXPECT_EQ(view["norms"]["values"].size(), view["frames"]["times"].size());
  for (const Json& layer : view["frames"]["layers"]) {
    EXPECT_EQ(layer["w"].size(), view["frames"]["times"].size());
    const auto size =
        layer["heads"].get<size_t>() * layer["rows"].get<size_t>() * layer["columns"].get<size_t>();
    for (const Json& frame : layer["w"]) EXPECT_EQ(frame.size(), size);
  }
}

TEST_F(Experiment, TheLogHasTheSecondsOfEachPhase) {
  const std::string log = read_file(trained() + "/log.txt");
  size_t at = 0;
  for (const char* phase :
       {"splitting and scaling", "model", "epochs", "final predictions", "saving", "report"}) {
    at = log.find(std::string("  ") + phase + ": ", at);
    ASSERT_NE(at, std::string::npos) << phase << " in\n" << log;
  }
}

}  // namespace
}  // namespace fastweights

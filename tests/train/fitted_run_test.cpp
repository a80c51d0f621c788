#include <cmath>

#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/fit.h"
#include "train/train_cases.h"

/// Runs of models that are fitted at once, and what compare() and reports say about them.

namespace fastweights {
namespace {

using testing::error_message;

class FittedRun : public ::testing::Test {
 protected:
  fastweights::Run run_of(const std::string& model, Settings settings = {}) {
    return make_run({.model = model, .settings = std::move(settings)}, data_);
  }

  TestFolder folder_;
  DataSet data_ = two_classes(40);
};

TEST_F(FittedRun, HaveOneEpochAndPredictAsBefore) {
  for (const std::string name : {"minirocket", "1nn-dtw", "1nn-ed"}) {
    const std::string folder = folder_.path(name);
    const RunResult result = train_run(run_of(name, {{"training.epochs", "7"}}), {.folder = folder});
    ASSERT_EQ(result.end, RunEnd::Finished);
    EXPECT_EQ(result.epochs.size(), 1u);
    EXPECT_EQ(result.best_epoch, 1);
    // rising and falling series
    EXPECT_GT(metric(result.parts.back().metrics, "accuracy"), 0.8) << name;
    const Evaluation again =
        evaluate(load_trained(folder), select_series(data_, run_of(name).data.split.test));
    EXPECT_NEAR(metric(again.metrics, "log_loss"), metric(result.parts.back().metrics, "log_loss"), 1e-9);
    // nothing is left to do
    const NamedTensors before = load_safetensors(folder + "/model.safetensors");
    train_run(open_run(folder, data_), {.folder = folder, .start = RunStart::Resume});
    EXPECT_TRUE(same_bits(before, load_safetensors(folder + "/model.safetensors"))) << name;
  }
}

TEST_F(FittedRun, HeadsAreAnOption) {
  const Settings logistic = {{"model.linear_head", "logistic"}};
  const RunResult result = train_run(run_of("minirocket", logistic), {.folder = folder_.path("logistic")});
  EXPECT_GT(metric(result.parts.back().metrics, "accuracy"), 0.8);
  EXPECT_LT(metric(result.parts.back().metrics, "log_loss"), std::log(2));
}

TEST_F(FittedRun, ForecastAndImputeWithoutParameters) {
  for (const char* task : {"forecast", "imputation"}) {
    for (const std::string name : {"naive", "seasonal-naive", "linear-interpolation", "drift"}) {
      const std::string folder = folder_.path(task + name);
      const RunResult result = train_run(run_of(name, {{"task.kind", task}}), {.folder = folder});
      ASSERT_EQ(result.end, RunEnd::Finished) << name;
      EXPECT_TRUE(std::isfinite(metric(result.parts.back().metrics, "mse"))) << name;
      const TrainedModel trained = load_trained(folder);
      EXPECT_EQ(trained.model.parameter_count(), name == "seasonal-naive" ? 1 : 0);
      EXPECT_TRUE(at::isfinite(trained.predict(data_).outputs).all().item<bool>());
    }
  }
}

TEST_F(FittedRun, TimesAreThoseOfTheData) {
  EXPECT_EQ(run_of("naive", {{"task.kind", "imputation"}}).data.preparation.usual_gap, 0);
  EXPECT_GT(run_of("gru", {{"task.kind", "imputation"}}).data.preparation.usual_gap, 0);
}

TEST_F(FittedRun, TasksThatAModelDoesNotServeAreRefused) {
  EXPECT_NE(
      error_message([&] { run_of("drift"); }).find("model drift does not serve the task classification"),
      std::string::npos);
  EXPECT_NE(error_message([&] {
              run_of("1nn-dtw", {{"task.kind", "forecast"}});
            }).find("these do: delta-cde"),
            std::string::npos);
  EXPECT_NE(error_message([&] {
              run_of("minirocket", {{"model.hidden_size", "8"}});
            }).find("would not be used"),
            std::string::npos);
}

TEST_F(FittedRun, AreRankedByValidation) {
  const CompareOptions options = {
      .folder = folder_.path("compared"),
      .models = {"1nn-ed", "gru", "minirocket"},
      .setup = {.settings = {{"model.hidden_size", "4"}, {"training.epochs", "1"}}}};
  const Comparison comparison = compare(options, data_);
  EXPECT_EQ(comparison.metric, "auroc");
  ASSERT_EQ(comparison.models.size(), 3u);
  for (const ComparedModel& row : comparison.models) {
    ASSERT_TRUE(row.validation) << row.model << row.failure;
    EXPECT_EQ(row.part.name, "test");
    const auto score = [](const ComparedModel& r) {
      return std::make_pair(metric(r.validation->metrics, "auroc"),
                            -metric(r.validation->metrics, "log_loss"));
    };
    int64_t better = 0;
    for (const ComparedModel& other : comparison.models) better += score(other) > score(row) ? 1 : 0;
    EXPECT_EQ(row.rank, better + 1) << row.model;
  }
  const Json json = parse_json(to_json(comparison));
  EXPECT_EQ(json[0]["model"], "1nn-ed");
  EXPECT_TRUE(json[0]["validation"].contains("accuracy"));
  // the table begins with the best
  const std::string table = markdown_table(comparison);
  EXPECT_NE(table.find("| validation auroc | test accuracy |"), std::string::npos) << table;
  for (const ComparedModel& row : comparison.models) {
    if (row.rank != 1) continue;
    EXPECT_NE(table.find("---|\n| " + row.model + " |"), std::string::npos) << table;
  }
}

TEST_F(FittedRun, TablesOfForecastsShowMase) {
  const CompareOptions options = {
      .folder = folder_.path("forecasts"),
      .models = {"naive", "drift"},
      .setup = {.settings = {{"task.kind", "forecast"}, {"training.metric", "mae"}}}};
  const Comparison comparison = compare(options, data_);
  const std::string table = markdown_table(comparison);
  EXPECT_NE(table.find("| validation mae | test mse | test mase |"), std::string::npos) << table;
  // errors are no percentages
  EXPECT_EQ(table.find("%"), std::string::npos) << table;
  for (const ComparedModel& row : comparison.models) {
    char cell[32];
    std::snprintf(cell, sizeof cell, "| %.4f |", metric(row.part.metrics, "mase"));
    EXPECT_NE(table.find(cell), std::string::npos) << table;
  }
}

Json report_of(const std::string& folder) { return parse_json(read_file(folder + "/report.json")); }

TEST_F(FittedRun, ReportsHaveAReference) {
  const auto lines = [&](const std::string& name, const Settings& settings) {
    const std::string folder = folder_.path("report-" + name + std::to_string(settings.size()));
    Settings all = settings;
    if (name == "gru") all.insert(all.end(), {{"training.epochs", "1"}, {"model.hidden_size", "4"}});
    const RunResult result = train_run(run_of(name, all), {.folder = folder});
    return report_of(folder).value("references", Json::array());
  };
  const RunResult neighbour = train_run(run_of("1nn-dtw"), {.folder = folder_.path("neighbour")});
  char accuracy[32];
  std::snprintf(accuracy, sizeof accuracy, "%.1f %%",
                100 * metric(neighbour.parts.back().metrics, "accuracy"));
  const Json classes = lines("gru", {});
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0], std::string("A nearest neighbour (1nn-dtw) reaches an accuracy of ") + accuracy +
                            " on the test part.");
  // not next to itself
  EXPECT_FALSE(report_of(folder_.path("neighbour")).contains("references"));
  const Json forecast = lines("gru", {{"task.kind", "forecast"}});
  ASSERT_EQ(forecast.size(), 2u);
  EXPECT_EQ(forecast[0].get<std::string>().rfind(
                "Repeating the last value (naive) reaches a mean squared error of", 0),
            0u);
  const Json imputation = lines("gru", {{"task.kind", "imputation"}, {"task.hidden", "0.3"}});
  ASSERT_EQ(imputation.size(), 2u);
  EXPECT_NE(imputation[1].get<std::string>().find("(linear-interpolation)"), std::string::npos);
}

}  // namespace
}  // namespace fastweights

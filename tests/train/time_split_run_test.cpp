#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/run_split.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;

// series of two channels with a season of 12, and labels of rows that tell the sign of the first
DataSet long_series(int64_t series, int64_t rows) {
  std::vector<Series> all;
  for (int64_t b = 0; b < series; ++b) {
    Series s = {.id = message("s", b)};
    for (int64_t i = 0; i < rows; ++i) {
      const double t = static_cast<double>(i) + 0.3 * static_cast<double>(i % 3), x = std::sin(t / 1.9);
      s.times.push_back(t);
      s.values.insert(s.values.end(), {10 + x, i % 7 == 0 ? kMissing : std::cos(t / 1.9) * t / 50});
      s.step_labels.push_back(x > 0 ? "up" : "down");
    }
    all.push_back(std::move(s));
  }
  return collect_series({.name = "long", .channels = {"x", "y"}}, all);
}

class TimeSplitRun : public ::testing::Test {
 protected:
  static RunSetup setup(const std::string& task, Settings more = {}) {
    RunSetup out = {.model = "gru",
                    .settings = {{"model.hidden_size", "8"},
                                 {"training.epochs", "2"},
                                 {"training.batch_size", "8"},
                                 {"task.kind", task}}};
    out.settings.insert(out.settings.end(), more.begin(), more.end());
    return out;
  }
  RunResult train(const fastweights::Run& run, std::string* notes = nullptr) {
    RunOptions options = {.folder = folder_.path("run")};
    options.events.note = [&](const std::string& line) {
      if (notes) *notes += line + "\n";
    };
    return train_run(run, options);
  }
  static std::vector<double> numbers(const Tensor& x) {
    return {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()};
  }

  TestFolder folder_;
  DataSet data_ = long_series(1, 240);
};

TEST_F(TimeSplitRun, OneLongSeriesIsDividedByTime) {
  for (const std::string task : {"forecast", "step_classification", "imputation"}) {
    const fastweights::Run run = make_run(setup(task), data_);
    EXPECT_EQ(run.data.split.rule, SplitRule::Time) << task;
    EXPECT_GE(run.data.validation.samples(), 5) << task;
    EXPECT_GE(run.data.test.samples(), 5) << task;
    // nothing is left to decide when it is read again
    EXPECT_EQ(run.config.split.rule, SplitRule::Time);
    EXPECT_GT(run.config.split.window, 0);
    EXPECT_EQ(to_json(make_run(run.config, data_).config), to_json(run.config));
    EXPECT_EQ(run.data.preparation.window, run.config.split.window);
    const double first_test = run.data.test.times[0].item<double>();
    EXPECT_LT(run.data.validation.times.max().item<double>(), first_test);
    EXPECT_LT(run.data.train.times.max().item<double>(), run.data.validation.times[0].item<double>());
  }
}

TEST_F(TimeSplitRun, HorizonAndWindowFollowTheSettings) {
  const auto sizes = [&](const std::string& task, Settings settings) {
    const RunConfig config = make_run(setup(task, std::move(settings)), data_).config;
    return std::vector<double>{static_cast<double>(config.split.window),
                               static_cast<double>(config.split.stride), config.task.horizon};
  };
  using Sizes = std::vector<double>;
  // parts of 36 rows, twelve windows that are a quarter apart: 36 / (1 + 11 / 4)
  EXPECT_EQ(sizes("forecast", {}), (Sizes{9, 2, 2}));
  EXPECT_EQ(sizes("forecast", {{"split.window", "20"}}), (Sizes{20, 5, 5}));
  EXPECT_EQ(sizes("forecast", {{"task.horizon", "6"}}), (Sizes{24, 6, 6}));
  EXPECT_EQ(sizes("forecast", {{"task.horizon", "20"}}), (Sizes{36, 20, 20}));
  EXPECT_EQ(sizes("forecast", {{"split.window", "20"}, {"split.stride", "1"}}), (Sizes{20, 1, 5}));
  // twelve windows of three rows would be too short
  EXPECT_EQ(sizes("step_classification", {}), (Sizes{8, 8, 0.25}));
  EXPECT_EQ(sizes("imputation", {{"split.window", "12"}}), (Sizes{12, 12, 0.25}));
  EXPECT_EQ(error_message([&] {
              sizes("forecast", {{"task.horizon", "40"}});
            }),
            "[split] a window of 36 rows has none left before a horizon of 40 rows: there are too few rows, "
            "or split.window is too small, or task.horizon too large");
  EXPECT_EQ(error_message([&] {
              make_run(setup("classification", {{"split.rule", "time"}}), two_classes(24));
            }),
            "[split] the rule time divides the rows of series, and the task classification predicts series "
            "as a whole; choose another split");
}

TEST_F(TimeSplitRun, EnoughSeriesAreDividedBySeries) {
  for (const int64_t series : {4, 24}) {
    const fastweights::Run run = make_run(setup("forecast"), long_series(series, 60));
    EXPECT_EQ(run.data.split.rule, SplitRule::Random) << series;
    EXPECT_TRUE(run.data.split.windows.empty());
    EXPECT_EQ(run.data.split_note, "");
    EXPECT_EQ(run.config.task.horizon, 0.25);
    EXPECT_EQ(run.data.preparation.window, 0);
  }
  // nor is anything decided that the settings say
  for (const Settings& given :
       {Settings{{"split.rule", "random"}}, Settings{{"split.validation", "0"}, {"split.test", "0"}}})
    EXPECT_TRUE(make_run(setup("forecast", given), data_).data.split.windows.empty());
  DataSet labelled = two_classes(2);
  EXPECT_TRUE(make_run(setup("classification"), labelled).data.split.windows.empty());
}

TEST_F(TimeSplitRun, FewLongSeriesAreToldOfTheRule) {
  const fastweights::Run run = make_run(setup("forecast"), long_series(6, 500));
  EXPECT_EQ(run.data.split.rule, SplitRule::Random);
  EXPECT_EQ(run.data.split_note,
            "the 6 series are divided by series, so few are left to train on and to judge by; --split time "
            "divides each of them along its time");
  EXPECT_EQ(make_run(setup("forecast"), long_series(24, 500)).data.split_note, "");
  EXPECT_EQ(make_run(setup("forecast", {{"split.rule", "random"}}), long_series(6, 500)).data.split_note, "");
}

TEST_F(TimeSplitRun, SaysWhatItDid) {
  std::string notes;
  train(make_run(setup("forecast", {{"split.window", "12"}, {"split.gap", "2"}}), data_), &notes);
  // tests are the last 36 rows, 204 to 239, validation 36 rows before the gap, training 0 to 163
  EXPECT_NE(
      notes.find(
          "split by time, since 1 series is too few to divide by series (--split chooses another "
          "rule): windows of 12 rows, of which the last 3 are forecast; 51 for training (2.6 to 163.3), "
          "9 for validation (166.3 to 201), 9 for the test (204 to 239.6); 2 rows left out between\n"),
      std::string::npos)
      << notes;
}

TEST_F(TimeSplitRun, SaysWhatIsMissing) {
  data_ = long_series(2, 40);
  std::string notes;
  const RunResult result = train(make_run(setup("forecast"), data_), &notes);
  EXPECT_EQ(result.parts.size(), 1u);
  // 15 % of 50 rows round to 8
  EXPECT_NE(notes.find("2 series are too few to divide by series, and 40 rows are too few to divide by time, "
                       "which takes 50 rows; a smaller split.window takes fewer\n"),
            std::string::npos)
      << notes;
  EXPECT_EQ(make_run(setup("forecast"), long_series(2, 49)).data.split.rule, SplitRule::Random);
  EXPECT_EQ(make_run(setup("forecast"), long_series(2, 50)).data.split.rule, SplitRule::Time);
  EXPECT_EQ(make_run(setup("forecast", {{"split.window", "4"}}), data_).data.split.rule, SplitRule::Time);
  EXPECT_EQ(
      error_message([&] {
        make_run(setup("forecast", {{"split.rule", "time"}}), data_);
      }),
      "[split] the series are too short for the rule time: a part has 6 rows, and a window at least 8; set "
      "split.window to take fewer");
}

// what comes later changes neither scales nor gaps, seasons or first guesses
TEST_F(TimeSplitRun, PreparationKnowsTheTrainingWindowsAlone) {
  const fastweights::Run run = make_run(setup("forecast"), data_);
  const double last = run.data.train.times.max().item<double>();
  DataSet other = data_;
  for (size_t i = 0; i < other.times.size(); ++i) {
    if (other.times[i] <= last) continue;
    other.values[2 * i] = 1000 * std::cos(static_cast<double>(i * i));
    other.times[i] = last + 7 * (other.times[i] - last);
  }
  const fastweights::Run changed = make_run(setup("forecast"), other);
  const Preparation &a = run.data.preparation, &b = changed.data.preparation;
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_EQ(a.channel_scales[c].mean, b.channel_scales[c].mean);
    EXPECT_EQ(a.channel_scales[c].deviation, b.channel_scales[c].deviation);
  }
  EXPECT_EQ(a.median_gap, b.median_gap);
  EXPECT_EQ(a.usual_gap, b.usual_gap);
  EXPECT_EQ(a.season, b.season);
  EXPECT_EQ(a.guesses, b.guesses);
  EXPECT_EQ(a.naive_errors, b.naive_errors);
  EXPECT_TRUE(equal_with_nan(run.data.train.values, changed.data.train.values));
  EXPECT_FALSE(equal_with_nan(run.data.test.values, changed.data.test.values));
}

TEST_F(TimeSplitRun, EvaluationSeesTheWindowsOfTraining) {
  for (const std::string task : {"forecast", "step_classification"}) {
    TestFolder folder;
    const fastweights::Run run = make_run(setup(task), data_);
    const RunResult result = train_run(run, {.folder = folder.path("run")});
    const TrainedModel trained = load_trained(folder.path("run"));
    EXPECT_EQ(trained.preparation.window, run.config.split.window);
    for (const PartResult& part : result.parts) {
      const PartSamples chosen = choose_part(folder.path("run"), data_, "", part.name);
      const DataSet series = series_of(data_, chosen);
      EXPECT_EQ(series.samples(), part.samples);
      if (part.name == "test") {
        EXPECT_EQ(series.ids, run.data.test.ids);
      }
      const Evaluation again = evaluate(trained, series);
      const std::string name = task == "forecast" ? "mse" : "log_loss";
      // batches of another size round otherwise
      EXPECT_NEAR(metric(again.metrics, name), metric(part.metrics, name), 1e-6) << task;
    }
    EXPECT_EQ(choose_part(folder.path("run"), data_, "", "all").windows.size(),
              run.data.split.windows.size());
    // a resumed run divides the data alike
    EXPECT_EQ(open_run(folder.path("run"), data_).data.test.ids, run.data.test.ids);
    std::string text = read_file(folder.path("run/config.json"));
    const std::string window = message("\"window\": ", run.config.split.window);
    text.replace(text.find(window), window.size(), "\"window\": 10");
    folder.file("run/config.json", text);
    EXPECT_NE(refusal([&] { open_run(folder.path("run"), data_); }).find("the split has changed since"),
              std::string::npos);
  }
}

// a model of windows reads the end of a series, whatever precedes it
TEST_F(TimeSplitRun, ForecastsReadTheLastWindow) {
  const fastweights::Run run = make_run(setup("forecast", {{"split.window", "20"}}), data_);
  train(run);
  const TrainedModel trained = load_trained(folder_.path("run"));
  const auto future = [&](const DataSet& data, int64_t rows) {
    return trained.predict(with_future(data, trained.task, trained.preparation, rows),
                           {.targets = Targets::Missing});
  };
  const int64_t rows = data_.rows();
  for (const int64_t ahead : {0, 3, 30}) {
    const Predictions whole = future(data_, ahead),
                      end = future(cut_series(data_, {{0, rows - 15, rows}}), ahead);
    EXPECT_EQ(whole.outputs.size(0), ahead == 0 ? 5 : ahead);
    EXPECT_TRUE(at::equal(whole.outputs, end.outputs)) << ahead;
    EXPECT_TRUE(at::equal(whole.times, end.times));
    EXPECT_TRUE(at::equal(whole.half_widths, end.half_widths));
    EXPECT_FALSE(at::equal(whole.outputs, future(cut_series(data_, {{0, rows - 14, rows}}), ahead).outputs));
  }
  // what is held out of a whole series is its last horizon
  const Predictions held_out = trained.predict(data_),
                    end = trained.predict(cut_series(data_, {{0, rows - 20, rows}}));
  EXPECT_EQ(held_out.outputs.size(0), 5);
  EXPECT_TRUE(at::equal(held_out.outputs, end.outputs));
}

TEST_F(TimeSplitRun, LabelsOfAllRowsArePredictedInWindows) {
  // a calibrated model that has learned little predicts the same everywhere
  train(make_run(setup("step_classification", {{"training.calibration", "none"}}), data_));
  const TrainedModel trained = load_trained(folder_.path("run"));
  data_ = join_data(data_, long_series(1, 5));
  const Predictions p = trained.predict(data_);
  EXPECT_EQ(numbers(p.times), data_.times);
  EXPECT_EQ(p.samples.sum().item<int64_t>(), 5);
  // 240 rows are 30 windows of 8
  const Predictions one = trained.predict(cut_series(data_, {{0, 16, 24}}));
  EXPECT_TRUE(at::allclose(p.outputs.slice(0, 16, 24), one.outputs, 0, 1e-6));
  // what precedes a row matters
  const Predictions other = trained.predict(cut_series(data_, {{0, 17, 24}}));
  EXPECT_FALSE(at::allclose(p.outputs.slice(0, 17, 24), other.outputs, 0, 1e-6));
}

TEST_F(TimeSplitRun, FoldsRollTheOrigin) {
  for (const std::string task : {"forecast", "step_classification"}) {
    RunsOptions options = {.folder = folder_.path(task), .folds = 3, .setup = setup(task)};
    const RunsResult result = train_runs(options, data_);
    const RunsPart& test = result.parts.back();
    ASSERT_EQ(test.runs.size(), 3u);
    int64_t windows = 0;
    double sum = 0;
    const std::string name = task == "forecast" ? "mse" : "accuracy";
    for (const PartResult& run : test.runs) windows += run.samples;
    EXPECT_EQ(test.together.samples, windows);
    const PartSamples part = choose_part(options.folder, data_, "", "test");
    EXPECT_EQ(part.name, "out-of-fold");
    const DataSet series = series_of(data_, part);
    const TrainedModel all = load_trained(options.folder);
    const Predictions p = all.predict(series, {.members = part.members});
    // each row that is tested is predicted once, in the order of the data
    const std::vector<double> times = numbers(p.times);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end(), std::less_equal<>()));
    if (task == "step_classification") {
      EXPECT_EQ(times, std::vector<double>(data_.times.begin() + 60, data_.times.end()));
    }
    // by the model that was trained on the rows before it
    for (int64_t fold = 0; fold < 3; ++fold) {
      const std::string folder = message(options.folder, "/fold-", fold + 1);
      const fastweights::Run run = open_run(folder, data_);
      EXPECT_EQ(run.config.split.rule, SplitRule::Rolling);
      EXPECT_EQ(run.config.split.window, all.preparation.window);
      const TrainedModel one = load_trained(folder);
      for (size_t i = 0; i < part.members.size(); ++i) {
        if (part.members[i] != fold) continue;
        EXPECT_GE(part.windows[i].first, 60 * (fold + 1));
        EXPECT_LT(run.data.validation.times.max().item<double>(),
                  data_.times[static_cast<size_t>(part.windows[i].first)]);
      }
      sum += metric(test.runs[static_cast<size_t>(fold)].metrics, name);
      EXPECT_EQ(one.task.horizon, all.task.horizon);
    }
    // tests of equal size: the mean over all rows is the mean over folds, if all have one scale
    if (name == "accuracy") {
      EXPECT_NEAR(metric(test.together.metrics, name), sum / 3, 1e-12);
    }
    EXPECT_TRUE(out_of_fold_members(options.folder, data_).empty());
    // nothing else is read from the settings of a set that is opened again
    EXPECT_EQ(read_runs(options.folder)->folds, 3);
    EXPECT_EQ(error_message([&] { choose_part(options.folder, data_, "", "train"); }),
              "the folds of " + options.folder +
                  " have different train parts; evaluate one of them, such as " + options.folder + "/fold-1");
  }
  RunsOptions short_one = {.folder = folder_.path("short"), .folds = 3, .setup = setup("forecast")};
  EXPECT_EQ(error_message([&] { train_runs(short_one, long_series(1, 12)); }).rfind("[split] ", 0), 0u);
  EXPECT_FALSE(std::filesystem::exists(short_one.folder));
}

}  // namespace
}  // namespace fastweights

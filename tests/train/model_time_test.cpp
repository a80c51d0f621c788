#include "train/model_time.h"

#include <cmath>

#include "base/json_fields.h"
#include "data/data_support.h"
#include "data/model_time.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::relative_error;

constexpr TaskConfig kClasses = {.kind = TaskKind::Classification};

// series of one channel, with labels
DataSet labelled(const std::vector<Series>& all) {
  return collect_series({.name = "set", .channels = {"x"}, .classes = {"a", "b"}}, all);
}

Preparation with_usual_gap(const DataSet& data, double gap) {
  Preparation p = fit_preparation(data);
  p.usual_gap = gap;
  return p;
}

Tensor times_of(const DataSet& data, const Preparation& p, const TaskConfig& task = kClasses) {
  std::vector<int64_t> all(static_cast<size_t>(data.samples()));
  for (size_t b = 0; b < all.size(); ++b) all[b] = static_cast<int64_t>(b);
  return make_batch(prepare(data, p), p, task, all, 1).input.series.times;
}

TEST(ModelTimes, AnEmptyRowInAGapChangesNoOtherRow) {
  const DataSet plain = labelled({{.times = {0, 1, 21, 22}, .values = {1, 2, 3, 4}, .label = "a"}}),
                filled = labelled({{.times = {0, 1, 3, 9, 21, 22},
                                    .values = {1, 2, kMissing, kMissing, 3, 4},
                                    .label = "a"}});
  const Preparation p = with_usual_gap(plain, 2);
  const Tensor expected = at::tensor({0.0, 1.0, 1 + 4 - 4.0 / 20, 2 + 4 - 4.0 / 20}, at::kDouble);
  EXPECT_LT(relative_error(times_of(plain, p), expected), 1e-15);
  const Tensor got = times_of(filled, p);
  EXPECT_TRUE(at::equal(got.index_select(0, at::tensor({0, 1, 4, 5}, at::kLong)), times_of(plain, p)));
  EXPECT_DOUBLE_EQ(got[2].item<double>(), 3);
  EXPECT_DOUBLE_EQ(got[3].item<double>(), 1 + 4 - 4.0 / 8);
  // the time channel agrees
  const Batch batch = make_batch(prepare(filled, p), p, kClasses, {0}, 1);
  EXPECT_LT(relative_error(batch.input.series.values.select(1, 0) * (p.median_gap * p.time_scale), got),
            1e-6);
  // an output at the end has the time of the data
  EXPECT_TRUE(at::equal(batch.times, at::tensor({22.0}, at::kDouble)));
}

TEST(ModelTimes, RowsStayApart) {
  std::vector<double> times = {5}, values = {1};
  for (int i = 0; i < 50; ++i) {
    times.push_back(1e17 + 1e3 * i);
    values.push_back(kMissing);
  }
  times.push_back(1e17 + 1e5);
  values.push_back(1);
  times.push_back(1e17 + 2e5);
  values.push_back(1);
  const DataSet data = labelled({{.times = times, .values = values, .label = "a"}});
  const Tensor got = times_of(data, with_usual_gap(data, 2));
  EXPECT_TRUE((got.slice(0, 1) > got.slice(0, 0, -1)).all().item<bool>());
  // by 1e-8 usual gaps each
  EXPECT_NEAR(got[-2].item<double>(), 9, 51 * 2e-8);
}

TEST(ModelTimes, WithoutLongGapsAreTheTimesBitByBit) {
  const DataSet data = two_classes(12);
  EXPECT_TRUE(at::equal(times_of(data, with_usual_gap(data, 1.5)), times_of(data, with_usual_gap(data, 0))));
  EXPECT_FALSE(at::equal(times_of(data, with_usual_gap(data, 0.9)), times_of(data, with_usual_gap(data, 0))));
}

TEST(ModelTimes, OutputsHaveTheTimesOfTheData) {
  const DataSet data = two_classes(16);
  for (const TaskKind kind : {TaskKind::Forecast, TaskKind::Imputation}) {
    const TaskConfig task = {.kind = kind};
    const auto batch = [&](double gap) {
      const Preparation p = with_usual_gap(data, gap);
      return make_batch(prepare(data, p), p, task, {3, 1, 12, 7, 0}, 1);
    };
    const Batch off = batch(0), on = batch(0.7);
    EXPECT_TRUE(at::equal(off.times, off.input.output_times->times));
    EXPECT_TRUE(at::equal(on.times, off.times));
    EXPECT_FALSE(at::equal(on.input.output_times->times, off.times));
    EXPECT_TRUE(at::equal(on.input.output_times->offsets, off.input.output_times->offsets));
  }
}

TEST(ModelTimes, LeadBackToTheData) {
  const DataSet data = labelled(
      {{.times = {2, 3, 9, 30, 31, 31.5}, .values = {1, 2, kMissing, 4, kMissing, 3}, .label = "a"}});
  const Preparation p = with_usual_gap(data, 1.5);
  const TaskRows series = task_rows(prepare(data, p), kClasses, {0}, 1, Targets::HeldOut);
  const Tensor model = model_times(series, p.usual_gap);
  EXPECT_TRUE(at::equal(data_times(model, series, p.usual_gap), series.times));
  // between rows, with an inverse slope of (27 / 1.5)^2 at most
  const Tensor between = at::linspace(model[0].item<double>(), model[-1].item<double>(), 41, at::kDouble);
  const Tensor found = data_times(between, series, p.usual_gap);
  EXPECT_TRUE((found.slice(0, 1) > found.slice(0, 0, -1)).all().item<bool>());
  data::ModelClock clock(3, p.usual_gap);
  for (int64_t k = 0; k < found.size(0); ++k) {
    const double t = found[k].item<double>();
    if (t < 3 || t > 30) continue;
    EXPECT_NEAR(clock.at(t), between[k].item<double>(), 1e-12) << t;
  }
}

// what training shows at outputs is usual
TEST(ModelTimes, AForecastOfRegularDataDoesNotSaturate) {
  std::vector<Series> all(20);
  for (size_t b = 0; b < all.size(); ++b) {
    for (int i = 0; i < 40; ++i) {
      all[b].times.push_back(i);
      all[b].values.push_back(std::sin(i + static_cast<double>(b)));
    }
  }
  const DataSet data = collect_series({.name = "set", .channels = {"x"}}, all);
  const TrainData forecast = train_data(data, {.kind = TaskKind::Forecast, .horizon = 0.25});
  EXPECT_EQ(fit_preparation(data).usual_gap, 2);
  EXPECT_EQ(forecast.preparation.usual_gap, 10);
  const Batch batch = make_batch(forecast.train, forecast.preparation, forecast.task, {0, 7}, 1);
  EXPECT_TRUE(at::equal(batch.input.output_times->times, batch.times));
  // the last observation is three rows or more back for 0.3^2 = 9 % of the rows, four or more for 2.7 %
  const TrainData imputation = train_data(data, {.kind = TaskKind::Imputation, .hidden = 0.3});
  EXPECT_EQ(imputation.preparation.usual_gap, 3);
  EXPECT_EQ(train_data(data, {.kind = TaskKind::Forecast}, {.usual_gaps = 0}).preparation.usual_gap, 0);
}

class GapRun : public ::testing::Test {
 protected:
  TrainedModel train(const std::string& name, Settings settings) {
    const Settings small = {
        {"model.hidden_size", "8"}, {"training.epochs", "3"}, {"training.batch_size", "4"}};
    settings.insert(settings.end(), small.begin(), small.end());
    RunEvents events;
    events.note = [&](const std::string& line) { notes_ += line + "\n"; };
    const RunResult result = train_run(make_run({.model = name, .settings = settings}, data_),
                                       {.folder = folder_.path(name), .events = events});
    EXPECT_EQ(result.end, RunEnd::Finished);
    return *result.trained;
  }
  TrainedModel exact(const Settings& more = {}) {
    Settings settings = {{"model.heads", "2"},
                         {"model.feed_forward_size", "8"},
                         {"model.control.kind", "hold"},
                         {"model.solver.method", "flow"}};
    settings.insert(settings.end(), more.begin(), more.end());
    return train("delta-ode", settings);
  }
  // the first series, its last three rows later by a gap
  DataSet with_gap(double gap) const {
    DataSet data = select_series(data_, {0});
    for (size_t i = data.times.size() - 3; i < data.times.size(); ++i) data.times[i] += gap;
    return data;
  }

  TestFolder folder_;
  std::string notes_;
  DataSet data_ = two_classes(24);
};

TEST_F(GapRun, PredictionsAfterLongGapsDoNotDependOnTheirLength) {
  for (const TrainedModel& trained : {exact(), train("gru", {})}) {
    const auto output = [&](double gap) { return trained.predict(with_gap(gap)).outputs; };
    EXPECT_LT(relative_error(output(1e6), output(1e9)), 1e-3);
    EXPECT_TRUE(output(1e9).isfinite().all().item<bool>());
    EXPECT_EQ(trained.predict(with_gap(1e9)).times.item<double>(), with_gap(1e9).times.back());
  }
  EXPECT_EQ(notes_.find("far longer"), std::string::npos);
}

// held values do not change in it, and the exact flow composes, up to rounding of float32
TEST_F(GapRun, AnEmptyRowChangesNoPrediction) {
  const TrainedModel trained = exact({{"prepare.time_channel", "false"}});
  const DataSet data = with_gap(50);
  DataSet more = data;
  const auto row = static_cast<int64_t>(data.times.size()) - 3;
  more.times.insert(more.times.begin() + row, data.times[static_cast<size_t>(row)] - 20);
  more.values.insert(more.values.begin() + 2 * row, 2, kMissing);
  more.offsets[1] += 1;
  EXPECT_LT(relative_error(trained.predict(more).outputs, trained.predict(data).outputs), 1e-5);
}

TEST_F(GapRun, LongGapsAreNoted) {
  const TrainedModel trained = exact();
  EXPECT_EQ(trained.predict(data_).note, "");
  const double usual = trained.preparation.usual_gap;
  DataSet data = data_;
  data.times[static_cast<size_t>(data.offsets[4]) - 1] += 1e6 * usual;
  EXPECT_EQ(trained.predict(data).note,
            "1 of 24 series have gaps far longer than usual in training (longest: 1e+06 times the usual "
            "gap, series 's3'); model time saturates there");
  TrainedModel plain = trained;
  plain.preparation.usual_gap = 0;
  EXPECT_EQ(plain.predict(data).note, "");
}

TEST_F(GapRun, TrainingWithAnEnormousGapIsNotedAndLearns) {
  data_.times[static_cast<size_t>(data_.offsets[4]) - 1] += 1e9;
  const TrainedModel trained =
      train("delta-cde", {{"model.heads", "2"}, {"model.feed_forward_size", "8"}, {"split.rule", "random"}});
  EXPECT_LT(trained.preparation.time_scale, 5);
  EXPECT_LT(trained.preparation.usual_gap, 2);
  EXPECT_NE(notes_.find("1 of 24 series have gaps far longer than usual in training (longest: "),
            std::string::npos)
      << notes_;
  EXPECT_NE(notes_.find("series 's3'); model time saturates there"), std::string::npos) << notes_;
  const Json report = parse_json(read_file(folder_.path("delta-cde/report.json")));
  EXPECT_NE(report.at("warnings").dump().find("model time saturates there"), std::string::npos);
}

TEST_F(GapRun, TheMethodIsNotedIfItsStepsAreLong) {
  const Settings small = {{"model.heads", "2"}, {"model.feed_forward_size", "8"}};
  Settings settings = small;
  settings.push_back({"model.solver.method", "rk4"});
  const TrainedModel trained = train("delta-ode", settings);
  const DataSet data = with_gap(1e6);
  const std::string warning = "; method rk4 may be inaccurate over long steps; see docs/time_and_gaps.md";
  const std::string note = trained.predict(data).note;
  ASSERT_GT(note.size(), warning.size());
  EXPECT_EQ(note.substr(note.size() - warning.size()), warning);
  for (const char* other : {"delta-cde", "delta-rde"})
    EXPECT_EQ(train(other, small).predict(data).note.find("method"), std::string::npos) << other;
}

TEST_F(GapRun, FilesKeepTheUsualGap) {
  const TrainedModel trained = exact();
  EXPECT_GT(trained.preparation.usual_gap, 1);
  const std::string path = folder_.path("delta-ode/model.safetensors");
  EXPECT_EQ(load_trained(path).preparation.usual_gap, trained.preparation.usual_gap);
  EXPECT_EQ(load_trained(path).preparation.config.usual_gaps, 0.95);
  // a file of an earlier version
  NamedTensors file = load_safetensors(path);
  Json preparation = parse_json(file.metadata["preparation"]);
  preparation.erase("usual_gap");
  preparation["config"].erase("usual_gaps");
  file.metadata["preparation"] = preparation.dump();
  save_safetensors(folder_.path("old.safetensors"), file);
  const Preparation old = load_trained(folder_.path("old.safetensors")).preparation;
  EXPECT_EQ(old.usual_gap, 0);
  EXPECT_EQ(old.config.usual_gaps, 0);
  // and a run of one, which is resumed as it began
  const std::string config = folder_.path("delta-ode/config.json");
  Json run = parse_json(read_file(config));
  EXPECT_EQ(read_run_config(folder_.path("delta-ode")).prepare.usual_gaps, 0.95);
  run["prepare"].erase("usual_gaps");
  replace_file(config, run.dump());
  EXPECT_EQ(read_run_config(folder_.path("delta-ode")).prepare.usual_gaps, 0);
  preparation["usual_gap"] = -1;
  file.metadata["preparation"] = preparation.dump();
  save_safetensors(folder_.path("bad.safetensors"), file);
  EXPECT_NE(refusal([&] { load_trained(folder_.path("bad.safetensors")); }).find("damaged"),
            std::string::npos);
}

// frames of a report and of inspect
TEST_F(GapRun, FastWeightsAreShownAtTimesOfTheData) {
  const TrainedModel trained = exact();
  const DataSet data = with_gap(1e6);
  const SeriesOutput out = follow_series(trained, prepare(data, trained.preparation), 0, 9);
  EXPECT_EQ(out.times[0].item<double>(), data.times.front());
  EXPECT_EQ(out.times[-1].item<double>(), data.times.back());
  EXPECT_TRUE((out.times.slice(0, 1) > out.times.slice(0, 0, -1)).all().item<bool>());
  EXPECT_LT(out.output.times[-1].item<double>(), 30);
}

// evenly spaced times are rounded, in one of these series past its end
TEST_F(GapRun, FastWeightsAreShownUpToTheEndOfEverySeries) {
  const TrainedModel trained = exact();
  const DataSet data = two_classes(60);
  const PreparedData prepared = prepare(data, trained.preparation);
  for (int64_t b = 0; b < data.samples(); ++b) {
    const int64_t rows = data.offsets[static_cast<size_t>(b) + 1] - data.offsets[static_cast<size_t>(b)];
    EXPECT_EQ(refusal([&] { follow_series(trained, prepared, b, rows); }), "");
  }
}

}  // namespace
}  // namespace fastweights

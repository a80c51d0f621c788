#include "train/first_guess.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/random.h"
#include "data/data_support.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;

double gauss(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

// channels: a season of 20 with its half and its own phase; a random walk; noise; about 1 apart
DataSet three_kinds(int64_t samples, double shift = 0) {
  Random random(4);
  std::vector<Series> all;
  for (int64_t b = 0; b < samples; ++b) {
    Series s = {.id = "s" + std::to_string(b)};
    const double phase = random.uniform(0, 20), level = random.uniform(-1, 1);
    double t = 0, walk = 3 * gauss(random);
    for (int i = 0; i < 120; ++i) {
      t += random.uniform(0.5, 1.5);
      const double angle = 2 * std::numbers::pi * (t - phase) / 20;
      walk += 0.3 * gauss(random);
      s.times.push_back(t + shift);
      s.values.push_back(random.uniform() < 0.2
                             ? kMissing
                             : level + 2 * std::sin(angle) + std::cos(2 * angle) + 0.2 * gauss(random));
      s.values.push_back(walk);
      s.values.push_back(gauss(random));
    }
    all.push_back(std::move(s));
  }
  return collect_series({.name = "three kinds", .channels = {"season", "walk", "noise"}}, all);
}

TEST(FirstGuess, TheMeanCountsOneObservationOfZero) {
  const SeriesGuess guess({0, false}, 0, {{1, 2}, {3, 5}});
  EXPECT_DOUBLE_EQ(guess(7), 8.0 / 3);
  EXPECT_DOUBLE_EQ(SeriesGuess({0, false}, 0, {})(7), 0);
}

TEST(FirstGuess, LinesConnectResidualsAndHoldTheNearest) {
  for (const ChannelGuess form : {ChannelGuess{-1, true}, ChannelGuess{0, true}}) {
    const SeriesGuess guess(form, 0, {{1, 3}, {3, 7}});
    EXPECT_NEAR(guess(1), 3, 1e-12);
    EXPECT_NEAR(guess(2), 5, 1e-12);
    EXPECT_NEAR(guess(-4), 3, 1e-12);
    EXPECT_NEAR(guess(9), 7, 1e-12);
  }
  EXPECT_EQ(SeriesGuess({}, 0, {{1}, {3}})(1), 0);
}

TEST(FirstGuess, WavesAreARidgeRegression) {
  Random random(3);
  Observed known;
  std::vector<double> rows;
  const auto wave = [](double t) {
    std::vector<double> row = {1};
    for (int k = 1; k <= 3; ++k) {
      const double angle = 2 * std::numbers::pi * k * t / 7;
      row.insert(row.end(), {std::sin(angle), std::cos(angle)});
    }
    return row;
  };
  for (int i = 0; i < 23; ++i) {
    known.at.push_back(random.uniform(0, 40));
    known.values.push_back(random.uniform(-1, 1));
    for (const double x : wave(known.at.back())) rows.push_back(x);
  }
  // the normal equations, by LibTorch
  const Tensor x = at::tensor(rows, at::kDouble).view({23, 7}), y = at::tensor(known.values, at::kDouble);
  const Tensor weights =
      at::linalg_solve(at::matmul(x.t(), x) + at::eye(7, at::kDouble), at::matmul(x.t(), y));
  const SeriesGuess guess({3, false}, 7, known);
  for (const double t : {-3.0, 0.0, 11.5, 100.0})
    EXPECT_NEAR(guess(t), at::dot(at::tensor(wave(t), at::kDouble), weights).item<double>(), 1e-11) << t;
  EXPECT_NEAR(guess.squares(), (at::matmul(x, weights) - y).square().sum().item<double>(), 1e-11);
}

TEST(FirstGuess, FormsFollowTheTrainingPart) {
  const TrainData data = train_data(three_kinds(40), {.kind = TaskKind::Forecast});
  const Preparation& p = data.preparation;
  ASSERT_EQ(p.guesses.size(), 3u);
  EXPECT_EQ(p.guesses[0], (ChannelGuess{2, false}));
  // a thousandth of the season is a tenth of a radian of its half at the end of a series
  EXPECT_NEAR(p.season, 20, 0.03);
  EXPECT_LE(p.guesses[1].harmonics, 0);
  EXPECT_TRUE(p.guesses[1].line);
  EXPECT_EQ(p.guesses[2], ChannelGuess{});
  EXPECT_EQ(guess_note(p).find("the model corrects a first guess: "), 0u);
  EXPECT_NE(guess_note(p).find("2 waves of the season (1 channel)"), std::string::npos);
  const DataSet labelled = two_classes(40);
  EXPECT_TRUE(train_data(labelled, {}).preparation.guesses.empty());
  const TrainData off =
      train_data(three_kinds(40), {.kind = TaskKind::Forecast}, {.first_guess = FirstGuess::None});
  EXPECT_TRUE(off.preparation.guesses.empty());
  EXPECT_EQ(guess_note(off.preparation), "");
}

TEST(FirstGuess, NoiseHasNone) {
  DataSet data = three_kinds(40);
  data = match_data(data, {.channels = {"noise"}});
  EXPECT_TRUE(train_data(data, {.kind = TaskKind::Forecast}).preparation.guesses.empty());
  EXPECT_TRUE(train_data(data, {.kind = TaskKind::Imputation}).preparation.guesses.empty());
}

// a gain that chance explains does not count, even with a single series
TEST(FirstGuess, ASingleSeriesOfNoiseHasNone) {
  const TaskConfig task = {.kind = TaskKind::Forecast};
  Random random(11);
  int chosen = 0;
  for (int draw = 0; draw < 40; ++draw) {
    Series s = {.id = "noise"};
    for (int i = 0; i < 60; ++i) {
      s.times.push_back(i);
      s.values.push_back(gauss(random));
    }
    const DataSet data = collect_series({.name = "noise", .channels = {"x"}}, {s});
    chosen += fit_preparation(data, {0}, {}, task).guesses.empty() ? 0 : 1;
  }
  // 40 tests of several forms, each wrong in one of forty cases
  EXPECT_LE(chosen, 6);
}

TEST(FirstGuess, TargetsAreDifferencesToIt) {
  for (const TaskKind kind : {TaskKind::Forecast, TaskKind::Imputation}) {
    const TrainData data = train_data(three_kinds(20), {.kind = kind});
    Preparation plain = data.preparation;
    plain.guesses.clear();
    const Batch batch = make_batch(data.train, data.preparation, data.task, {3, 0}, 1),
                values = make_batch(data.train, plain, data.task, {3, 0}, 1);
    EXPECT_FALSE(values.guess.defined());
    EXPECT_TRUE(at::allclose(batch.targets + batch.guess, values.targets, 1e-5, 1e-6, /*equal_nan=*/true));
    // a model reads the same values
    EXPECT_TRUE(at::allclose(batch.input.series.values, values.input.series.values, 0, 0, true));
    const Batch alone = make_batch(data.train, data.preparation, data.task, {0}, 1);
    EXPECT_TRUE(at::equal(batch.guess.slice(0, -alone.guess.size(0)), alone.guess));
  }
}

TEST(FirstGuess, HeldOutValuesDoNotChangeIt) {
  TrainData data = train_data(three_kinds(20), {.kind = TaskKind::Forecast});
  const Tensor before = make_batch(data.train, data.preparation, data.task, {2}, 1).guess;
  data.train.values = data.train.values.clone();
  // the last quarter of series 2
  data.train.values.slice(0, 2 * 120 + 90, 3 * 120).add_(5);
  EXPECT_TRUE(at::equal(make_batch(data.train, data.preparation, data.task, {2}, 1).guess, before));
  data.train.values.slice(0, 2 * 120, 2 * 120 + 90).add_(5);
  EXPECT_FALSE(at::equal(make_batch(data.train, data.preparation, data.task, {2}, 1).guess, before));
}

TEST(FirstGuess, ShiftedTimesGiveTheSame) {
  const TaskConfig task = {.kind = TaskKind::Forecast};
  const TrainData data = train_data(three_kinds(20), task), later = train_data(three_kinds(20, 1000), task);
  EXPECT_NEAR(later.preparation.season, data.preparation.season, 1e-6);
  const Tensor a = make_batch(data.train, data.preparation, task, {5}, 1).guess,
               b = make_batch(later.train, data.preparation, task, {5}, 1).guess;
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-5);
}

class GuessRun : public ::testing::Test {
 protected:
  fastweights::Run run_of(const std::string& model, Settings settings) {
    settings.push_back({"training.epochs", "20"});
    return make_run({.model = model, .settings = std::move(settings)}, data_);
  }
  RunResult train(const std::string& model, const std::string& folder, Settings settings) {
    settings.push_back({"model.hidden_size", "16"});
    return train_run(run_of(model, std::move(settings)), {.folder = folder_.path(folder)});
  }

  TestFolder folder_;
  DataSet data_ = match_data(three_kinds(40), {.channels = {"season"}});
};

TEST_F(GuessRun, FollowsTheSeason) {
  for (const std::string task : {"forecast", "imputation"}) {
    const RunResult guess = train("gru", task, {{"task.kind", task}}),
                    none =
                        train("gru", task + "-none", {{"task.kind", task}, {"prepare.first_guess", "none"}});
    // noise of 0.2 around values with a variance of 2.5 and more: 0.98 at best
    EXPECT_GT(metric(guess.parts.back().metrics, "r2"), 0.95) << task;
    EXPECT_LT(metric(none.parts.back().metrics, "r2"), 0.5) << task;
    // as a file predicts it
    const Evaluation again =
        evaluate(load_trained(folder_.path(task)), select_series(data_, run_of("gru", {}).data.split.test));
    EXPECT_NEAR(metric(again.metrics, "mse"), metric(guess.parts.back().metrics, "mse"), 1e-6);
    // metrics of the channel and of rows ahead are in the results of the run
    const Json result = parse_json(read_file(folder_.path(task + "/result.json"))).at("test");
    EXPECT_NEAR(result.at("channels").at("season").at("mase").get<double>(), metric(again.metrics, "mase"),
                1e-6);
    EXPECT_EQ(result.contains("rows_ahead"), task == "forecast");
  }
}

TEST_F(GuessRun, ContinuesTheSeasonIntoTheFuture) {
  train("gru", "run", {{"task.kind", "forecast"}});
  const TrainedModel trained = load_trained(folder_.path("run"));
  const DataSet one = select_series(data_, {0}),
                longer = with_future(one, trained.task, trained.preparation, 40);
  const Predictions p = trained.predict(longer, {.targets = Targets::Missing});
  ASSERT_EQ(p.outputs.size(0), 40);
  // two seasons of 2 sin + cos, whose variance is 2.5
  EXPECT_GT(in_own_units(p.outputs, trained.task, trained.preparation).var().item<double>(), 2);
  // outputs over the series are values, too
  const SeriesOutput shown = follow_series(trained, prepare(one, trained.preparation), 0, 100);
  EXPECT_GT(shown.output.outputs.var().item<double>(), 0.7);
}

TEST_F(GuessRun, RivalsHaveNone) {
  EXPECT_TRUE(run_of("seasonal-naive", {{"task.kind", "forecast"}}).data.preparation.guesses.empty());
  EXPECT_FALSE(run_of("gru", {{"task.kind", "forecast"}}).data.preparation.guesses.empty());
}

TEST_F(GuessRun, FilesKeepIt) {
  train("gru", "run", {{"task.kind", "forecast"}});
  const std::string path = folder_.path("run/model.safetensors");
  const Preparation kept = load_trained(path).preparation,
                    fitted = run_of("gru", {{"task.kind", "forecast"}}).data.preparation;
  EXPECT_EQ(kept.guesses, fitted.guesses);
  EXPECT_EQ(kept.season, fitted.season);
  EXPECT_EQ(kept.config.first_guess, FirstGuess::Automatic);
  NamedTensors file = load_safetensors(path);
  const Json preparation = parse_json(file.metadata["preparation"]);
  const auto changed = [&](const std::string& pointer, const Json& value) {
    Json other = preparation;
    other[Json::json_pointer(pointer)] = value;
    file.metadata["preparation"] = other.dump();
    save_safetensors(folder_.path("changed.safetensors"), file);
    return error_message<std::runtime_error>([&] { load_trained(folder_.path("changed.safetensors")); });
  };
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, Json>>{{"/season", 0},
                                                 {"/guesses/0/harmonics", -2},
                                                 {"/guesses/0/harmonics", 1000000},
                                                 {"/guesses/1", preparation["guesses"][0]}})
    EXPECT_NE(changed(pointer, value).find("damaged"), std::string::npos) << pointer;
  // files and runs of an earlier version
  Json old = preparation;
  old.erase("season");
  old.erase("guesses");
  old["config"].erase("first_guess");
  file.metadata["preparation"] = old.dump();
  save_safetensors(folder_.path("old.safetensors"), file);
  EXPECT_TRUE(load_trained(folder_.path("old.safetensors")).preparation.guesses.empty());
  EXPECT_EQ(load_trained(folder_.path("old.safetensors")).preparation.config.first_guess, FirstGuess::None);
  Json config = parse_json(read_file(folder_.path("run/config.json")));
  EXPECT_EQ(config["prepare"]["first_guess"], "automatic");
  config["prepare"].erase("first_guess");
  replace_file(folder_.path("run/config.json"), config.dump());
  EXPECT_EQ(read_run_config(folder_.path("run")).prepare.first_guess, FirstGuess::None);
}

}  // namespace
}  // namespace fastweights

#include "fastweights/task.h"

#include <algorithm>
#include <cmath>

#include "data/data_support.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::random;
using testing::relative_error;

// values and targets are float32
constexpr double kFloat = 1e-6;

DataSet small_set() {
  const DataHead head = {.name = "small", .channels = {"x", "y"}, .statics = {"age", "size"}};
  return collect_series(
      head,
      {{.id = "a",
        .times = {1, 2, 4},
        .values = {1, kMissing, 2, 5, kMissing, 7},
        .statics = {3, kMissing},
        .label = "n"},
       {.id = "b", .times = {7, 8}, .values = {kMissing, 3, 4, kMissing}, .statics = {5, 1}, .label = "p"},
       {.id = "c", .times = {-3, 0}, .values = {30, kMissing, 1, kMissing}, .statics = {4, 2}, .label = ""}});
}

TEST(Task, ChannelsAreTimeCountsAndScaledValues) {
  const DataSet data = small_set();
  Preparation p = fit_preparation(data, {.clip = 1.25, .intensity = true, .usual_gaps = 0});
  p.time_scale = 3;
  p.count_scale = 4;
  const Batch batch = make_batch(prepare(data, p), p, {.kind = TaskKind::Classification}, {0, 1, 2}, 1);
  const Tensor& got = batch.input.series.values;  // [7, 5]
  ASSERT_EQ(got.sizes(), (std::vector<int64_t>{7, 5}));
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t first = data.offsets[static_cast<size_t>(b)];
    double counts[2] = {0, 0};
    for (int64_t i = first; i < data.offsets[static_cast<size_t>(b) + 1]; ++i) {
      const auto row = static_cast<size_t>(i);
      const double time =
          (data.times[row] - data.times[static_cast<size_t>(first)]) / (p.median_gap * p.time_scale);
      EXPECT_NEAR(got[i][0].item<double>(), time, kFloat);
      for (size_t c = 0; c < 2; ++c) {
        const auto channel = static_cast<int64_t>(c);
        const double x = data.values[2 * row + c], value = got[i][3 + channel].item<double>();
        counts[c] += std::isnan(x) ? 0 : 1;
        EXPECT_NEAR(got[i][1 + channel].item<double>(), counts[c] / 4, kFloat);
        EXPECT_EQ(std::isnan(value), std::isnan(x));
        if (std::isnan(x)) continue;
        EXPECT_NEAR(value, std::clamp(p.channel_scales[c](x), -1.25, 1.25), kFloat) << i << ", " << c;
      }
    }
  }
  // the value 30 was beyond the clip
  EXPECT_EQ(got[5][3].item<double>(), 1.25);
  EXPECT_TRUE(at::equal(batch.classes, at::tensor({0, 1, -1}, at::kLong)));
  EXPECT_FALSE(batch.input.output_times.has_value());
}

TEST(Task, WithoutAClipAnythingGoes) {
  const DataSet data = small_set();
  const Preparation p = fit_preparation(data, {.scaling = Scaling::None, .clip = 0, .time_channel = false});
  const Tensor values = prepare(data, p).values;
  EXPECT_EQ(values[5][0].item<double>(), 30);
  EXPECT_EQ(p.model_channels(), 2);
}

TEST(Task, StaticFeaturesAreScaledAndFlagged) {
  const DataSet data = small_set();
  const Preparation p = fit_preparation(data);
  const Tensor statics = prepare(data, p).statics;  // [3, 3]
  ASSERT_EQ(statics.sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_NEAR(statics[0][0].item<double>(), p.static_scales[0](3), kFloat);
  EXPECT_EQ(statics[0][1].item<double>(), 0);
  EXPECT_TRUE(at::equal(statics.select(1, 2), at::tensor({0.0f, 1.0f, 1.0f})));
}

TEST(Task, ABatchIsItsSeriesOneByOne) {
  const TrainData data = train_data(two_classes(20), {.kind = TaskKind::Forecast}, {.intensity = true});
  const std::vector<int64_t> chosen = {7, 0, 11};
  const Batch batch = make_batch(data.train, data.preparation, data.task, chosen, 1);
  std::vector<Tensor> values, times, targets, output_times;
  for (const int64_t b : chosen) {
    const Batch alone = make_batch(data.train, data.preparation, data.task, {b}, 1);
    values.push_back(alone.input.series.values);
    times.push_back(alone.input.series.times);
    targets.push_back(alone.targets);
    output_times.push_back(alone.input.output_times->times);
  }
  EXPECT_TRUE(equal_with_nan(batch.input.series.values, at::cat(values)));
  EXPECT_TRUE(at::equal(batch.input.series.times, at::cat(times)));
  EXPECT_TRUE(equal_with_nan(batch.targets, at::cat(targets)));
  EXPECT_TRUE(at::equal(batch.input.output_times->times, at::cat(output_times)));
  for (int64_t i = 0; i < 3; ++i) {
    const auto lengths = [&](const Tensor& offsets) { return (offsets[i + 1] - offsets[i]).item<int64_t>(); };
    const auto k = static_cast<size_t>(i);
    EXPECT_EQ(lengths(batch.input.series.offsets), times[k].size(0));
    EXPECT_EQ(lengths(batch.input.output_times->offsets), output_times[k].size(0));
  }
}

TEST(Task, ForecastHidesTheLastRows) {
  const TaskConfig task = {.kind = TaskKind::Forecast, .horizon = 0.4};
  const TrainData data =
      train_data(two_classes(12), task, {.intensity = true, .first_guess = FirstGuess::None});
  const int64_t* offsets = data.train.offsets.data_ptr<int64_t>();
  for (int64_t b = 0; b < data.train.samples(); ++b) {
    const Batch batch = make_batch(data.train, data.preparation, task, {b}, 1);
    const int64_t length = offsets[b + 1] - offsets[b],
                  hidden = std::llround(0.4 * static_cast<double>(length)), seen = length - hidden;
    const Tensor truth = data.train.values.slice(0, offsets[b], offsets[b + 1]);  // [L, 2]
    const Tensor input = batch.input.series.values;                               // [L, 5]
    // time, two counts, two values
    EXPECT_TRUE(input.slice(1, 3).slice(0, seen).isnan().all().item<bool>());
    EXPECT_TRUE(equal_with_nan(input.slice(1, 3).slice(0, 0, seen), truth.slice(0, 0, seen)));
    EXPECT_FALSE(input.slice(1, 0, 3).isnan().any().item<bool>());
    EXPECT_TRUE(equal_with_nan(batch.targets, truth.slice(0, seen)));
    EXPECT_TRUE(at::equal(batch.input.output_times->times, batch.input.series.times.slice(0, seen)));
    // counts say nothing about what is hidden
    EXPECT_TRUE(at::equal(input.slice(1, 1, 3).slice(0, seen),
                          input.slice(1, 1, 3).slice(0, seen - 1, seen).expand({hidden, 2})));
  }
}

TEST(Task, ForecastOfASingleRowAsksForNothing) {
  const DataHead head = {.name = "short", .channels = {"x"}};
  const DataSet data =
      collect_series(head, {{.times = {1, 2, 4}, .values = {1, 2, 5}}, {.times = {7}, .values = {3}}});
  const Preparation p = fit_preparation(data);
  const Batch batch = make_batch(prepare(data, p), p, {.kind = TaskKind::Forecast, .horizon = 5}, {1, 0}, 1);
  EXPECT_TRUE(at::equal(batch.input.output_times->offsets, at::tensor({0, 0, 2}, at::kLong)));
  EXPECT_FALSE(batch.input.series.values[0].isnan().any().item<bool>());
}

TEST(Task, AHorizonOfOneOrMoreIsANumberOfRows) {
  const DataHead head = {.name = "rows", .channels = {"x"}};
  const DataSet data =
      collect_series(head, {{.times = {0, 1, 2, 3, 4}, .values = {1, 2, 3, 4, 5}},
                            {.times = {0, 1, 2, 3, 4, 5, 6, 7}, .values = {1, 2, 3, 4, 5, 6, 7, 8}}});
  const Preparation p = fit_preparation(data);
  for (const int64_t rows : {1, 3}) {
    const TaskConfig task = {.kind = TaskKind::Forecast, .horizon = static_cast<double>(rows)};
    const Batch batch = make_batch(prepare(data, p), p, task, {0, 1}, 1);
    EXPECT_TRUE(
        at::equal(batch.input.output_times->offsets, at::tensor({int64_t{0}, rows, 2 * rows}, at::kLong)));
    EXPECT_EQ(with_future(data, task, p, 0).offsets, (std::vector<int64_t>{0, 5 + rows, 13 + 2 * rows}));
  }
  for (const double horizon : {0.0, -1.0, 1.5, 1e300})
    EXPECT_EQ(error_message([&] {
                task_kind(data, {.kind = TaskKind::Forecast, .horizon = horizon});
              }).rfind("[task] horizon must be a fraction between 0 and 1 or a number of rows, got ", 0),
              0u)
        << horizon;
}

// nothing is hidden: rows behind the last observation, or all rows, are asked for
TEST(Task, MissingValuesAreAskedForFromAllThatIsKnown) {
  const DataHead head = {.name = "gaps", .channels = {"x", "y"}};
  const DataSet data = collect_series(
      head, {{.times = {0, 1, 3}, .values = {1, kMissing, kMissing, kMissing, kMissing, kMissing}},
             {.times = {5, 6}, .values = {kMissing, 2, 3, kMissing}}});
  const Preparation p = fit_preparation(data, {.usual_gaps = 0});
  const PreparedData prepared = prepare(data, p);
  const auto batch_of = [&](TaskKind kind) {
    return make_batch(prepared, p, {.kind = kind}, {0, 1}, 1, Targets::Missing);
  };
  const Batch forecast = batch_of(TaskKind::Forecast), imputation = batch_of(TaskKind::Imputation);
  for (const Batch* batch : {&forecast, &imputation}) {
    EXPECT_FALSE(batch->targets.defined());
    EXPECT_TRUE(equal_with_nan(batch->input.series.values.slice(1, 1), prepared.values));
  }
  EXPECT_TRUE(at::equal(forecast.input.output_times->times, at::tensor({1.0, 3.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(forecast.input.output_times->offsets, at::tensor({0, 2, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(imputation.input.output_times->times, prepared.times));
  EXPECT_TRUE(at::equal(imputation.input.output_times->offsets, prepared.offsets));
}

TEST(Task, TheFutureIsARowPerGapUnlessItIsAskedFor) {
  const DataHead head = {.name = "future", .channels = {"x"}};
  const DataSet data = collect_series(head, {{.times = {0, 2, 4}, .values = {1, 2, 3}},
                                             {.times = {5, 6}, .values = {1, kMissing}},
                                             {.times = {0, 2}, .values = {kMissing, 7}}});
  const Preparation p = fit_preparation(data);
  ASSERT_EQ(p.median_gap, 2);
  const DataSet two = with_future(data, {}, p, 2);
  EXPECT_EQ(two.offsets, (std::vector<int64_t>{0, 5, 7, 11}));
  EXPECT_EQ(two.times, (std::vector<double>{0, 2, 4, 6, 8, 5, 6, 0, 2, 4, 6}));
  EXPECT_TRUE(std::isnan(two.values[3]) && std::isnan(two.values[4]) && two.values[2] == 3);
  // three quarters are known
  EXPECT_EQ(with_future(data, {.horizon = 0.25}, p, 0).offsets, (std::vector<int64_t>{0, 4, 6, 9}));
  EXPECT_EQ(error_message([&] { with_future(data, {}, p, -1); }),
            "[forecast] the number of rows must not be negative, got -1");
}

TEST(Task, RowsWithLabelsAreAskedForOneByOne) {
  const DataHead head = {.name = "steps", .channels = {"x"}};
  const DataSet data = collect_series(head, {{.times = {0, 1}, .values = {1, 2}, .step_labels = {"a", "b"}},
                                             {.times = {5, 6}, .values = {1, 1}, .step_labels = {"", ""}}});
  const Preparation p = fit_preparation(data);
  EXPECT_EQ(task_kind(data, {}), TaskKind::StepClassification);
  const Batch batch = make_batch(prepare(data, p), p, {.kind = TaskKind::StepClassification}, {1, 0}, 1);
  EXPECT_TRUE(at::equal(batch.classes, at::tensor({-1, -1, 0, 1}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.input.output_times->times, batch.input.series.times));
  EXPECT_TRUE(at::equal(batch.input.output_times->offsets, batch.input.series.offsets));
}

// a model needs two points
TEST(Task, ARowThatIsAloneGetsOneBeforeItThatSaysTheSame) {
  const DataHead head = {.name = "short", .channels = {"x"}};
  const DataSet data = collect_series(
      head, {{.times = {0, 2}, .values = {1, 2}, .label = "a"}, {.times = {5}, .values = {3}, .label = "b"}});
  const Preparation p = fit_preparation(data);
  const RaggedSeries series =
      make_batch(prepare(data, p), p, {.kind = TaskKind::Classification}, {1, 0}, 1).input.series;
  EXPECT_TRUE(at::equal(series.times, at::tensor({3.0, 5.0, 0.0, 2.0}, at::kDouble)));
  EXPECT_TRUE(at::equal(series.offsets, at::tensor({0, 2, 4}, at::kLong)));
  EXPECT_TRUE(at::equal(series.values[0], series.values[1]));
}

TEST(Task, TheKindIsWhatTheDataHave) {
  DataSet data = two_classes(4);
  EXPECT_EQ(task_kind(data, {}), TaskKind::Classification);
  EXPECT_EQ(task_note(data, TaskKind::Classification),
            "task classification: the series have labels; --task chooses another task");
  EXPECT_EQ(output_count(TaskKind::Classification, fit_preparation(data)), 1);
  EXPECT_EQ(task_kind(data, {.kind = TaskKind::Imputation}), TaskKind::Imputation);
  EXPECT_EQ(task_note(data, TaskKind::Imputation), "task imputation");
  EXPECT_EQ(output_count(TaskKind::Imputation, fit_preparation(data)), 2);
  data.labels = {-1, -1, -1, -1};
  EXPECT_EQ(task_kind(data, {}), TaskKind::Regression);
  EXPECT_EQ(output_count(TaskKind::Regression, fit_preparation(data)), 1);
  data.head.targets = {};
  EXPECT_EQ(task_kind(data, {}), TaskKind::Forecast);
  data.head.source.label = "outcome";
  EXPECT_EQ(
      task_note(data, TaskKind::Forecast),
      "task forecast: the data have neither labels (no column 'outcome') nor targets; --label-column or "
      "--target-columns names them, --task chooses another task");
  data.head.classes = {"a", "b", "c"};
  EXPECT_EQ(output_count(TaskKind::Classification, fit_preparation(data)), 3);
  const auto refused = [&](TaskKind kind) { return error_message([&] { task_kind(data, {.kind = kind}); }); };
  EXPECT_EQ(refused(TaskKind::Classification), "'two classes' has no labels to classify by");
  EXPECT_EQ(refused(TaskKind::StepClassification), "'two classes' has no labels of its rows to classify by");
  EXPECT_EQ(refused(TaskKind::Regression),
            "'two classes' has no targets to predict; name the columns with --target-columns");
  data.head.classes = {"up"};
  data.labels = {0, 0, -1, 0};
  EXPECT_EQ(refused(TaskKind::Classification),
            "all series of 'two classes' have the label 'up'; classification needs two classes");
}

Batch classes_batch(const std::vector<int64_t>& classes) {
  Batch batch;
  batch.classes = at::tensor(classes, at::kLong);
  return batch;
}

TEST(Task, LossOfTwoClassesIsTheWeightedLogisticOne) {
  const Tensor z = random({5, 1}, 1) * 3;
  const std::vector<int64_t> classes = {1, 0, -1, 1, 0};
  for (const double weight : {1.0, 2.5}) {
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t y = classes[static_cast<size_t>(i)];
      if (y < 0) continue;
      const double p = 1 / (1 + std::exp(-z[i][0].item<double>())), w = y == 1 ? weight : 1;
      sum -= w * std::log(y == 1 ? p : 1 - p);
      weights += w;
    }
    const Tensor given = weight == 1 ? Tensor() : at::tensor({1.0, weight}, at::kDouble);
    EXPECT_NEAR(task_loss(z, classes_batch(classes), given).item<double>(), sum / weights, 1e-14);
  }
}

TEST(Task, LossOfManyClassesIsTheWeightedCrossEntropy) {
  const Tensor z = random({4, 3}, 2) * 2;
  const std::vector<int64_t> classes = {2, -1, 0, 1};
  const std::vector<double> given = {0.5, 2, 1};
  for (const bool weighted : {false, true}) {
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t y = classes[static_cast<size_t>(i)];
      if (y < 0) continue;
      double total = 0;
      for (int64_t k = 0; k < 3; ++k) total += std::exp(z[i][k].item<double>());
      const double w = weighted ? given[static_cast<size_t>(y)] : 1;
      sum -= w * std::log(std::exp(z[i][y].item<double>()) / total);
      weights += w;
    }
    const Tensor loss =
        task_loss(z, classes_batch(classes), weighted ? at::tensor(given, at::kDouble) : Tensor());
    EXPECT_NEAR(loss.item<double>(), sum / weights, 1e-14);
  }
}

TEST(Task, LossOfTargetsIsTheMeanSquareOfThoseKnown) {
  Batch batch;
  batch.targets = at::tensor({1.0, kMissing, 3.0, 4.0, kMissing, kMissing}, at::kDouble).reshape({3, 2});
  const Tensor outputs = at::tensor({2.0, 100.0, 5.0, 1.0, 7.0, 8.0}, at::kDouble).reshape({3, 2});
  EXPECT_DOUBLE_EQ(task_loss(outputs, batch, {}).item<double>(), (1 + 4 + 9) / 3.0);
}

TEST(Task, WithNothingKnownTheLossIsZeroWithGradients) {
  Batch batch;
  batch.targets = at::full({3, 2}, kMissing, at::kDouble);
  const Tensor outputs = random({3, 2}, 1).set_requires_grad(true);
  for (const Tensor& loss :
       {task_loss(outputs, batch, {}), task_loss(outputs, classes_batch({-1, -1, -1}), {})}) {
    EXPECT_EQ(loss.item<double>(), 0);
    EXPECT_TRUE(at::equal(gradients(loss, {outputs})[0], at::zeros({3, 2}, at::kDouble)));
  }
  EXPECT_EQ(error_message([&] { task_loss(outputs, {}, {}); }),
            "[loss] these series have neither classes nor targets");
}

TEST(Task, TheTruthIsThatOfABatch) {
  DataSet data = small_set();
  const std::vector<int64_t> samples = {2, 0};
  const Preparation p = fit_preparation(data);
  const PreparedData prepared = prepare(data, p);
  for (const TaskKind kind : {TaskKind::Classification, TaskKind::Forecast}) {
    const Batch whole = make_batch(prepared, p, {.kind = kind}, samples, 1),
                truth = truth_of(prepared, p, {.kind = kind}, samples);
    EXPECT_EQ(truth.classes.defined(), whole.classes.defined());
    if (whole.classes.defined()) {
      EXPECT_TRUE(at::equal(truth.classes, whole.classes));
    }
    EXPECT_EQ(truth.targets.defined(), whole.targets.defined());
    if (whole.targets.defined()) {
      EXPECT_TRUE(equal_with_nan(truth.targets, whole.targets));
    }
    EXPECT_FALSE(truth.input.series.values.defined());
  }
}

TEST(Task, SamplesThatAreNotThereAreRefused) {
  const TrainData data = train_data(two_classes(8));
  EXPECT_EQ(error_message([&] { make_batch(data.train, data.preparation, data.task, {6}, 1); }),
            "[batch] sample 6 is out of range for 6 samples");
}

}  // namespace
}  // namespace fastweights

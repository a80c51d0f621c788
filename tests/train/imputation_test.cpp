#include "fastweights/task.h"
#include "support/support.h"
#include "train/train_cases.h"

/// Which values imputation holds out.

namespace fastweights {
namespace {

TEST(Imputation, HidesASeededShare) {
  const TaskConfig task = {.kind = TaskKind::Imputation, .hidden = 0.3};
  const TrainData data = train_data(
      two_classes(400), task,
      {.time_channel = false, .intensity = true, .usual_gaps = 0, .first_guess = FirstGuess::None});
  std::vector<int64_t> all(300);
  for (size_t b = 0; b < all.size(); ++b) all[b] = static_cast<int64_t>(b);
  const auto batch_of = [&](uint64_t seed) {
    return make_batch(data.train, data.preparation, task, all, seed);
  };
  const Batch batch = batch_of(1);
  const Tensor input = batch.input.series.values.slice(1, 2);                      // [R, 2]
  const Tensor observed = data.train.values.isnan().logical_not();                 // [R, 2]
  const Tensor gone = observed.logical_and(input.isnan());                         // [R, 2]
  const double share = gone.sum().item<double>() / observed.sum().item<double>();  // of 3,000 or so
  EXPECT_NEAR(share, 0.3, 0.03);
  // what is left is as it was, and what is gone is asked for
  EXPECT_TRUE(equal_with_nan(input, data.train.values.masked_fill(gone, NAN)));
  const Tensor rows = gone.any(1).nonzero().squeeze(1);
  EXPECT_TRUE(equal_with_nan(batch.targets,
                             data.train.values.masked_fill(gone.logical_not(), NAN).index_select(0, rows)));
  EXPECT_TRUE(at::equal(batch.input.output_times->times, data.train.times.index_select(0, rows)));
  // counts are those of values that are left: at the ends of series
  const Tensor left = input.isnan().logical_not().to(at::kFloat).cumsum(0);
  const Tensor ends = data.train.offsets.slice(0, 1) - 1;
  const Tensor totals = batch.input.series.values.slice(1, 0, 2).index_select(0, ends).sum(0);
  // values are float32
  EXPECT_LT(testing::relative_error(totals * data.preparation.count_scale, left[-1]), 1e-6);
  EXPECT_TRUE(equal_with_nan(batch_of(1).input.series.values, batch.input.series.values));
  EXPECT_FALSE(equal_with_nan(batch_of(2).input.series.values, batch.input.series.values));
}

// the channels of a text tell each other
TEST(Imputation, HidesAllChannelsOfATextTogether) {
  DataHead head = {.name = "texts", .channels = {"a=u", "x", "a=v", "a=w"}};
  head.channel_texts = {{"a", {"u", "v", "w"}}};
  Series series;
  for (int i = 0; i < 500; ++i) {
    series.times.push_back(i);
    for (const double value :
         {i % 3 == 0 ? 1.0 : 0.0, i * 0.1, i % 3 == 1 ? 1.0 : 0.0, i % 3 == 2 ? 1.0 : 0.0})
      series.values.push_back(value);
  }
  const DataSet data = collect_series(head, {series, series});
  const Preparation p = fit_preparation(data, {.time_channel = false, .usual_gaps = 0});
  const Tensor hidden =
      make_batch(prepare(data, p), p, {.kind = TaskKind::Imputation, .hidden = 0.3}, {0, 1}, 1)
          .input.series.values.isnan();  // [1000, 4]
  EXPECT_TRUE(at::equal(hidden.select(1, 0), hidden.select(1, 2)));
  EXPECT_TRUE(at::equal(hidden.select(1, 0), hidden.select(1, 3)));
  // of each column a share, and columns do not depend on each other
  const auto share = [](const Tensor& x) { return x.to(at::kDouble).mean().item<double>(); };
  const Tensor text = hidden.select(1, 0), number = hidden.select(1, 1);
  EXPECT_NEAR(share(text), 0.3, 0.06);
  EXPECT_NEAR(share(number), 0.3, 0.06);
  EXPECT_NEAR(share(text.logical_and(number)), 0.09, 0.04);
}

// the same values of a series, whatever others are looked at with it
TEST(Imputation, HidesTheSameInEveryBatch) {
  const TrainData data = train_data(two_classes(6));
  const auto batch_of = [&](const std::vector<int64_t>& samples) {
    return make_batch(data.train, data.preparation, {.kind = TaskKind::Imputation}, samples, 1)
        .input.series.values;
  };
  const Tensor all = batch_of({0, 1, 2});
  const int64_t* offsets = data.train.offsets.data_ptr<int64_t>();
  EXPECT_TRUE(equal_with_nan(batch_of({1}), all.slice(0, offsets[1], offsets[2])));
  EXPECT_TRUE(
      equal_with_nan(batch_of({2, 0}).slice(0, offsets[3] - offsets[2]), all.slice(0, 0, offsets[1])));
}

// nor is it that of another series, a value further on
TEST(Imputation, HidesValuesOfItsOwnInEverySeries) {
  const DataHead head = {.name = "long", .channels = {"x"}};
  std::vector<double> times(200);
  for (size_t i = 0; i < times.size(); ++i) times[i] = static_cast<double>(i);
  const Series one = {.times = times, .values = std::vector<double>(200, 1.0)};
  const DataSet data = collect_series(head, {one, one, one});
  const Preparation p = fit_preparation(data, {.scaling = Scaling::None, .time_channel = false});
  const Tensor hidden =
      make_batch(prepare(data, p), p, {.kind = TaskKind::Imputation, .hidden = 0.5}, {0, 1, 2}, 1)
          .input.series.values.isnan()
          .view({3, 200});
  for (int64_t b = 1; b < 3; ++b) {
    for (int64_t shift = 0; shift < 4; ++shift) {
      const Tensor same = hidden[0].slice(0, shift).eq(hidden[b].slice(0, 0, 200 - shift));
      // half of them by chance, with a deviation of 0.035
      EXPECT_NEAR(same.to(at::kDouble).mean().item<double>(), 0.5, 0.18) << b << ", " << shift;
    }
  }
}

}  // namespace
}  // namespace fastweights

#include "fastweights/data.h"

#include "data/data_support.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using Words = std::vector<std::string>;

// channels x and y of one series after another
DataSet set_of(const std::vector<std::vector<double>>& times,
               const std::vector<std::vector<double>>& values) {
  std::vector<Series> all;
  for (size_t b = 0; b < times.size(); ++b) all.push_back({.times = times[b], .values = values[b]});
  return collect_series({.name = "set", .channels = {"x", "y"}, .time_unit = "hour"}, all);
}

TEST(Prepare, MeanAndDeviationAreThoseOfObservedValues) {
  const DataSet data =
      set_of({{0, 1, 2}, {0, 1}}, {{1, kMissing, 4, 2, kMissing, 2}, {7, kMissing, kMissing, 5}});
  const Preparation p = fit_preparation(data);
  // 1, 4, 7 and 2, 2, 5, each with n - 1; the published code adds 1e-5
  EXPECT_DOUBLE_EQ(p.channel_scales[0].mean, 4);
  EXPECT_DOUBLE_EQ(p.channel_scales[0].deviation, 3 + 1e-5);
  EXPECT_DOUBLE_EQ(p.channel_scales[1].mean, 3);
  EXPECT_DOUBLE_EQ(p.channel_scales[1].deviation, std::sqrt(3.0) + 1e-5);
  EXPECT_DOUBLE_EQ(p.channel_scales[0].undo(p.channel_scales[0](12.5)), 12.5);
  EXPECT_EQ(p.channels, (Words{"x", "y"}));
  EXPECT_EQ(p.time_unit, "hour");
}

TEST(Prepare, AValueThatCannotBeScaledIsNamed) {
  const auto said = [](const DataSet& data, const PrepareConfig& config = {}) {
    return refusal([&] { fit_preparation(data, config); });
  };
  std::vector<Series> all = {
      {.id = "a", .times = {0, 1}, .values = {1, 2}, .statics = {1}, .targets = {1}},
      {.id = "b", .times = {0, 1}, .values = {3, 1e155}, .statics = {2}, .targets = {2}}};
  const auto set = [&] {
    return collect_series({.name = "set", .channels = {"x"}, .statics = {"age"}, .targets = {"y"}}, all);
  };
  const std::string rest = " is too large to scale in float32; correct it, or leave it empty";
  EXPECT_EQ(said(set()), "channel 'x', series 'b', row 2: 1e+155" + rest);
  EXPECT_EQ(said(set(), {.scaling = Scaling::Robust}), "") << "clipped";
  EXPECT_EQ(said(set(), {.scaling = Scaling::None, .clip = 0}),
            "channel 'x', series 'b', row 2: 1e+155" + rest);
  all[1].values[1] = 1e39;
  EXPECT_EQ(said(set(), {.scaling = Scaling::None, .clip = 0}),
            "channel 'x', series 'b', row 2: 1e+39" + rest);
  EXPECT_EQ(said(set(), {.scaling = Scaling::None}), "");
  all[1].values[1] = 4;
  all[0].statics = {-1e300};
  EXPECT_EQ(said(set()), "static feature 'age', series 'a': -1e+300" + rest);
  all[0].statics = {1};
  all[1].targets = {1e200};
  EXPECT_EQ(said(set()), "target 'y', series 'b': 1e+200" + rest);
  all[1].targets = {2};
  all[1].times = {-1e308, 1e308};
  EXPECT_EQ(said(set()), "") << "model time saturates";
  EXPECT_EQ(said(set(), {.usual_gaps = 0}),
            "series 'b': the times from -1e+308 to 1e+308 are too far apart for a median gap of 1");
  all[1].times = {0, 1};
  EXPECT_EQ(said(set()), "");
}

TEST(DataWarnings, EmptyColumnsAndFarOutliersAreNamed) {
  std::vector<Series> all(1);
  for (int i = 0; i < 50; ++i) {
    all[0].times.push_back(i);
    all[0].values.insert(all[0].values.end(), {std::sin(i), kMissing, i == 7 ? 1e9 : 0.0});
  }
  const auto warnings = [&] { return data_warnings(collect_series({.channels = {"x", "y", "z"}}, all)); };
  EXPECT_EQ(warnings(), (Words{"channel without any value: 'y'"})) << "half of z is equal";
  all[0].values[3 * 20] = 1e30;
  const Words found = warnings();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rfind("channel 'x' has the value 1e+30, but half of its values are within 1.", 0), 0u)
      << found[0];
}

TEST(DataWarnings, CodesForMissingValuesAreNamed) {
  std::vector<Series> all(1);
  for (int i = 0; i < 50; ++i) {
    all[0].times.push_back(i);
    // the same value is ordinary where others are as large
    all[0].values.insert(all[0].values.end(),
                         {i % 10 == 7 ? -999 : 80 + std::sin(i), i % 10 == 7 ? 999.0 : 40.0 * i});
  }
  const Words found = data_warnings(collect_series({.channels = {"rate", "count"}}, all));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rfind("channel 'rate' has the value -999, but half of its values are within ", 0), 0u);
  EXPECT_NE(found[0].find("if it stands for a missing value: --missing -999"), std::string::npos) << found[0];
}

TEST(DataWarnings, NumbersAsLabelsAreNamed) {
  std::vector<Series> all(30);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].times = {0, 1};
    all[i].values = {0.5, 1};
    all[i].label = message(10 * (i % 25), ".5");
  }
  EXPECT_EQ(data_warnings(collect_series({.channels = {"x"}}, all)),
            (Words{"the labels are 25 different numbers for 30 series; if they are values to predict, name "
                   "their column with --target-columns"}));
  all[3].label = "a";
  EXPECT_EQ(data_warnings(collect_series({.channels = {"x"}}, all)), Words{}) << "a word is a class";
}

TEST(DataWarnings, SeriesOfOneRowAreNamed) {
  std::vector<Series> all(3);
  for (Series& series : all) {
    series.times = {0};
    series.values = {0.5};
  }
  DataSet data = collect_series({.channels = {"x"}}, all);
  data.head.source.id = "date";
  EXPECT_EQ(data_warnings(data), (Words{"each series has one row; --id-column names the column that "
                                        "identifies the series, here 'date'"}));
  all[1].times = {0, 1};
  all[1].values = {0.5, 1};
  EXPECT_EQ(data_warnings(collect_series({.channels = {"x"}}, all)), Words{});
}

// heavy tails, large offsets and rare events are ordinary
TEST(DataWarnings, OrdinaryDataHaveNone) {
  std::vector<Series> all(1);
  for (int i = 0; i < 5000; ++i) {
    const double u = (i * 0.6180339887) - std::floor(i * 0.6180339887);
    all[0].times.push_back(i);
    all[0].values.insert(all[0].values.end(), {std::tan(3.14159 * (u - 0.5)), 1e12 + u, std::exp(8 * u * u),
                                               i % 100 == 0 ? 1e4 : 0.0});
  }
  EXPECT_EQ(data_warnings(collect_series({.channels = {"a", "b", "c", "d"}}, all)), Words{});
}

TEST(Prepare, SumsGoThroughTheRowsInTheirOrder) {
  // sums of these depend on their order
  const std::vector<double> x = {1e16, 1, -1e16, 0.1, kMissing, 3, 1e-3}, times = {0, 1, 2, 3, 4, 5, 6};
  std::vector<double> values;
  double sum = 0, squares = 0;
  for (const double value : x) {
    values.insert(values.end(), {kMissing, value});
    if (!std::isnan(value)) sum += value;
  }
  for (const double value : x) {
    if (!std::isnan(value)) squares += (value - sum / 6) * (value - sum / 6);
  }
  const Scale scale = fit_preparation(set_of({times}, {values})).channel_scales[1];
  EXPECT_EQ(scale.mean, sum / 6);
  EXPECT_EQ(scale.deviation, std::sqrt(squares / 5) + 1e-5);
}

TEST(Prepare, SomeSeriesHaveTheScalesOfASetOfTheirOwn) {
  const std::vector<Series> all = {
      {.times = {0, 3}, .values = {1, 2, 3, 4}, .statics = {1, kMissing}, .targets = {10}},
      {.times = {0, 1, 5}, .values = {0, kMissing, 7, 8, 9, 1}, .statics = {3, 2}, .targets = {20}},
      {.times = {2}, .values = {5, 5}, .statics = {kMissing, 2}, .targets = {kMissing}}};
  const DataHead head = {.name = "set", .channels = {"x", "y"}, .statics = {"a", "b"}, .targets = {"days"}};
  const DataSet data = collect_series(head, all);
  const auto pairs = [](const std::vector<Scale>& scales) {
    std::vector<std::pair<double, double>> result;
    for (const Scale& scale : scales) result.emplace_back(scale.mean, scale.deviation);
    return result;
  };
  for (const Scaling scaling : {Scaling::Standard, Scaling::Robust, Scaling::None}) {
    const Preparation got = fit_preparation(data, {2, 1}, {.scaling = scaling}),
                      expected = fit_preparation(select_series(data, {2, 1}), {.scaling = scaling});
    EXPECT_EQ(pairs(got.channel_scales), pairs(expected.channel_scales));
    EXPECT_EQ(pairs(got.static_scales), pairs(expected.static_scales));
    EXPECT_EQ(pairs(got.target_scales), pairs(expected.target_scales));
    EXPECT_EQ(got.static_flags, (std::vector<int64_t>{0}));
    EXPECT_EQ(got.median_gap, expected.median_gap);
    EXPECT_EQ(got.time_scale, expected.time_scale);
    EXPECT_EQ(got.count_scale, expected.count_scale);
  }
  EXPECT_EQ(error_message([&] { fit_preparation(data, {0, 3}, {}); }), "[prepare] no sample 3 in a set of 3");
}

TEST(Prepare, AChannelNeverObservedOrConstantKeepsFiniteScales) {
  const Preparation p = fit_preparation(set_of({{0, 1}}, {{kMissing, 5, kMissing, 5}}));
  EXPECT_EQ(p.channel_scales[0].mean, 0);
  EXPECT_EQ(p.channel_scales[0].deviation, 1);
  EXPECT_EQ(p.channel_scales[1](5), 0);
  const Preparation one = fit_preparation(set_of({{3}}, {{7, kMissing}}), {.scaling = Scaling::Robust});
  EXPECT_EQ(one.channel_scales[0](7), 0);
  EXPECT_EQ(one.median_gap, 1);
}

TEST(Prepare, WildValuesDoNotMoveRobustScales) {
  std::vector<double> times, values;
  for (int i = 0; i < 41; ++i) {
    times.push_back(i);
    values.insert(values.end(), {static_cast<double>(i % 21), 3});
  }
  const Preparation calm = fit_preparation(set_of({times}, {values}), {.scaling = Scaling::Robust});
  EXPECT_EQ(calm.channel_scales[0].mean, 10);
  EXPECT_DOUBLE_EQ(calm.channel_scales[0].deviation, 10 / 1.349);
  // two of the largest grow beyond all bounds
  values[40] = 1e12;
  values[38] = 1e15;
  const Preparation wild = fit_preparation(set_of({times}, {values}), {.scaling = Scaling::Robust});
  EXPECT_EQ(wild.channel_scales[0].mean, 10);
  EXPECT_DOUBLE_EQ(wild.channel_scales[0].deviation, 10 / 1.349);
  EXPECT_GT(fit_preparation(set_of({times}, {values})).channel_scales[0].deviation, 1e12);
}

TEST(Prepare, RobustScalesOfMostlyOneValueAreThoseOfTheOthers) {
  std::vector<double> times, values;
  for (int i = 0; i < 9; ++i) {
    times.push_back(i);
    values.insert(values.end(), {i == 8 ? 9.0 : 0.0, 0});
  }
  const Preparation p = fit_preparation(set_of({times}, {values}), {.scaling = Scaling::Robust});
  EXPECT_EQ(p.channel_scales[0].mean, 0);
  EXPECT_DOUBLE_EQ(p.channel_scales[0].deviation, 3 + 1e-5);
}

TEST(Prepare, WithoutScalingValuesStayAsTheyAre) {
  const Preparation p = fit_preparation(set_of({{0, 1}}, {{3, 5, 9, 7}}), {.scaling = Scaling::None});
  EXPECT_EQ(p.channel_scales[0](3), 3);
}

TEST(Prepare, TheMedianGapIsThatInsideSeries) {
  // gaps 1, 1, 4, 500, 3: none between series
  const DataSet data = set_of({{0, 1, 2, 6}, {-10, 490}, {5}, {100, 103}},
                              {{0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0}, {0, 0, 0, 0}});
  const Preparation p = fit_preparation(data, {.usual_gaps = 0});
  EXPECT_EQ(p.median_gap, 3);
  // a typical series lasts (6 + 500 + 0 + 3) / 4 / 3 gaps and ends at 3
  EXPECT_DOUBLE_EQ(p.time_scale, 509.0 / 4 / 3 / 3);
  // nine rows are in four series
  EXPECT_EQ(p.count_scale, 1);
}

TEST(Prepare, LongSeriesHaveScalesOfTimeAndCounts) {
  std::vector<double> times;
  for (int i = 0; i < 1001; ++i) times.push_back(0.5 * i);
  const Preparation p = fit_preparation(set_of({times}, {std::vector<double>(2002, 0.0)}));
  EXPECT_EQ(p.median_gap, 0.5);
  EXPECT_DOUBLE_EQ(p.time_scale, 1000.0 / 3);
  EXPECT_DOUBLE_EQ(p.count_scale, 1001.0 / 10);
  const Preparation raw = fit_preparation(set_of({times}, {std::vector<double>(2002, 0.0)}),
                                          {.typical_time = 0, .typical_count = 0});
  EXPECT_EQ(raw.time_scale, 1);
  EXPECT_EQ(raw.count_scale, 1);
}

TEST(Prepare, StaticFeaturesWithGapsHaveFlags) {
  const std::vector<Series> all = {
      {.times = {0}, .values = {0}, .statics = {1, 2, kMissing}, .targets = {10}},
      {.times = {0}, .values = {0}, .statics = {3, 2, 5}, .targets = {20}},
      {.times = {0}, .values = {0}, .statics = {5, 2, 7}, .targets = {kMissing}}};
  const DataSet data = collect_series(
      {.name = "set", .channels = {"x"}, .statics = {"a", "b", "c"}, .targets = {"days"}}, all);
  const Preparation p = fit_preparation(data, {.scaling = Scaling::None});
  EXPECT_EQ(p.static_flags, (std::vector<int64_t>{2}));
  EXPECT_EQ(p.model_statics(), 4);
  // they and targets are scaled whatever the channels are
  EXPECT_EQ(p.static_scales[0].mean, 3);
  EXPECT_EQ(p.static_scales[2].mean, 6);
  EXPECT_EQ(p.target_scales[0].mean, 15);
}

TEST(Prepare, TheModelSeesTimeCountsAndValues) {
  const DataSet data = set_of({{0, 1}}, {{1, 2, 3, 4}});
  EXPECT_EQ(fit_preparation(data).model_channels(), 3);
  EXPECT_EQ(fit_preparation(data, {.intensity = true}).model_channels(), 5);
  EXPECT_EQ(fit_preparation(data, {.time_channel = false}).model_channels(), 2);
}

TEST(Prepare, NothingToLearnFromIsRefused) {
  EXPECT_EQ(error_message([] { fit_preparation(set_of({}, {})); }), "[prepare] no series to train on");
  EXPECT_EQ(error_message([] {
              fit_preparation(set_of({{0}}, {{1, 2}}), {.clip = -1});
            }),
            "[prepare] clip must not be negative, got -1");
  EXPECT_EQ(error_message([] { fit_preparation(collect_series({.name = "set"}, {{.times = {0}}})); }),
            "[prepare] 'set' has no channels");
}

DataSet full_set() {
  const DataHead head = {.name = "old",
                         .channels = {"x", "y"},
                         .statics = {"age", "size"},
                         .targets = {"days", "cost"},
                         .classes = {"up", "down"}};
  return collect_series(head, {{.times = {0, 1},
                                .values = {1, 2, 3, 4},
                                .statics = {5, 6},
                                .label = "down",
                                .targets = {7, 8},
                                .step_labels = {"up", "down"}}});
}

TEST(Prepare, MatchedFindsNamesInAnyOrderAndLeavesOthersOut) {
  const DataHead head = {.name = "new",
                         .channels = {"y", "z", "x"},
                         .statics = {"size", "age"},
                         .targets = {"cost", "days", "more"},
                         .classes = {"down", "left", "up"}};
  const DataSet data = collect_series(
      head, {{.times = {0, 1},
              .values = {2, 9, 1, 4, 9, 3},
              .statics = {6, 5},
              .label = "down",
              .targets = {8, 7, 9},
              .step_labels = {"up", "down"}},
             {.times = {2},
              .values = {kMissing, 9, 1},
              .statics = {1, 2},
              .label = "left",
              .targets = {1, 2, 3},
              .step_labels = {"left"}},
             {.times = {2}, .values = {0, 0, 0}, .statics = {1, 2}, .label = "", .targets = {1, 2, 3}}});
  const Preparation p = fit_preparation(full_set());
  const DataSet same = match_data(data, p);
  expect_same(select_series(same, {0}), [] {
    DataSet expected = full_set();
    expected.ids = {""};
    return expected;
  }());
  // a class unknown to the model, and an unknown label
  EXPECT_EQ(same.labels, (std::vector<int64_t>{1, -1, -1}));
  EXPECT_EQ(same.step_labels, (std::vector<int64_t>{0, 1, -1, -1}));
  expect_equal(same.values, {1, 2, 3, 4, 1, kMissing, 0, 0}, "value");
}

TEST(Prepare, MatchedRefusesWhatIsMissing) {
  const Preparation p = fit_preparation(full_set());
  const auto refused = [&](auto change) {
    DataSet data = full_set();
    data.head.name = "new";
    change(data.head);
    return refusal([&] { match_data(data, p); });
  };
  EXPECT_EQ(refused([](DataHead& head) {
              head.channels = {"xx", "y"};
            }),
            "the model was trained with channel 'x', which 'new' lacks; the nearest is 'xx'");
  EXPECT_EQ(refused([](DataHead& head) {
              head.statics = {"aged", "size"};
            }),
            "the model was trained with static feature 'age', which 'new' lacks; the nearest is "
            "'aged'");
  EXPECT_EQ(refused([](DataHead& head) {
              head.targets = {"days", "coast"};
            }),
            "the model was trained with target 'cost', which 'new' lacks; the nearest is 'coast'");
}

TEST(Prepare, MatchedDataNeedNotKnowTheirTargets) {
  DataSet data = full_set();
  data.head.targets = {};
  data.targets = {};
  const DataSet same = match_data(data, fit_preparation(full_set()));
  EXPECT_EQ(same.head.targets, (Words{"days", "cost"}));
  expect_equal(same.targets, {kMissing, kMissing}, "target");
}

}  // namespace
}  // namespace fastweights::data

#include "data/time_split.h"

#include <set>

#include "data/data_support.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;

// series of these lengths, whose times are 10 apart and whose values count the rows of the set
DataSet set_of_lengths(const std::vector<int64_t>& lengths) {
  std::vector<Series> all;
  double value = 0;
  for (size_t b = 0; b < lengths.size(); ++b) {
    Series s = {.id = "s" + std::to_string(b)};
    for (int64_t i = 0; i < lengths[b]; ++i) {
      s.times.push_back(10 * static_cast<double>(i));
      s.values.push_back(value++);
      s.step_labels.push_back(i % 2 ? "odd" : "even");
    }
    all.push_back(std::move(s));
  }
  return collect_series({.name = "set", .channels = {"x"}}, all);
}

// rows of the set that a part covers
std::set<int64_t> rows_of(const DataSet& data, const Split& split, const std::vector<int64_t>& part) {
  std::set<int64_t> rows;
  for (const int64_t i : part) {
    const Window& window = split.windows[static_cast<size_t>(i)];
    for (int64_t row = window.first; row < window.last; ++row)
      rows.insert(data.offsets[static_cast<size_t>(window.sample)] + row);
  }
  return rows;
}

std::vector<std::pair<int64_t, int64_t>> bounds(const Split& split, const std::vector<int64_t>& part) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (const int64_t i : part)
    out.emplace_back(split.windows[static_cast<size_t>(i)].first, split.windows[static_cast<size_t>(i)].last);
  return out;
}

using Bounds = std::vector<std::pair<int64_t, int64_t>>;

TEST(TimeSplit, PartsFollowEachOtherWithAGapBetween) {
  const DataSet data = set_of_lengths({100, 57});
  for (const int64_t gap : {0, 1, 5}) {
    const Split split = split_data(
        data,
        {.rule = SplitRule::Time, .validation = 0.2, .test = 0.3, .window = 6, .stride = 2, .gap = gap});
    EXPECT_EQ(split.rule, SplitRule::Time);
    for (int64_t b = 0; b < 2; ++b) {
      int64_t last_train = -1, first_validation = 1000, last_validation = -1, first_test = 1000;
      const auto within = [&](const std::vector<int64_t>& part, const auto& use) {
        for (const int64_t i : part) {
          const Window& window = split.windows[static_cast<size_t>(i)];
          if (window.sample == b) use(window);
        }
      };
      within(split.train, [&](const Window& w) { last_train = std::max(last_train, w.last - 1); });
      within(split.validation, [&](const Window& w) {
        first_validation = std::min(first_validation, w.first);
        last_validation = std::max(last_validation, w.last - 1);
      });
      within(split.test, [&](const Window& w) { first_test = std::min(first_test, w.first); });
      EXPECT_GE(first_validation - last_train - 1, gap);
      EXPECT_GE(first_test - last_validation - 1, gap);
      // windows end at the ends of the parts
      const int64_t rows = data.length(b), tested = std::llround(0.3 * static_cast<double>(rows));
      EXPECT_EQ(last_validation, rows - tested - gap - 1);
    }
  }
}

TEST(TimeSplit, WindowsOfAForecastPredictEachRowOnce) {
  // 14 rows to train on, 3 for validation, 3 for the test
  const Split split =
      split_data(set_of_lengths({20}),
                 {.rule = SplitRule::Time, .validation = 0.15, .test = 0.15, .window = 3, .stride = 1});
  EXPECT_EQ(bounds(split, split.validation), (Bounds{{14, 17}}));
  EXPECT_EQ(bounds(split, split.test), (Bounds{{17, 20}}));
  // the last row of each is one after the last row of the window before
  Bounds expected;
  for (int64_t first = 0; first <= 11; ++first) expected.emplace_back(first, first + 3);
  EXPECT_EQ(bounds(split, split.train), expected);
}

TEST(TimeSplit, WindowsWithoutOverlapHoldEveryRow) {
  const DataSet data = set_of_lengths({101, 13});
  const Split split =
      split_data(data, {.rule = SplitRule::Time, .validation = 0.2, .test = 0.2, .window = 7, .stride = 7});
  std::multiset<int64_t> all;
  for (const auto* part : {&split.train, &split.validation, &split.test}) {
    const std::set<int64_t> rows = rows_of(data, split, *part);
    all.insert(rows.begin(), rows.end());
  }
  ASSERT_EQ(all.size(), 114u);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 114u);
  for (const Window& window : split.windows) EXPECT_LE(window.last - window.first, 7);
}

// of ten folds, too: tests are equal, follow each other to the end, and each is trained on all rows before it
TEST(TimeSplit, TheOriginRolls) {
  for (const int64_t folds : {2, 3, 10}) {
    const DataSet data = set_of_lengths({330});
    const int64_t tested = 330 / (folds + 1);
    std::set<int64_t> all;
    for (int64_t fold = 0; fold < folds; ++fold) {
      const Split split = split_data(data, {.rule = SplitRule::Rolling,
                                            .validation = 0.2,
                                            .folds = folds,
                                            .fold = fold,
                                            .window = 4,
                                            .stride = 4,
                                            .gap = 2});
      const std::set<int64_t> test = rows_of(data, split, split.test),
                              validation = rows_of(data, split, split.validation),
                              train = rows_of(data, split, split.train);
      EXPECT_EQ(static_cast<int64_t>(test.size()), tested);
      EXPECT_EQ(*test.rbegin(), 330 - (folds - 1 - fold) * tested - 1);
      EXPECT_EQ(*validation.rbegin(), *test.begin() - 3);
      EXPECT_EQ(*train.rbegin(), *validation.begin() - 3);
      EXPECT_EQ(*train.begin(), 0);
      EXPECT_NEAR(static_cast<double>(validation.size()), 0.2 * static_cast<double>(*test.begin() - 2), 1);
      all.insert(test.begin(), test.end());
    }
    EXPECT_EQ(static_cast<int64_t>(all.size()), folds * tested);
  }
}

TEST(TimeSplit, WindowsBecomeSeriesWithReadableIds) {
  const DataSet data = set_of_lengths({6, 4}), cut = cut_series(data, {{0, 2, 5}, {1, 0, 4}, {1, 3, 4}});
  EXPECT_EQ(cut.ids, (std::vector<std::string>{"s0 from 20", "s1", "s1 from 30"}));
  EXPECT_EQ(cut.offsets, (std::vector<int64_t>{0, 3, 7, 8}));
  EXPECT_EQ(cut.times, (std::vector<double>{20, 30, 40, 0, 10, 20, 30, 30}));
  EXPECT_EQ(cut.values, (std::vector<double>{2, 3, 4, 6, 7, 8, 9, 9}));
  EXPECT_EQ(cut.step_labels, (std::vector<int64_t>{0, 1, 0, 0, 1, 0, 1, 1}));
  for (const Window& bad :
       {Window{2, 0, 1}, Window{-1, 0, 1}, Window{0, 3, 3}, Window{0, -1, 2}, Window{1, 2, 5}})
    EXPECT_EQ(error_message([&] { cut_series(data, {bad}); }).rfind("[cut_series] no rows ", 0), 0u);
}

TEST(TimeSplit, DatesNameWindows) {
  TestFolder folder;
  std::string table = "id,time,x\n";
  for (int hour = 10; hour < 16; ++hour) table += "a,2024-03-01 " + std::to_string(hour) + ":00,1\n";
  const DataSet cut = cut_series(read_data(folder.file("hours.csv", table)), {{0, 3, 6}});
  EXPECT_EQ(cut.ids, (std::vector<std::string>{"a from 2024-03-01 13:00"}));
}

TEST(TimeSplit, SaysWhatIsMissing) {
  const auto refused = [](SplitConfig config) {
    config.rule = SplitRule::Time;
    return error_message([&] { split_data(set_of_lengths({40, 20}), config); });
  };
  EXPECT_EQ(refused({.window = 7, .stride = 1}),
            "[split] 'set' has no window of 7 rows for validation: of the 40 rows of its longest series 6 "
            "are for it; a smaller split.window or a larger fraction gives it one");
  EXPECT_EQ(refused({.validation = 0, .window = 7, .stride = 1}),
            "[split] 'set' has no window of 7 rows for the test: of the 40 rows of its longest series 6 "
            "are for it; a smaller split.window or a larger fraction gives it one");
  EXPECT_EQ(refused({.validation = 0, .test = 0, .window = 7, .stride = 1}), "");
  EXPECT_EQ(refused({.window = 0}),
            "[split] the number of rows of a window, split.window, must be positive, got 0");
  EXPECT_EQ(refused({.window = 4, .stride = 5}),
            "[split] split.stride must be 1 to 4, the rows of a window, got 5");
  EXPECT_EQ(refused({.window = 4, .stride = 4, .gap = -1}), "[split] split.gap must not be negative, got -1");
  EXPECT_EQ(error_message([] {
              split_data(set_of_lengths({40}),
                         {.rule = SplitRule::Rolling, .folds = 3, .fold = 3, .window = 2, .stride = 2});
            }),
            "[split] fold must be in 0 .. 2, got 3");
}

}  // namespace
}  // namespace fastweights::data

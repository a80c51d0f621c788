#include "data/model_time.h"

#include "data/data_support.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;

// one channel
DataSet one_channel(const std::vector<std::vector<double>>& times,
                    const std::vector<std::vector<double>>& values) {
  std::vector<Series> all;
  for (size_t b = 0; b < times.size(); ++b) all.push_back({.times = times[b], .values = values[b]});
  return collect_series({.name = "set", .channels = {"x"}}, all);
}

TEST(ModelTime, GapsSaturateAtTwiceTheUsualOne) {
  EXPECT_EQ(saturated(1.7, 0), 1.7);
  EXPECT_EQ(saturated(1.7, 2), 1.7);
  EXPECT_EQ(saturated(2, 2), 2);
  EXPECT_DOUBLE_EQ(saturated(8, 2), 4 - 4.0 / 8);
  EXPECT_EQ(saturated(INFINITY, 2), 4);
  // no overflow
  EXPECT_EQ(saturated(1e300, 1e200), 2e200);
  double before = 0;
  for (double gap = 0.01; gap < 1e12; gap *= 1.1) {
    const double here = saturated(gap, 2);
    EXPECT_GT(here, before) << gap;
    EXPECT_LE(here, gap) << gap;
    // the inverse amplifies rounding by the slope, 4 / gap^2, which is 1e-4 here
    if (gap < 200) {
      EXPECT_NEAR(unsaturated(here, 2) / gap, 1, 1e-12) << gap;
    }
    before = here;
  }
}

// slopes on both sides of the usual gap are 1
TEST(ModelTime, SaturationIsSmooth) {
  constexpr double kStep = 1e-6;
  for (const double gap : {2 - 2 * kStep, 2.0, 2 + 2 * kStep})
    // the second derivative is at most 1
    EXPECT_NEAR((saturated(gap + kStep, 2) - saturated(gap - kStep, 2)) / (2 * kStep), 1, 4 * kStep);
}

TEST(ModelTime, RunsWithTimeAfterAGap) {
  ModelClock clock(10, 2);
  EXPECT_EQ(clock.at(12), 12);
  clock.observe(11.3);
  EXPECT_EQ(clock.at(11.4), 11.4) << "bit by bit";
  // an output inside a gap, and the end of the gap
  EXPECT_DOUBLE_EQ(clock.at(15.3), 11.3 + 3);
  EXPECT_DOUBLE_EQ(clock.inverse(11.3 + 3), 15.3);
  clock.observe(19.3);
  EXPECT_DOUBLE_EQ(clock.at(19.3), 11.3 + 3.5);
  EXPECT_DOUBLE_EQ(clock.at(20), 11.3 + 3.5 + 0.7);
  EXPECT_DOUBLE_EQ(clock.inverse(clock.at(20)), 20);
  ModelClock off(10, 0);
  off.observe(1e9 + 0.1);
  EXPECT_EQ(off.at(1e17), 1e17);
}

// a long gap costs no digits of what follows
TEST(ModelTime, IsPreciseAfterEnormousGaps) {
  ModelClock clock(0, 1);
  clock.observe(1e15);
  // 2 - 1e-15
  EXPECT_NEAR(clock.at(1e15), 2, 2e-15);
  EXPECT_NEAR(clock.at(1e15 + 0.5), 2.5, 2e-15);
}

TEST(ModelTime, TheUsualGapIsAQuantileOfGapsBetweenObservedRows) {
  // gaps 1, 3 (over an empty row), 2 | 7, 10; the empty row at the end ends none
  const DataSet data =
      one_channel({{0, 1, 2, 4, 6}, {5, 12, 22, 1000}}, {{1, 1, kMissing, 1, 1}, {1, 1, 1, kMissing}});
  const auto usual = [&](double share) { return fit_preparation(data, {.usual_gaps = share}).usual_gap; };
  EXPECT_EQ(usual(1), 10);
  EXPECT_EQ(usual(0.99), 7);
  EXPECT_EQ(usual(0.75), 7);
  // the median is 2 between rows and 3 between observed rows: twice the former is ordinary
  EXPECT_EQ(usual(0.1), 4);
  EXPECT_EQ(usual(0.5), 4);
  EXPECT_EQ(usual(0), 0);
  EXPECT_EQ(fit_preparation(data, {1}, {.usual_gaps = 0.5}).usual_gap, 20) << "twice 10, between rows";
  for (const double share : {-0.1, 1.1})
    EXPECT_EQ(error_message([&] { usual(share); }).rfind("[prepare] usual_gaps must be 0 to 1, got ", 0), 0u);
}

TEST(ModelTime, OneEnormousGapDoesNotSetTheScaleOfTime) {
  std::vector<std::vector<double>> times(9), values(9);
  for (size_t b = 0; b < times.size(); ++b) {
    for (int i = 0; i < 31; ++i) times[b].push_back(i);
    values[b].assign(31, 1.0);
  }
  times[4].back() = 1e9;
  const Preparation p = fit_preparation(one_channel(times, values)),
                    off = fit_preparation(one_channel(times, values), {.usual_gaps = 0});
  EXPECT_EQ(p.usual_gap, 2);
  // 30 gaps are 3 units of the time channel; the long one counts as two usual ones
  EXPECT_NEAR(p.time_scale, (30 + 3.0 / 9) / 3, 1e-6);
  EXPECT_GT(off.time_scale, 1e7);
}

}  // namespace
}  // namespace fastweights::data

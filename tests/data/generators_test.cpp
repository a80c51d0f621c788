#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/readers.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;

// rows in which nothing is missing
std::vector<std::pair<double, double>> points(const DataSet& data, int64_t sample) {
  std::vector<std::pair<double, double>> found;
  for (auto i = static_cast<size_t>(data.offsets[static_cast<size_t>(sample)]);
       i < static_cast<size_t>(data.offsets[static_cast<size_t>(sample) + 1]); ++i) {
    const double x = data.values[2 * i], y = data.values[2 * i + 1];
    if (!std::isnan(x) && !std::isnan(y)) found.emplace_back(x, y);
  }
  return found;
}

TEST(Generators, SpiralsAreToldByTheirSenseOfRotation) {
  const DataSet data = make_data("spirals");
  ASSERT_EQ(data.samples(), 500);
  int right = 0;
  for (int64_t b = 0; b < data.samples(); ++b) {
    // twice the area that the path goes around, seen from the origin
    double area = 0;
    const auto path = points(data, b);
    for (size_t i = 1; i < path.size(); ++i)
      area += path[i - 1].first * path[i].second - path[i - 1].second * path[i].first;
    right += (area > 0 ? 0 : 1) == data.labels[static_cast<size_t>(b)];
  }
  EXPECT_GE(right, 490);
}

TEST(Generators, TheEndOfASpiralDoesNotTellItsClass) {
  const DataSet data = make_data("spirals:samples=1000");
  const auto end = [&](int64_t b) { return points(data, b).back(); };
  int right = 0;
  for (int64_t b = 0; b < data.samples(); ++b) {
    int64_t closest = -1;
    double least = INFINITY;
    for (int64_t other = 0; other < data.samples(); ++other) {
      const double dx = end(b).first - end(other).first, dy = end(b).second - end(other).second;
      if (other != b && dx * dx + dy * dy < least) least = dx * dx + dy * dy, closest = other;
    }
    right += data.labels[static_cast<size_t>(b)] == data.labels[static_cast<size_t>(closest)];
  }
  // of 1000 guesses 500 are right, give or take four standard deviations of 16
  EXPECT_NEAR(right, 500, 64);
}

TEST(Generators, SpiralsAreRaggedIrregularAndIncomplete) {
  const DataSet data = make_data("spirals:samples=50,length=20,missing=0.3");
  int64_t shortest = 1000, longest = 0;
  for (int64_t b = 0; b < 50; ++b) {
    shortest = std::min(shortest, data.length(b));
    longest = std::max(longest, data.length(b));
  }
  EXPECT_LT(shortest, 17);
  EXPECT_GT(longest, 23);
  EXPECT_NE(data.times[1] - data.times[0], data.times[2] - data.times[1]);
  const auto missing =
      std::count_if(data.values.begin(), data.values.end(), [](double x) { return std::isnan(x); });
  EXPECT_NEAR(static_cast<double>(missing) / static_cast<double>(data.values.size()), 0.3, 0.05);
}

TEST(Generators, TheCueOfLongRecallIsAtTheBeginningOnly) {
  const DataSet data = make_data("long-recall:gap=50,samples=300,classes=3,cue=4,noise=0.3");
  ASSERT_EQ(data.samples(), 300);
  ASSERT_EQ(data.channels(), 3);
  int right = 0, later = 0;
  for (int64_t b = 0; b < 300; ++b) {
    EXPECT_EQ(data.length(b), 54);
    // the channel with the largest sum over these steps
    const auto loudest = [&](size_t first, size_t last) {
      std::vector<double> sums(3);
      for (size_t i = first; i < last; ++i) {
        for (size_t k = 0; k < 3; ++k)
          sums[k] += data.values[(static_cast<size_t>(data.offsets[static_cast<size_t>(b)]) + i) * 3 + k];
      }
      return std::max_element(sums.begin(), sums.end()) - sums.begin();
    };
    right += loudest(0, 4) == data.labels[static_cast<size_t>(b)];
    later += loudest(4, 54) == data.labels[static_cast<size_t>(b)];
  }
  EXPECT_GE(right, 297);
  // a third by chance, give or take four standard deviations of 8
  EXPECT_NEAR(later, 100, 33);
}

TEST(Generators, SyntheticWormsHaveTheShapeOfTheRealOnes) {
  const DataSet data = make_data("synthetic-eigenworms:length=150");
  EXPECT_EQ(data.head.origin, "synthetic");
  ASSERT_EQ(data.samples(), 259);
  EXPECT_EQ(data.channels(), 6);
  EXPECT_EQ(data.rows(), 259 * 150);
  std::vector<int64_t> train(5);
  int64_t test = 0;
  for (size_t b = 0; b < 259; ++b) {
    if (data.parts[b] == Part::Train) ++train[static_cast<size_t>(data.labels[b])];
    if (data.parts[b] == Part::Test) ++test;
  }
  EXPECT_EQ(train, (std::vector<int64_t>{55, 22, 17, 22, 12}));
  EXPECT_EQ(test, 131);
  EXPECT_NE(built_in_sets()[2].second.find("length=17984"), std::string::npos);
}

// mean product of neighbours in time, channel 0, over the variance: slow rounds have a large one
TEST(Generators, SyntheticWormsDifferInTimeNotInSize) {
  const size_t length = 3000, lag = 20;
  const DataSet data = make_data("synthetic-eigenworms:length=3000,noise=0");
  std::vector<double> variances(5), memories(5), counts(5);
  for (size_t b = 0; b < 259; ++b) {
    const auto x = [&](size_t i) { return data.values[(b * length + i) * 6]; };
    const auto label = static_cast<size_t>(data.labels[b]);
    for (size_t i = 0; i + lag < length; ++i) {
      variances[label] += x(i) * x(i);
      memories[label] += x(i) * x(i + lag);
      counts[label] += 1;
    }
  }
  for (size_t k = 0; k < 5; ++k) {
    // 9 independent stretches of at least 24 series: the variance is known to about 15 %
    EXPECT_NEAR(variances[k] / counts[k] / (6.4 * 6.4 / 2), 1, 0.3) << k;
    if (k > 0) {
      EXPECT_LT(memories[k] / variances[k], memories[k - 1] / variances[k - 1] - 0.02) << k;
    }
  }
}

TEST(Generators, TheSameNumbersComeEveryTime) {
  const auto first = make_data("spirals:samples=3,seed=5,missing=0"),
             second = make_data("spirals:samples=3,seed=5,missing=0");
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(first.times, second.times);
  EXPECT_NE(make_data("spirals:samples=3,seed=6,missing=0").values, first.values);
  // more samples leave those before them alone
  const DataSet more = make_data("spirals:samples=4,seed=5,missing=0");
  EXPECT_TRUE(std::equal(first.values.begin(), first.values.end(), more.values.begin()));
}

// written down once: another compiler, processor or library must not change a bit
TEST(Generators, TheSameNumbersComeOnEveryMachine) {
  const DataSet spirals = make_data("spirals:samples=3,missing=0");
  EXPECT_EQ(spirals.values.front(), -0x1.1a44938418c04p+0);
  EXPECT_EQ(spirals.values.back(), -0x1.44cb10fb73322p+0);
  EXPECT_EQ(spirals.times.back(), 0x1.8e95d1b1c6fbdp+3);
  const DataSet recall = make_data("long-recall:samples=2");
  EXPECT_EQ(recall.values.front(), 0x1.cf496490037bcp-1);
  EXPECT_EQ(recall.values.back(), -0x1.d9310acb3d5ecp-6);
  const DataSet worms = make_data("synthetic-eigenworms:length=200");
  EXPECT_EQ(worms.values.front(), 0x1.80a79af517c08p+1);
  EXPECT_EQ(worms.values.back(), 0x1.db17e858d7e46p-1);
}

TEST(Generators, MistakesAreNamed) {
  EXPECT_EQ(error_message([] { make_data("spiral"); }),
            "unknown built-in set 'spiral'; the nearest is 'spirals'");
  EXPECT_EQ(error_message([] { make_data("spirals:sample=3"); }),
            "spirals has no setting 'sample'; the nearest is 'samples'");
  EXPECT_EQ(error_message([] { make_data("spirals:samples"); }),
            "spirals: expected settings such as samples=500, got 'samples'");
  EXPECT_EQ(error_message([] { make_data("spirals:samples=x"); }),
            "spirals: samples must be an integer from 1 to 10000000, got 'x'");
  EXPECT_EQ(error_message([] { make_data("spirals:samples=2.5"); }),
            "spirals: samples must be an integer from 1 to 10000000, got '2.5'");
  EXPECT_EQ(error_message([] { make_data("spirals:noise=-1"); }),
            "spirals: noise must be a number from 0 to 1000, got '-1'");
}

TEST(Generators, EverySetIsListedWithItsSettings) {
  for (const auto& [name, sentence] : built_in_sets()) {
    EXPECT_NE(sentence.find("seed=1"), std::string::npos) << name;
    EXPECT_NE(sentence.find("; settings: "), std::string::npos) << name;
  }
  EXPECT_EQ(built_in_sets().size(), 3u);
}

}  // namespace
}  // namespace fastweights::data

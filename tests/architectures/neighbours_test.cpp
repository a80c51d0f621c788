#include <algorithm>
#include <cmath>
#include <limits>

#include "architectures/dtw.h"
#include "base/random.h"
#include "fastweights/network.h"
#include "support/support.h"

/// Time warping against the plain table, and nearest neighbours by all distances.

namespace fastweights {
namespace {

using testing::error_message;
using testing::random;

WarpedSeries some_series(int64_t channels, int64_t length, uint64_t seed) {
  Random numbers(seed);
  WarpedSeries out = {length, channels, {}};
  for (int64_t c = 0; c < channels; ++c) {
    double value = 0;
    for (int64_t t = 0; t < length; ++t) {
      value += numbers.uniform(-1, 1);
      out.values.push_back(static_cast<float>(value));
    }
  }
  return out;
}

// the whole table; rows more than the band apart are not aligned
double plain_distance(const WarpedSeries& a, const WarpedSeries& b, int64_t band) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> sums(static_cast<size_t>(a.length) + 1,
                                        std::vector<double>(static_cast<size_t>(b.length) + 1, infinity));
  sums[0][0] = 0;
  for (size_t i = 1; i < sums.size(); ++i) {
    for (size_t j = 1; j < sums[i].size(); ++j) {
      if (std::abs(static_cast<int64_t>(i) - static_cast<int64_t>(j)) > band) continue;
      double cost = 0;
      for (int64_t c = 0; c < a.channels; ++c) {
        const double difference =
            static_cast<double>(a.channel(c)[i - 1]) - static_cast<double>(b.channel(c)[j - 1]);
        cost += difference * difference;
      }
      sums[i][j] = cost + std::min({sums[i - 1][j], sums[i][j - 1], sums[i - 1][j - 1]});
    }
  }
  return sums.back().back();
}

double distance(const WarpedSeries& a, const WarpedSeries& b, int64_t band, double best = INFINITY) {
  return warped_distance(a, b, band, lower_bounds(a, envelope_of(b)), best);
}

TEST(TimeWarping, IsThePlainTableForUnequalLengthsAndBands) {
  for (const auto& [n, m] : {std::pair<int64_t, int64_t>{17, 17}, {9, 23}, {23, 9}, {2, 5}, {5, 2}}) {
    const WarpedSeries a = some_series(3, n, 1), b = some_series(3, m, 2);
    for (const double window : {0.0, 0.1, 0.3, 1.0}) {
      const int64_t band = band_of(a, b, window);
      const double expected = plain_distance(a, b, band);
      ASSERT_TRUE(std::isfinite(expected));
      // costs are float32
      EXPECT_NEAR(distance(a, b, band), expected, 1e-5 * expected) << n << " " << m << " " << window;
    }
  }
}

TEST(TimeWarping, WithoutABandItIsTheEuclideanDistance) {
  const WarpedSeries a = some_series(2, 11, 3), b = some_series(2, 11, 4);
  double expected = 0;
  for (size_t i = 0; i < a.values.size(); ++i)
    expected += std::pow(static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]), 2);
  EXPECT_NEAR(distance(a, b, band_of(a, b, 0)), expected, 1e-5 * expected);
}

TEST(TimeWarping, BoundsAreBelowAndAbandoningIsRight) {
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const WarpedSeries a = some_series(2, 8 + static_cast<int64_t>(seed % 7), seed),
                       b = some_series(2, 12, 100 + seed);
    const double whole = plain_distance(a, b, 100);
    EXPECT_LE(lower_bounds(a, envelope_of(b))[0], whole * (1 + 1e-5));
    EXPECT_NEAR(distance(a, b, 100, whole * 1.001), whole, 1e-5 * whole);
    EXPECT_TRUE(std::isinf(distance(a, b, 100, whole * 0.5)) ||
                distance(a, b, 100, whole * 0.5) > whole * 0.5);
  }
}

ModelInput ragged_input(const std::vector<int64_t>& lengths, uint64_t seed) {
  std::vector<Tensor> times, values;
  for (const int64_t length : lengths) {
    times.push_back(at::arange(length, at::kDouble));
    values.push_back(random({length, 2}, ++seed).cumsum(0));
  }
  return {.series = ragged(times, values)};
}

Model fitted_neighbours(const ModelInput& input, const Tensor& classes, int64_t outputs) {
  const ModelConfig config = named_model("1nn-dtw", {.channels = 2,
                                                     .outputs = outputs,
                                                     .series = input.series.samples(),
                                                     .rows = input.series.times.size(0)});
  const Model model(config);
  config.architecture.type().fit(config, *model.network(), {.train = {input, classes, {}}, .validation = {}});
  return model;
}

TEST(NearestNeighbours, AreThoseWithTheLeastOfAllDistances) {
  const std::vector<int64_t> lengths = {9, 12, 7, 15, 11, 8, 10};
  const ModelInput train = ragged_input(lengths, 1), queries = ragged_input({10, 6, 14, 9, 12}, 50);
  const Tensor classes = at::arange(7, at::kLong);
  const Tensor found = fitted_neighbours(train, classes, 7).forward(queries).outputs.argmax(1);
  const auto series_of = [](const RaggedSeries& all, int64_t b) {
    const int64_t first = all.offsets[b].item<int64_t>(), last = all.offsets[b + 1].item<int64_t>();
    const Tensor own = all.values.slice(0, first, last).t().contiguous().to(at::kFloat);
    return WarpedSeries{last - first, 2, {own.data_ptr<float>(), own.data_ptr<float>() + own.numel()}};
  };
  for (int64_t q = 0; q < 5; ++q) {
    std::vector<double> distances;
    for (int64_t b = 0; b < 7; ++b)
      distances.push_back(plain_distance(series_of(queries.series, q), series_of(train.series, b), 100));
    EXPECT_EQ(found[q].item<int64_t>(),
              std::min_element(distances.begin(), distances.end()) - distances.begin());
  }
}

// two groups far apart: left out, every series finds its class
TEST(NearestNeighbours, ProbabilitiesComeFromLeavingOneOut) {
  ModelInput train = ragged_input({6, 7, 6, 8, 7, 6}, 7);
  const Tensor classes = at::tensor({0, 1, 0, 1, 0, 1}, at::kLong);
  const Tensor counts = train.series.offsets.slice(0, 1) - train.series.offsets.slice(0, 0, -1);
  train.series.values =
      train.series.values + 100 * classes.repeat_interleave(counts).to(at::kDouble).unsqueeze(1);
  const Tensor logits = fitted_neighbours(train, classes, 1).forward(train).outputs;
  // six of six are right: (6 + 1) / (6 + 2)
  for (int64_t b = 0; b < 6; ++b)
    EXPECT_NEAR(logits[b][0].item<double>(), (b % 2 == 1 ? 1 : -1) * std::log(7.0), 1e-5);
}

TEST(NearestNeighbours, EuclideanSeriesAreStretchedToOneLength) {
  const ModelInput train = {
      .series = ragged({at::arange(5, at::kDouble), at::arange(5, at::kDouble)},
                       {at::arange(5, at::kDouble).unsqueeze(1), at::full({5, 1}, 2.0, at::kDouble)})};
  const ModelConfig config = named_model(
      "1nn-ed", {.channels = 1, .outputs = 3, .series = 2, .rows = 10, .longest = 5, .shortest = 5});
  const Model model(config);
  const Tensor targets = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, at::kDouble).view({2, 3});
  config.architecture.type().fit(config, *model.network(), {.train = {train, {}, targets}, .validation = {}});
  // the same line with nine points, and a constant one with two
  const ModelInput queries = {
      .series = ragged({at::arange(9, at::kDouble), at::arange(2, at::kDouble)},
                       {0.5 * at::arange(9, at::kDouble).unsqueeze(1), at::full({2, 1}, 1.9, at::kDouble)})};
  EXPECT_TRUE(at::equal(model.forward(queries).outputs.to(at::kDouble), targets));
}

TEST(NearestNeighbours, AnUnfittedOneSaysSo) {
  const Model model(named_model("1nn-dtw", {.channels = 2}));
  EXPECT_NE(error_message([&] { model.forward(ragged_input({5}, 1)); }).find("fit it to data first"),
            std::string::npos);
}

}  // namespace
}  // namespace fastweights

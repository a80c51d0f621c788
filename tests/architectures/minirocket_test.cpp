#include <cmath>
#include <numeric>

#include "architectures/linear_head.h"
#include "architectures/rocket_kernels.h"
#include "base/random.h"
#include "fastweights/network.h"
#include "support/support.h"

/// MiniROCKET against a plain transcription of its definition (Dempster, Schmidt and Webb 2021, section 3,
/// and the authors' extensions to several channels and lengths), and its heads against refitted models.

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;
using Matrix = std::vector<std::vector<double>>;

// the plain definition, in float64: a kernel is nine weights
struct PlainRocket {
  std::vector<int64_t> dilations, counts;

  PlainRocket(int64_t length, int64_t features, int64_t most) {
    const int64_t per_kernel = features / 84, points = std::min(per_kernel, most);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < points; ++i)
      all.push_back(static_cast<int64_t>(
          std::floor(std::exp2(std::log2((static_cast<double>(length) - 1) / 8) * static_cast<double>(i) /
                               static_cast<double>(points - 1)))));
    for (const int64_t d : all) {
      if (dilations.empty() || dilations.back() != d) {
        dilations.push_back(d);
        counts.push_back(std::count(all.begin(), all.end(), d) * per_kernel / points);
      }
    }
    int64_t left = per_kernel - std::accumulate(counts.begin(), counts.end(), int64_t{0});
    for (size_t i = 0; left > 0; --left) ++counts[i++ % counts.size()];
  }
};

// the number of a kernel, from its weights 2
std::vector<std::vector<double>> plain_kernels() {
  std::vector<std::vector<double>> kernels;
  for (int i = 0; i < 512; ++i) {
    // in lexicographic order of the positions of the twos: bits from the left
    const int bits = 511 - i;
    if (__builtin_popcount(static_cast<unsigned>(bits)) != 3) continue;
    std::vector<double> weights;
    for (int k = 8; k >= 0; --k) weights.push_back((bits >> k) & 1 ? 2 : -1);
    kernels.push_back(weights);
  }
  return kernels;
}

std::vector<double> plain_convolution(const Matrix& x, const std::vector<int64_t>& channels,
                                      const std::vector<double>& weights, int64_t dilation) {
  const auto length = static_cast<int64_t>(x[0].size());
  std::vector<double> out(x[0].size(), 0.0);
  for (int64_t t = 0; t < length; ++t) {
    for (const int64_t c : channels) {
      for (int64_t k = 0; k < 9; ++k) {
        const int64_t at = t + (k - 4) * dilation;
        if (at >= 0 && at < length)
          out[static_cast<size_t>(t)] +=
              weights[static_cast<size_t>(k)] * x[static_cast<size_t>(c)][static_cast<size_t>(at)];
      }
    }
  }
  return out;
}

double plain_quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * (static_cast<double>(values.size()) - 1);
  const auto low = static_cast<size_t>(at);
  if (low + 1 == values.size()) return values[low];
  return values[low] * (static_cast<double>(low) + 1 - at) +
         values[low + 1] * (at - static_cast<double>(low));
}

// multiples of 1/8: sums are exact in any order
Matrix eighths(int64_t channels, int64_t length, uint64_t seed) {
  Random numbers(seed);
  Matrix x(static_cast<size_t>(channels), std::vector<double>(static_cast<size_t>(length)));
  for (auto& row : x) {
    for (double& value : row) value = static_cast<double>(numbers.next() % 65) / 8 - 4;
  }
  return x;
}

FilledSeries as_series(const Matrix& x) {
  FilledSeries out;
  for (size_t t = 0; t < x[0].size(); ++t) out.times.push_back(static_cast<double>(t));
  for (const auto& row : x) out.values.insert(out.values.end(), row.begin(), row.end());
  return out;
}

std::vector<std::vector<int64_t>> plain_channels(int64_t convolutions, int64_t channels, uint64_t seed) {
  Random numbers(seed);
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < convolutions; ++i) {
    const auto count = static_cast<size_t>(
        std::floor(std::exp2(numbers.uniform(0, std::log2(std::min(channels, int64_t{9}) + 1.0)))));
    // drawn without replacement
    std::vector<int64_t> left(static_cast<size_t>(channels)), chosen;
    std::iota(left.begin(), left.end(), int64_t{0});
    while (chosen.size() < count) {
      const size_t k = chosen.size(), j = k + numbers.next() % (left.size() - k);
      std::swap(left[k], left[j]);
      chosen.push_back(left[k]);
    }
    all.push_back(chosen);
  }
  return all;
}

void expect_transcription(const std::vector<Matrix>& data, int64_t reference, bool alternate) {
  constexpr uint64_t kChannels = 3, kBiases = 4;
  constexpr int64_t kFeatures = 1000;
  const auto channels = static_cast<int64_t>(data[0].size());
  const PlainRocket plain(reference, kFeatures, 8);
  RocketPlan plan = rocket_plan(reference, kFeatures, 8);
  plan.alternate = alternate;
  ASSERT_EQ(plan.dilations, plain.dilations);
  ASSERT_EQ(plan.features, plain.counts);
  const auto chosen = plain_channels(plan.convolutions(), channels, kChannels);
  std::vector<FilledSeries> series;
  for (const Matrix& x : data) series.push_back(as_series(x));
  const Tensor mask = rocket_channels(plan, channels, kChannels);
  const Tensor biases = rocket_biases(plan, mask, series, kBiases, at::kDouble);
  const Tensor features = rocket_features(plan, mask, biases, series);
  const auto kernels = plain_kernels();
  ASSERT_EQ(kernels.size(), 84u);
  Random numbers(kBiases);
  int64_t f = 0;
  size_t convolution = 0;
  for (size_t d = 0; d < plain.dilations.size(); ++d) {
    for (size_t k = 0; k < 84; ++k, ++convolution) {
      const Matrix& one = data[numbers.next() % data.size()];
      const auto output = plain_convolution(one, chosen[convolution], kernels[k], plain.dilations[d]);
      for (int64_t i = 0; i < plain.counts[d]; ++i, ++f) {
        const double turns = static_cast<double>(f + 1) * (1 + std::sqrt(5.0)) / 2;
        const double bias = plain_quantile(output, turns - std::floor(turns));
        ASSERT_NEAR(biases[f].item<double>(), bias, 1e-9) << f;
        for (size_t b = 0; b < data.size(); ++b) {
          auto values = plain_convolution(data[b], chosen[convolution], kernels[k], plain.dilations[d]);
          const auto padding = static_cast<size_t>(4 * plain.dilations[d]);
          if (alternate && (d + k) % 2 == 1)
            values = {values.begin() + static_cast<int64_t>(padding),
                      values.end() - static_cast<int64_t>(padding)};
          // the quantile itself is rounded where it lies between two values
          const auto above =
              std::count_if(values.begin(), values.end(), [&](double v) { return v > bias + 1e-9; });
          const double share = static_cast<double>(above) / static_cast<double>(values.size());
          ASSERT_NEAR(features[static_cast<int64_t>(b)][f].item<double>(), share, 1e-12) << b << " " << f;
        }
      }
    }
  }
  EXPECT_EQ(f, 84 * (kFeatures / 84));
}

TEST(MiniRocketTransform, IsThePublishedOneForEqualLengths) {
  expect_transcription({eighths(1, 41, 1), eighths(1, 41, 2), eighths(1, 41, 3)}, 41, true);
}

TEST(MiniRocketTransform, IsThePublishedOneForChannelsAndUnequalLengths) {
  expect_transcription({eighths(5, 33, 1), eighths(5, 12, 2), eighths(5, 21, 3)}, 33, false);
}

TEST(MiniRocketTransform, ShortSeriesHaveOneDilation) {
  const RocketPlan plan = rocket_plan(4, 10'000, 32);
  EXPECT_EQ(plan.dilations, std::vector<int64_t>{1});
  EXPECT_EQ(plan.feature_count(), 9996);
}

TEST(MiniRocketTransform, IrregularSeriesGetARegularGrid) {
  const FilledSeries series = on_regular_grid({{0, 1, 4}, {0, 2, 8}}, 1);
  EXPECT_EQ(series.times, (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(series.values, (std::vector<double>{0, 2, 4, 6, 8}));
  const FilledSeries regular = on_regular_grid({{0, 1.001, 2}, {5, 6, 7}}, 1);
  EXPECT_EQ(regular.values, (std::vector<double>{5, 6, 7}));
  // a gap of a million does not need a million rows
  EXPECT_LE(on_regular_grid({{0, 1, 1e6}, {0, 1, 2}}, 1).length(), 32);
}

TEST(MiniRocketTransform, MissingValuesAreInterpolatedInTime) {
  const RaggedSeries series = {
      at::tensor({7.0, NAN, 7.0, 1.0, 7.0, NAN, 7.0, 4.0, 7.0, NAN}, at::kDouble).view({5, 2}),
      at::tensor({0.0, 1.0, 2.0, 4.0, 5.0}, at::kDouble), at::tensor({0, 5}, at::kLong)};
  const FilledSeries filled = fill_series(series, 0, /*known_channels=*/1);
  EXPECT_EQ(filled.values, (std::vector<double>{1, 1, 2, 4, 4}));
}

// standardised as StandardScaler does: population deviation
Tensor standardised(const Tensor& x, const Tensor& by) {
  return (x - by.mean(0)) / (by - by.mean(0)).square().mean(0).sqrt();
}

// the minimum of squares and penalty, by its normal equations: [F + 1, O], the intercept last and not
// penalised
Tensor plain_ridge(const Tensor& x, const Tensor& y, double penalty) {
  const Tensor ones = at::ones({x.size(0), 1}, at::kDouble), all = at::cat({x, ones}, 1);
  Tensor penalties = at::full({all.size(1)}, penalty, at::kDouble);
  penalties[-1] = 0;
  return at::matmul(at::linalg_inv(at::matmul(all.t(), all) + at::diag(penalties)), at::matmul(all.t(), y));
}

TEST(RidgeHead, ThePenaltyHasTheLeastErrorOfRefittedModels) {
  const Tensor x = random({15, 6}, 1), standard = standardised(x, x);
  const Tensor classes = (x.select(1, 0) + 0.6 * random({15}, 2)).gt(0).to(at::kLong);
  const Tensor y = (2 * classes - 1).to(at::kDouble).unsqueeze(1);
  double best_error = INFINITY, best = 0;
  for (int i = 0; i < 10; ++i) {
    const double penalty = std::pow(10, -3 + 2.0 * i / 3);
    double error = 0;
    for (int64_t left = 0; left < 15; ++left) {
      std::vector<int64_t> rest;
      for (int64_t k = 0; k < 15; ++k) {
        if (k != left) rest.push_back(k);
      }
      const Tensor index = at::tensor(rest, at::kLong);
      const Tensor w = plain_ridge(standard.index_select(0, index), y.index_select(0, index), penalty);
      const Tensor p = at::matmul(standard[left], w.slice(0, 0, -1)) + w[-1];
      error += (p - y[left]).square().item<double>();
    }
    if (error < best_error) {
      best_error = error;
      best = penalty;
    }
  }
  // not at the ends, or nothing was chosen
  EXPECT_GT(best, 1e-3);
  EXPECT_LT(best, 1e3);
  const LinearHead head = ridge_head({x, classes, {}}, 1);
  const Tensor w = plain_ridge(standard, y, best);
  const Tensor expected = at::matmul(standard, w.slice(0, 0, -1)) + w[-1];
  const Tensor got = at::matmul(x, head.weight.t()) + head.bias;
  // logits: the decision values times a positive factor
  const double factor = (got.norm() / expected.norm()).item<double>();
  EXPECT_LT(relative_error(got, factor * expected), 1e-9) << head.note;
}

TEST(RidgeHead, TargetsArePredictedAsTheyAre) {
  const Tensor x = random({40, 3}, 5);
  const Tensor y = at::matmul(x, at::tensor({1.0, -2.0, 0.5}, at::kDouble).unsqueeze(1)) + 3;
  const LinearHead head = ridge_head({x, {}, y}, 1);
  EXPECT_LT(relative_error(at::matmul(x, head.weight.t()) + head.bias, y), 1e-3);
}

TEST(RidgeHead, LogitsOfNoiseAreUndecided) {
  const Tensor x = random({60, 200}, 8), classes = random({60}, 9).gt(0).to(at::kLong);
  const LinearHead head = ridge_head({x, classes, {}}, 1);
  // the training classes are fitted exactly, and the factor knows that this means nothing
  EXPECT_LT((at::matmul(x, head.weight.t()) + head.bias).abs().max().item<double>(), 1.5) << head.note;
}

TEST(LogisticHead, TheGradientOfThePenalisedLossIsZero) {
  const Tensor x = random({30, 4}, 3), standard = standardised(x, x);
  const Tensor classes = at::arange(30, at::kLong).remainder(3);
  const LinearHead head = logistic_head({x, classes, {}}, {}, 3);
  // weights of the standardised features
  const Tensor deviation = (x - x.mean(0)).square().mean(0).sqrt(), w = head.weight * deviation;
  const Tensor p = at::softmax(at::matmul(x, head.weight.t()) + head.bias, 1),
               y = at::one_hot(classes, 3).to(at::kDouble);
  const Tensor slope = at::matmul((p - y).t(), standard);
  const double penalty = std::stod(head.note.substr(head.note.find(' ')));
  EXPECT_LT((slope + penalty * w).abs().max().item<double>(), 1e-3) << head.note;
  EXPECT_LT((p - y).sum(0).abs().max().item<double>(), 1e-3);
}

}  // namespace
}  // namespace fastweights

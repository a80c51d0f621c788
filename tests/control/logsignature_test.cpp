#include "fastweights/control.h"

#include "selftest/definitions.h"
#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::random;
using testing::relative_error;

RaggedSeries signature_batch(int64_t channels) {
  return ragged({irregular_times(6, 1), irregular_times(2, 2), irregular_times(13, 3)},
                {random({6, channels}, 4), random({2, channels}, 5), random({13, channels}, 6)});
}

Tensor rows(const RaggedSeries& series, int64_t b) {
  return series.values.slice(0, series.offsets[b].item<int64_t>(), series.offsets[b + 1].item<int64_t>());
}

TEST(LogSignature, ExpandedIsTheTensorLogarithm) {
  for (int64_t channels : {1, 2, 3, 9}) {
    const RaggedSeries series = signature_batch(channels);
    for (int64_t depth = 1; depth <= (channels > 3 ? 3 : 5); ++depth) {
      const Tensor ours = logsignature(series, {depth, LogSignatureBasis::Expanded});
      const Tensor plain_signature = signature(series, depth);
      for (int64_t b = 0; b < series.samples(); ++b) {
        const TensorSeries levels = signature_definition(rows(series, b), depth);
        EXPECT_LT(relative_error(plain_signature[b], at::cat(levels, 0)), 1e-13) << channels << " " << depth;
        EXPECT_LT(relative_error(ours[b], at::cat(logarithm_definition(levels), 0)), 1e-13)
            << channels << " " << depth;
      }
    }
  }
}

// brackets are coordinates: expanding them gives the tensor logarithm again
TEST(LogSignature, BracketsSpanTheSameElement) {
  const RaggedSeries series = signature_batch(3);
  const Tensor brackets = logsignature(series, {3, LogSignatureBasis::Brackets});
  const Tensor full = logsignature(series, {3, LogSignatureBasis::Expanded});
  const auto outer = [](const Tensor& a, const Tensor& b) {
    return (a.unsqueeze(1) * b.unsqueeze(0)).reshape({-1});
  };
  const auto commutator = [&](const Tensor& a, const Tensor& b) { return outer(a, b) - outer(b, a); };
  const Tensor e = at::eye(3, at::kDouble);
  // [i, [j, k]] and [[i, j], k] of the Lyndon words of length 3 over three letters
  const auto words = lyndon_words(3, 3);
  Tensor sum = at::zeros({27}, at::kDouble);
  const auto names = logsignature_basis(3, {3, LogSignatureBasis::Brackets});
  for (size_t w = 0; w < words.size(); ++w) {
    if (words[w].size() != 3) continue;
    const Tensor a = e[words[w][0]], b = e[words[w][1]], c = e[words[w][2]];
    const bool right = names[w].rfind("[[", 0) != 0;
    sum = sum + brackets[0][static_cast<int64_t>(w)] *
                    (right ? commutator(a, commutator(b, c)) : commutator(commutator(a, b), c));
  }
  EXPECT_LT(relative_error(sum, full[0].slice(0, 12)), 1e-12);
}

TEST(LogSignature, DoesNotSeeRepeatedPointsOrSpeed) {
  const Tensor path = random({5, 2}, 7);
  const Tensor repeated = at::cat({path.slice(0, 0, 3), path.slice(0, 2)}, 0);
  const Tensor a = logsignature(shared_times(irregular_times(5, 1), path), {.depth = 4});
  const Tensor b = logsignature(shared_times(irregular_times(6, 2), repeated), {.depth = 4});
  EXPECT_LT(relative_error(b, a), 1e-13);
}

TEST(LogSignature, GradientsAgreeWithCentralDifferences) {
  const RaggedSeries series = signature_batch(3);
  for (const auto basis :
       {LogSignatureBasis::Words, LogSignatureBasis::Brackets, LogSignatureBasis::Expanded}) {
    const LogSignatureOptions options = {4, basis};
    const Tensor weight = random({3, logsignature_size(3, options)}, 8);
    const auto loss = [&](const Tensor& x) {
      return (logsignature({x, series.times, series.offsets}, options) * weight).sum();
    };
    EXPECT_LT(relative_error(testing::autograd_gradient(loss, series.values),
                             testing::central_difference(loss, series.values, 1e-5)),
              1e-7);
  }
  const auto of_signature = [&](const Tensor& x) {
    return signature({x, series.times, series.offsets}, 3).pow(2).sum();
  };
  EXPECT_LT(relative_error(testing::autograd_gradient(of_signature, series.values),
                           testing::central_difference(of_signature, series.values, 1e-5)),
            1e-7);
}

// 200 points: more than one stretch between the states that backward keeps
TEST(LogSignature, GradientOfALongPathIsExact) {
  const Tensor path = random({200, 2}, 9) * 0.1;
  const auto loss = [&](const Tensor& x) {
    return logsignature(shared_times(at::arange(200, at::kDouble), x), {.depth = 3}).pow(2).sum();
  };
  const auto plain = [&](const Tensor& x) {
    const TensorSeries log = logarithm_definition(signature_definition(x, 3));
    Tensor sum = at::zeros({}, at::kDouble);
    for (const auto& word : lyndon_words(2, 3)) {
      int64_t index = 0;
      for (int64_t letter : word) index = 2 * index + letter;
      sum = sum + log[word.size() - 1][index].pow(2);
    }
    return sum;
  };
  EXPECT_LT(relative_error(testing::autograd_gradient(loss, path), testing::autograd_gradient(plain, path)),
            1e-12);
}

TEST(LogSignatureWindows, AreTheLogSignaturesOfTheirPoints) {
  const RaggedSeries series = signature_batch(3);
  const LogSignatureOptions options = {.depth = 3};
  const WindowedLogSignature kept = logsignature_windows(series, PointWindows{4}, options);
  const WindowedLogSignature dropped =
      logsignature_windows(series, PointWindows{4, WindowTail::Drop}, options);
  // 6, 2 and 13 points: windows of 4 increments and what is left over
  EXPECT_EQ(kept.offsets.sub(at::tensor({int64_t{0}, int64_t{2}, int64_t{3}, int64_t{6}}, at::kLong))
                .abs()
                .max()
                .item<int64_t>(),
            0);
  EXPECT_EQ(dropped.offsets.sub(at::tensor({int64_t{0}, int64_t{1}, int64_t{1}, int64_t{4}}, at::kLong))
                .abs()
                .max()
                .item<int64_t>(),
            0);
  const Tensor second = rows(series, 2).slice(0, 4, 9);
  const Tensor expected = logsignature(shared_times(at::arange(5, at::kDouble), second), options)[0];
  EXPECT_LT(relative_error(dropped.values[2], expected), 1e-13);
  EXPECT_EQ(dropped.begin[2].item<double>(), series.times[8 + 4].item<double>());
  EXPECT_EQ(dropped.end[2].item<double>(), series.times[8 + 8].item<double>());
}

// Chen: windows that cover the path multiply to the whole; at depth 1 they simply add up
TEST(LogSignatureWindows, OfAnyDurationCoverThePath) {
  const RaggedSeries series = signature_batch(2);
  for (double duration : {0.3, 1.0, 100.0, 3e9, 1e300}) {
    const WindowedLogSignature windows =
        logsignature_windows(series, DurationWindows{duration}, {.depth = 1});
    for (int64_t b = 0; b < series.samples(); ++b) {
      const Tensor part =
          windows.values.slice(0, windows.offsets[b].item<int64_t>(), windows.offsets[b + 1].item<int64_t>());
      EXPECT_LT(relative_error(part.sum(0), rows(series, b)[-1] - rows(series, b)[0]), 1e-12) << duration;
    }
  }
}

// regular grids: rounding in the number of windows must not make an empty one
TEST(LogSignatureWindows, OfADurationAreNeverEmpty) {
  for (int64_t points : {4, 8, 31, 97}) {
    for (const double spacing : {0.1, 0.3, 0.7}) {
      const RaggedSeries series =
          shared_times(0.1 + at::arange(points, at::kDouble) * spacing, random({points, 1}, 1));
      const WindowedLogSignature windows =
          logsignature_windows(series, DurationWindows{spacing}, {.depth = 1});
      EXPECT_EQ(windows.values.size(0), points - 1);
      EXPECT_GT((windows.end - windows.begin).min().item<double>(), 0.5 * spacing);
    }
  }
}

TEST(LogSignatureWindows, GradientsReachSharedPointsAndInsertedBorders) {
  const RaggedSeries series = signature_batch(2);
  for (const Windows& windows : {Windows(PointWindows{3, WindowTail::Keep}), Windows(DurationWindows{0.7})}) {
    const auto loss = [&](const Tensor& x) {
      return logsignature_windows({x, series.times, series.offsets}, windows, {.depth = 3})
          .values.pow(2)
          .sum();
    };
    EXPECT_LT(relative_error(testing::autograd_gradient(loss, series.values),
                             testing::central_difference(loss, series.values, 1e-5)),
              1e-7);
  }
}

TEST(LogSignature, MissingValuesAreFilledOnStraightLines) {
  Tensor path = at::tensor({0.0, 0.0, 1.0, 1.0, 2.0, 4.0}, at::kDouble).reshape({3, 2});
  const Tensor times = at::arange(3, at::kDouble);
  Tensor gap = path.clone();
  gap[1][0] = std::nan("");
  EXPECT_LT(relative_error(logsignature(shared_times(times, gap)), logsignature(shared_times(times, path))),
            1e-15);
}

TEST(LogSignature, FloatFollowsDouble) {
  const RaggedSeries series = signature_batch(7);
  const RaggedSeries single = {series.values.to(at::kFloat), series.times, series.offsets};
  EXPECT_LT(relative_error(logsignature(single, {.depth = 3}), logsignature(series, {.depth = 3})), 1e-5);
}

TEST(LogSignature, SizesAndNamesOfTheBasis) {
  EXPECT_EQ(logsignature_size(7, {.depth = 2}), 28);
  EXPECT_EQ(logsignature_size(7, {.depth = 3}), 140);
  EXPECT_EQ(logsignature_size(7, {2, LogSignatureBasis::Expanded}), 56);
  EXPECT_EQ(logsignature_basis(2, {.depth = 3}),
            (std::vector<std::string>{"0", "1", "0,1", "0,0,1", "0,1,1"}));
}

TEST(LogSignature, BadInputIsNamed) {
  const RaggedSeries series = signature_batch(2);
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "said: " << text;
  };
  has(error_message([&] { logsignature(series, {.depth = 0}); }), "depth must be 1 to 5, got 0");
  has(error_message([&] { logsignature(series, {.depth = 6}); }), "depth must be 1 to 5, got 6");
  has(error_message([&] { lyndon_words(0, 2); }), "at least one channel");
  EXPECT_EQ(logsignature_windows(series, PointWindows{INT64_MAX, WindowTail::Keep}).values.size(0), 3);
  Tensor infinite = series.values.clone();
  infinite[7][1] = INFINITY;
  has(error_message([&] {
        logsignature({infinite, series.times, series.offsets});
      }),
      "sample 1: value 1 of channel 1 is infinite");
  has(error_message([&] { logsignature_windows(series, PointWindows{0}); }), "at least one increment, got 0");
  has(error_message([&] { logsignature_windows(series, DurationWindows{0}); }), "must be positive, got 0");
  has(error_message([&] { logsignature_windows(series, DurationWindows{-1}); }), "must be positive, got -1");
  has(error_message([&] { logsignature_windows(series, DurationWindows{1e-300}); }), "sample 0 would have");
  has(error_message([&] { logsignature_size(5000, {.depth = 5}); }), "take a smaller depth");
  has(error_message([&] {
        logsignature(shared_times(at::zeros({1}, at::kDouble), at::zeros({1, 2}, at::kDouble)));
      }),
      "sample 0 has 1 point");
}

}  // namespace
}  // namespace fastweights

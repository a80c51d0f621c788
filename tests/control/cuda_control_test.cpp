#include <gtest/gtest.h>

#include "base/random.h"
#include "fastweights/control.h"
#include "kernels/cuda/path.cuh"
#include "kernels/cuda/signature.cuh"

/// What a GPU's threads do for paths and log-signatures, thread by thread on the CPU (emulated_cuda), against
/// the CPU's own.

namespace fastweights {
namespace {

using kernels::PathKind;

// float32 results of float64 arithmetic: what rounds differently is in the last place; where almost nothing
// is left of large numbers, in their last place
void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  if (got.numel() == 0) return;
  const Tensor a = got.to(at::kDouble), b = expected.to(at::kDouble);
  const Tensor allowed = 1e-6 * b.abs() + 1e-12 * b.abs().max();
  EXPECT_TRUE(((a - b).abs() <= allowed).all().item<bool>())
      << what << ": " << (a - b).abs().max().item<double>();
}

struct PathCase {
  int64_t channels;
  double missing;  // share
};

const std::vector<PathCase> kCases = {{1, 0}, {3, 0.3}, {5, 0.95}, {20, 0.6}};

// lengths 2 to 200, and channels that are never observed, only at the ends or only in between
RaggedSeries some_series(const PathCase& c) {
  Random random(17);
  std::vector<double> times;
  std::vector<float> values;
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : {2, 200, 3, 57, 8, 2, 31}) {
    double t = random.uniform(-3, 3);
    for (int64_t i = 0; i < length; ++i) {
      times.push_back(t += 0.01 + random.uniform());
      for (int64_t k = 0; k < c.channels; ++k) {
        const auto value = static_cast<float>(random.uniform(-2, 2));
        values.push_back(random.uniform() < c.missing ? NAN : value);
      }
    }
    offsets.push_back(static_cast<int64_t>(times.size()));
  }
  const auto rows = static_cast<int64_t>(times.size());
  const Tensor data = at::tensor(values, at::kFloat).view({rows, c.channels});
  if (c.missing > 0) {
    data.slice(0, 2, 202).select(1, 0).fill_(NAN);
    data.slice(0, 2, 202).select(1, 1).slice(0, 1, 199).fill_(NAN);
    data.slice(0, 205, 215).select(1, 1).fill_(NAN);
  }
  return {data, at::tensor(times, at::kDouble), at::tensor(offsets, at::kLong)};
}

kernels::CudaSeries pointers(const RaggedSeries& series) {
  return {series.values.data_ptr<float>(),
          series.times.defined() ? series.times.data_ptr<double>() : nullptr,
          series.offsets.data_ptr<int64_t>(),
          series.values.size(0),
          series.samples(),
          series.channels()};
}

Tensor unset(at::IntArrayRef shape, at::ScalarType type = at::kFloat) { return at::full(shape, NAN, type); }

Tensor coefficients(PathKind kind, const RaggedSeries& series) {
  const kernels::CudaSeries there = pointers(series);
  const int64_t terms = kernels::path_terms(kind), pieces = there.rows - there.samples;
  Tensor out = unset({pieces, terms, there.channels});
  float* to = out.data_ptr<float>();
  if (kind == PathKind::Linear || kind == PathKind::Hermite) {
    for (int64_t i = 0; i < pieces * there.channels; ++i)
      kernels::cuda::straight_piece(kind, terms, there, i, to);
    return out;
  }
  // some samples, and then the others in the same scratch
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 3}, {3, there.samples}}) {
    const int64_t rows = there.offsets[last] - there.offsets[first];
    const Tensor scratch = unset({kernels::path_scratch(rows) * there.channels}, at::kDouble);
    Tensor used = at::zeros({scratch.size(0)}, at::kBool);
    for (int64_t i = 0; i < (last - first) * there.channels; ++i) {
      kernels::cuda::natural_channel(kind, there, first, i, to, scratch.data_ptr<double>());
      // a thread has its part of the scratch for itself
      const Tensor own = at::isnan(scratch).logical_not();
      EXPECT_FALSE(own.logical_and(used).any().item<bool>());
      used.logical_or_(own);
      scratch.fill_(NAN);
    }
  }
  return out;
}

Samples sampled(const Control& control, const RaggedTimes& times) {
  const Tensor& k = control.coefficients();
  const int64_t count = times.times.size(0);
  const Samples out = {unset({count, k.size(2)}), unset({count, k.size(2)})};
  const kernels::CudaPathSample task = {.knots = control.knots().data_ptr<double>(),
                                        .knot_offsets = control.offsets().data_ptr<int64_t>(),
                                        .coefficients = k.data_ptr<float>(),
                                        .times = times.times.data_ptr<double>(),
                                        .offsets = times.offsets.data_ptr<int64_t>(),
                                        .count = count,
                                        .samples = control.samples(),
                                        .terms = k.size(1),
                                        .channels = k.size(2),
                                        .value = out.value.data_ptr<float>(),
                                        .derivative = out.derivative.data_ptr<float>()};
  constexpr int64_t kThreads = kernels::cuda::kSampleThreads;
  kernels::cuda::SampleRoom room;
  emulated_cuda::run(static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads,
                     [&] { kernels::cuda::sample_times(task, blockIdx.x * kThreads, room); });
  return out;
}

// knots, times between, before and after them; nothing for the sample before the last
RaggedTimes some_times(const Control& control) {
  Random random(3);
  const double* t = control.knots().data_ptr<double>();
  const int64_t* o = control.offsets().data_ptr<int64_t>();
  std::vector<double> times;
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < control.samples(); ++b) {
    const double first = t[o[b]], last = t[o[b + 1] - 1];
    for (int64_t i = o[b]; i < o[b + 1] && b + 2 != control.samples(); ++i) {
      times.push_back(t[i]);
      times.push_back(std::nextafter(t[i], INFINITY));
      times.push_back(random.uniform(first - 0.5, last + 0.5));
    }
    offsets.push_back(static_cast<int64_t>(times.size()));
  }
  return {at::tensor(times, at::kDouble), at::tensor(offsets, at::kLong)};
}

void expect_same_samples(const Control& control, const std::string& what) {
  const RaggedTimes times = some_times(control);
  const Samples got = sampled(control, times), expected = control.sample(times);
  expect_close(got.value, expected.value, what + " x");
  expect_close(got.derivative, expected.derivative, what + " x'");
}

TEST(CudaControl, CoefficientsAndSamplesAreThoseOfTheCpu) {
  struct Path {
    PathKind kind;
    ControlOptions options;
  };
  const std::vector<Path> paths = {
      {PathKind::NaturalWholeGap, {.interpolation = NaturalCubic{}}},
      {PathKind::NaturalEndPoint, {.interpolation = NaturalCubic{EndFilling::EndPoint}}},
      {PathKind::Hermite, {.interpolation = HermiteCubic{}}},
      {PathKind::Linear, {.interpolation = Linear{}}}};
  for (const PathCase& c : kCases) {
    const RaggedSeries series = some_series(c);
    for (const Path& path : paths) {
      const std::string what =
          std::to_string(c.channels) + " channels, kind " + std::to_string(static_cast<int>(path.kind));
      const Control control(series, path.options);
      expect_close(coefficients(path.kind, series), control.coefficients(), what);
      expect_same_samples(control, what);
    }
  }
}

TEST(CudaControl, RectilinearKnotsAreThoseOfTheCpu) {
  for (const PathCase& c : kCases) {
    const RaggedSeries series = some_series(c);
    const int64_t time_channel = c.channels - 1;
    const Control control(series, {.interpolation = Rectilinear{time_channel}});
    RaggedSeries doubled = {unset({control.knots().size(0), c.channels}), control.knots(), control.offsets()};
    for (int64_t i = 0; i < series.values.numel(); ++i)
      kernels::cuda::rectilinear_knot(pointers(series), time_channel, i, doubled.values.data_ptr<float>());
    expect_close(coefficients(PathKind::Linear, doubled), control.coefficients(), "rectilinear");
    expect_same_samples(control, "rectilinear");
  }
}

TEST(CudaControl, WhatWasObservedLastGoesOn) {
  for (const PathCase& c : kCases) {
    const RaggedSeries series = some_series(c);
    Tensor got = unset(series.values.sizes());
    const kernels::CudaSeries there = pointers({series.values, {}, series.offsets});
    for (int64_t i = 0; i < got.numel(); ++i)
      kernels::cuda::last_observation(there, i, got.data_ptr<float>());
    const auto x = series.values.accessor<float, 2>(), y = got.accessor<float, 2>();
    const int64_t* o = series.offsets.data_ptr<int64_t>();
    for (int64_t b = 0; b < series.samples(); ++b) {
      for (int64_t k = 0; k < c.channels; ++k) {
        int64_t first = o[b];
        while (first < o[b + 1] && std::isnan(x[first][k])) ++first;
        float last = first < o[b + 1] ? x[first][k] : 0.0f;
        for (int64_t i = o[b]; i < o[b + 1]; ++i) {
          if (!std::isnan(x[i][k])) last = x[i][k];
          ASSERT_EQ(y[i][k], last) << "sample " << b << ", row " << i - o[b] << ", channel " << k;
        }
      }
    }
  }
}

// windows of the points of a series without gaps
struct WindowCase {
  int64_t channels, depth, increments;
};

Tensor logsignatures(const WindowCase& c, const RaggedSeries& series, const WindowedLogSignature& expected) {
  const auto words = lyndon_words(c.channels, c.depth);
  kernels::SignaturePlan plan = {};
  plan.kind = kernels::SignatureKind::Logarithm;
  plan.channels = c.channels;
  plan.depth = c.depth;
  plan.power[0] = 1;
  for (int64_t l = 1; l <= c.depth; ++l) {
    plan.power[l] = plan.power[l - 1] * c.channels;
    plan.start[l + 1] = plan.start[l] + plan.power[l];
  }
  plan.words = static_cast<int64_t>(words.size());
  std::vector<int32_t> length, position;
  for (const auto& word : words) {
    int64_t index = 0;
    for (const int64_t letter : word) index = index * c.channels + letter;
    length.push_back(static_cast<int32_t>(word.size()));
    position.push_back(static_cast<int32_t>(index));
  }
  // windows are found by their times
  std::vector<int64_t> first, count;
  const int64_t* o = series.offsets.data_ptr<int64_t>();
  for (int64_t b = 0; b < series.samples(); ++b) {
    for (int64_t i = o[b]; i + 1 < o[b + 1]; i += c.increments) {
      first.push_back(i);
      count.push_back(std::min(c.increments, o[b + 1] - 1 - i) + 1);
    }
  }
  Tensor out = unset(expected.values.sizes());
  const kernels::CudaSignature task = {.plan = plan,
                                       .points = series.values.data_ptr<float>(),
                                       .first = first.data(),
                                       .count = count.data(),
                                       .length = length.data(),
                                       .position = position.data(),
                                       .windows = static_cast<int64_t>(first.size()),
                                       .out = out.data_ptr<float>()};
  const Tensor room = unset({kernels::cuda::window_room(plan)}, at::kDouble);
  const kernels::cuda::Levels levels = kernels::cuda::levels_of(plan);
  // blocks take a window after another
  emulated_cuda::run(2, 32, [&] {
    for (int64_t w = blockIdx.x; w < task.windows; w += 2)
      kernels::cuda::logsignature_window(levels, task, w, room.data_ptr<double>());
  });
  return out;
}

TEST(CudaControl, LogSignaturesAreThoseOfTheCpu) {
  const std::vector<WindowCase> cases = {{1, 1, 3}, {1, 4, 5},  {2, 5, 7},  {3, 1, 1},  {3, 4, 40},
                                         {4, 3, 6}, {5, 5, 60}, {20, 2, 9}, {11, 3, 50}};
  for (const WindowCase& c : cases) {
    const RaggedSeries series = some_series({c.channels, 0});
    const WindowedLogSignature expected =
        logsignature_windows(series, PointWindows{c.increments, WindowTail::Keep}, {.depth = c.depth});
    expect_close(logsignatures(c, series, expected), expected.values,
                 std::to_string(c.channels) + " channels, depth " + std::to_string(c.depth));
  }
}

}  // namespace
}  // namespace fastweights

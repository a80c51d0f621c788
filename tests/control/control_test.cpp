#include "fastweights/control.h"

#include <set>
#include <thread>

#include "fastweights/environment.h"
#include "selftest/definitions.h"
#include "support/support.h"
#include "tensor/parallel.h"

#include <mutex>

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::random;
using testing::relative_error;
using testing::with_missing;

const std::vector<std::pair<std::string, ControlOptions>>& all_paths() {
  static const std::vector<std::pair<std::string, ControlOptions>> kPaths = {
      {"natural cubic, whole gap", {.interpolation = NaturalCubic{}}},
      {"natural cubic, end point", {.interpolation = NaturalCubic{EndFilling::EndPoint}}},
      {"hermite", {.interpolation = HermiteCubic{}}},
      {"linear", {.interpolation = Linear{}}},
      {"rectilinear", {.interpolation = Rectilinear{1}}}};
  return kPaths;
}

// four series of different lengths with times of their own and gaps
RaggedSeries ragged_batch(double missing) {
  std::vector<Tensor> times, values;
  const int64_t lengths[] = {5, 2, 17, 9};
  for (int64_t b = 0; b < 4; ++b) {
    times.push_back(irregular_times(lengths[b], 10 + b) - 3);
    values.push_back(with_missing(random({lengths[b], 3}, 20 + b), missing, 30 + b));
  }
  return ragged(times, values);
}

RaggedSeries one_of(const RaggedSeries& series, int64_t b) {
  const int64_t from = series.offsets[b].item<int64_t>(), to = series.offsets[b + 1].item<int64_t>();
  return {series.values.slice(0, from, to), series.times.slice(0, from, to),
          at::tensor({int64_t{0}, to - from}, at::kLong)};
}

TEST(Control, ARaggedBatchIsItsSamplesOneByOne) {
  const RaggedSeries batch = ragged_batch(0.4);
  for (const auto& [name, options] : all_paths()) {
    const Control together(batch, options);
    const Tensor query = random({4, 11}, 3) * 6;
    const Samples all = together.sample(query);
    for (int64_t b = 0; b < 4; ++b) {
      const Samples alone = Control(one_of(batch, b), options).sample(query.slice(0, b, b + 1));
      EXPECT_TRUE(at::equal(alone.value[0], all.value[b])) << name;
      EXPECT_TRUE(at::equal(alone.derivative[0], all.derivative[b])) << name;
    }
  }
}

TEST(Control, NaturalCubicIsTheSolutionOfTheDenseSystem) {
  const Tensor times = irregular_times(14, 1), values = random({14, 2}, 2);
  const Tensor query = times[0] + (times[-1] - times[0]) * (random({30}, 3) + 1) / 2;
  const Control control(shared_times(times, values), {.interpolation = NaturalCubic{}});
  EXPECT_LT(relative_error(control.sample(query).value[0], natural_cubic_definition(times, values, query)),
            1e-13);
}

TEST(Control, DerivativeIsTheSlopeOfTheValue) {
  const RaggedSeries batch = ragged_batch(0.3);
  const double eps = 1e-6;
  for (const auto& [name, options] : all_paths()) {
    const Control control(batch, options);
    const Tensor inside =
        control.begin().unsqueeze(1) + (control.end() - control.begin()).unsqueeze(1) * 0.37;
    const Tensor slope =
        (control.sample(inside + eps).value - control.sample(inside - eps).value) / (2 * eps);
    EXPECT_LT(relative_error(control.sample(inside).derivative, slope), 1e-8) << name;
  }
}

TEST(Control, PathsRunThroughTheObservations) {
  const RaggedSeries batch = ragged_batch(0.4);
  const Tensor observed = at::isnan(batch.values).logical_not();
  for (const auto& [name, options] : all_paths()) {
    if (std::holds_alternative<Rectilinear>(options.interpolation)) continue;
    const Tensor value = Control(batch, options).sample(RaggedTimes{batch.times, batch.offsets}).value;
    EXPECT_LT(relative_error(value.masked_select(observed), batch.values.masked_select(observed)), 1e-12)
        << name;
  }
}

TEST(Control, GradientsAgreeWithCentralDifferences) {
  const RaggedSeries batch = ragged_batch(0.4);
  for (const auto& path : all_paths()) {
    const std::string& name = path.first;
    const ControlOptions& options = path.second;
    const Tensor query = random({4, 7}, 5) * 4;
    const Tensor weight = random({2, 4, 7, 3}, 6);
    const auto of_values = [&](const Tensor& values) {
      const Samples s = Control({values, batch.times, batch.offsets}, options).sample(query);
      return (s.value * weight[0] + s.derivative * weight[1]).sum();
    };
    EXPECT_LT(relative_error(testing::autograd_gradient(of_values, batch.values),
                             testing::central_difference(of_values, batch.values, 1e-5)),
              1e-8)
        << name;
    const Control control(batch, options);
    const auto of_times = [&](const Tensor& times) {
      const Samples s = control.sample(times);
      return (s.value * weight[0] + s.derivative * weight[1]).sum();
    };
    EXPECT_LT(relative_error(testing::autograd_gradient(of_times, query),
                             testing::central_difference(of_times, query)),
              1e-7)
        << name;
  }
}

TEST(Control, FloatFollowsDouble) {
  const RaggedSeries batch = ragged_batch(0.4);
  const RaggedSeries single = {batch.values.to(at::kFloat), batch.times, batch.offsets};
  for (const auto& [name, options] : all_paths()) {
    const Tensor query = random({9}, 5) * 2;
    const Tensor got = Control(single, options).sample(query).value;
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    // 24 bits of the coefficients, amplified by gaps down to 0.1 between knots
    EXPECT_LT(relative_error(got, Control(batch, options).sample(query).value), 1e-5) << name;
  }
}

// the documented delay: up to the end of t's own gap for causal paths, everything for natural cubic
TEST(Control, CausalPathsDoNotSeeBeyondTheirGap) {
  const Tensor times = at::arange(12, at::kDouble), values = random({12, 2}, 7);
  const Tensor later = values.clone();
  later.slice(0, 7).add_(1);  // changes observations at t = 7 and later
  for (const auto& [name, options] : all_paths()) {
    const bool rectilinear = std::holds_alternative<Rectilinear>(options.interpolation);
    // up to t = 6 for linear and Hermite; up to the last knot before the new values for rectilinear: (t7, x6)
    // is knot 13, and the time channel 1 has already moved there
    const Tensor before = at::linspace(0, rectilinear ? 12 : 6, 40, at::kDouble);
    const Samples a = Control(shared_times(times, values), options).sample(before);
    const Samples b = Control(shared_times(times, later), options).sample(before);
    const bool same = at::equal(a.value, b.value) && at::equal(a.derivative, b.derivative);
    EXPECT_EQ(same, is_causal(options.interpolation)) << name;
  }
}

TEST(Control, NeverObservedChannelsAreZeroOrRejected) {
  Tensor values = random({6, 2}, 8);
  values.select(1, 1).fill_(std::nan(""));
  const RaggedSeries series = shared_times(irregular_times(6, 9), values);
  for (const auto& path : all_paths()) {
    const std::string& name = path.first;
    ControlOptions options = path.second;
    if (std::holds_alternative<Rectilinear>(options.interpolation)) options.interpolation = Rectilinear{};
    const Samples s = Control(series, options).sample(at::linspace(0, 3, 5, at::kDouble));
    EXPECT_EQ(s.value.select(2, 1).abs().max().item<double>(), 0) << name;
    options.never_observed = NeverObserved::Reject;
    const std::string said = error_message([&] { Control control(series, options); });
    EXPECT_NE(said.find("sample 0: channel 1 is never observed"), std::string::npos) << said;
  }
}

TEST(Control, FilledSeriesHaveNoGapsAndKeepObservations) {
  const RaggedSeries batch = ragged_batch(0.5);
  const RaggedSeries filled = fill_missing(batch);
  EXPECT_FALSE(at::isnan(filled.values).any().item<bool>());
  const Tensor observed = at::isnan(batch.values).logical_not();
  EXPECT_LT(relative_error(filled.values.masked_select(observed), batch.values.masked_select(observed)),
            1e-12);
}

TEST(Control, AtReadsEachSampleAtItsOwnTime) {
  const Control control(ragged_batch(0.2));
  const Tensor times = random({4}, 10);
  const Samples grid = control.sample(times.unsqueeze(1)), one = control.at(Time(times)),
                shared = control.at(0.25);
  EXPECT_TRUE(at::equal(one.value, grid.value.select(1, 0)));
  EXPECT_TRUE(
      at::equal(shared.derivative, control.sample(at::full({1}, 0.25, at::kDouble)).derivative.select(1, 0)));
}

TEST(Control, BadInputIsNamed) {
  const Tensor times = at::tensor({0.0, 1.0, 2.0}, at::kDouble), values = random({3, 2}, 1);
  const auto said = [](const Tensor& t, const Tensor& v) {
    return error_message([&] { Control control(shared_times(t, v)); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "said: " << text;
  };
  has(said(at::tensor({0.0, 2.0, 2.0}, at::kDouble), values),
      "sample 0: times must increase, but time 2 is 2 after 2");
  has(said(at::tensor({0.0, std::nan(""), 2.0}, at::kDouble), values), "sample 0: time 1 is nan");
  has(said(at::tensor({0.0, 1.0, INFINITY}, at::kDouble), values), "time 2 is inf");
  has(said(at::tensor({0.0}, at::kDouble), values.slice(0, 0, 1)), "sample 0 has 1 point, at least 2");
  has(said(at::empty({0}, at::kDouble), values.slice(0, 0, 0)), "sample 0 has 0 points");
  has(said(at::tensor({0.0, 1.0}, at::kDouble), values), "2 times and 3 rows");
  has(said(times, values.to(at::kLong)), "float32 or float64");
  Tensor infinite = values.clone();
  infinite[1][1] = INFINITY;
  has(said(times, infinite), "value 1 of channel 1 is infinite");
  has(error_message([&] {
        Control({values, times, at::tensor({int64_t{0}, int64_t{2}}, at::kLong)});
      }),
      "offsets must end at");
  has(error_message([&] {
        Control({values, times, at::tensor({int64_t{0}, int64_t{4}, int64_t{3}}, at::kLong)});
      }),
      "offsets must not fall");
  has(error_message([&] { Control(shared_times(times, values), {.interpolation = Rectilinear{2}}); }),
      "time channel must be 0 to 1");
  const Control control(shared_times(times, values));
  has(error_message([&] { control.sample(at::zeros({3, 1}, at::kDouble)); }), "times for 3 samples");
  has(error_message([&] { control.sample(at::zeros({1}, at::kFloat)); }), "float64");
  has(error_message([&] { control.at(Time(at::zeros({2}, at::kDouble))); }),
      "times for 2 samples, there are 1");
  has(error_message([&] { ragged({times}, {values, values}); }), "times for 1 series and values for 2");
  has(error_message([&] { ragged({times, times}, {values, random({3, 3}, 1)}); }), "sample 1 has 3 channels");
}

TEST(Control, KeepsWhatItWasGiven) {
  RaggedSeries batch = ragged_batch(0.2);
  const Control control(batch);
  const Tensor before = control.sample(at::ones({1}, at::kDouble)).value;
  batch.times.sub_(5);
  batch.offsets.add_(1000);
  EXPECT_TRUE(at::equal(control.sample(at::ones({1}, at::kDouble)).value, before));
}

TEST(Control, ChangesInPlaceBeforeBackwardAreRefused) {
  const Tensor values = random({5, 1}, 1).set_requires_grad(true);
  const Tensor value =
      Control(shared_times(irregular_times(5, 2), values)).sample(at::ones({2}, at::kDouble)).value;
  {
    const at::NoGradGuard no_grad;
    values.mul_(3);
  }
  EXPECT_THROW(value.sum().backward(), std::exception);
}

TEST(Control, FillingLeavesObservationsAlone) {
  const Tensor values = at::tensor({1e8, std::nan(""), 1.0, 5.0}, at::kDouble).to(at::kFloat).reshape({4, 1});
  const Tensor filled = fill_missing(shared_times(at::arange(4, at::kDouble), values)).values;
  EXPECT_EQ(filled[2].item<float>(), 1.0f);
}

TEST(Control, GradientsOfGradientsAreRefused) {
  const Tensor values = random({5, 1}, 1).set_requires_grad(true);
  const Tensor value =
      Control(shared_times(irregular_times(5, 2), values)).sample(at::ones({2}, at::kDouble)).value;
  EXPECT_THROW(value.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true), std::exception);
}

TEST(Parallel, MoreThanOneThreadWorks) {
  set_threads(2);
  std::set<std::thread::id> seen;
  std::mutex guard;
  parallel_for(64, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(guard);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_GT(seen.size(), 1u);
}

TEST(Control, ThreadsDoNotChangeABit) {
  std::vector<Tensor> times, values;
  for (int64_t b = 0; b < 300; ++b) {
    times.push_back(irregular_times(2 + b % 40, b));
    values.push_back(with_missing(random({2 + b % 40, 5}, 1000 + b), 0.6, 2000 + b));
  }
  const RaggedSeries batch = ragged(times, values);
  for (const auto& [name, options] : all_paths()) {
    set_threads(1);
    const Tensor one = Control(batch, options).coefficients();
    set_threads(2);
    EXPECT_TRUE(at::equal(one, Control(batch, options).coefficients())) << name;
  }
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "fastweights/model.h"
#include "model/programmer_config.h"
#include "model/small_model.h"
#include "support/support.h"

// What is wrong with an input is said in one sentence of ours. An exception of LibTorch is none of those that
// error_message catches, so it fails the test.

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::kChannels;
using testing::random;
using testing::refusal;
using testing::relative_error;
using testing::small_config;
using testing::small_model;
using testing::some_series;
using testing::with;

std::string series_refusal(const std::function<void(RaggedSeries&)>& change) {
  ModelInput input = {.series = some_series()};
  change(input.series);
  return refusal(input);
}

TEST(ModelBadInput, SeriesThatAreNone) {
  EXPECT_EQ(refusal({}), "[model] the batch is empty: there must be at least one series");
  EXPECT_EQ(series_refusal([](auto& s) { s.offsets = Tensor(); }),
            "[model] the batch is empty: there must be at least one series");
  for (const int64_t count : {0, 1}) {
    EXPECT_EQ(series_refusal([&](auto& s) { s.offsets = at::zeros({count}, at::kLong); }),
              "[model] the batch is empty: there must be at least one series");
  }
  EXPECT_EQ(series_refusal([](auto& s) { s.values = Tensor(); }),
            "[model] values must be [N, C], got nothing");
  EXPECT_EQ(series_refusal([](auto& s) { s.times = Tensor(); }),
            "[model] times must be a float64 tensor [N] on the CPU");
  EXPECT_EQ(series_refusal([](auto& s) { s.values = random({10}, 1); }),
            "[model] values must be [N, C], got [10]");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.values = random({10, 0}, 1);
            }),
            "[model] values must have at least one channel");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.values = random({10, 4}, 1);
            }),
            "[model] the series have 4 channels, the model takes 3");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.values = random({9, 3}, 1);
            }),
            "[model] got 10 times and 9 rows of values");
  EXPECT_EQ(series_refusal([](auto& s) { s.values = s.values.to(at::kLong); }),
            "[model] values must be float32 or float64, got Long");
  EXPECT_EQ(series_refusal([](auto& s) { s.values = s.values.to(at::kHalf); }),
            "[model] values must be float32 or float64, got Half");
  EXPECT_EQ(series_refusal([](auto& s) { s.times = s.times.to(at::kFloat); }),
            "[model] times must be a float64 tensor [N] on the CPU");
  EXPECT_EQ(series_refusal([](auto& s) { s.offsets = s.offsets.to(at::kInt); }),
            "[model] offsets must be a contiguous int64 tensor [B + 1] on the CPU");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.offsets = at::tensor({0, 6, 11}, at::kLong);
            }),
            "[model] offsets must end at the number of rows 10, got 11");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.offsets = at::tensor({0, 12, 10}, at::kLong);
            }),
            "[model] offsets must not fall: sample 1 runs from row 12 to row 10");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.offsets = at::tensor({-1, 6, 10}, at::kLong);
            }),
            "[model] offsets must start at 0, got -1");
  EXPECT_EQ(refusal({.series = ragged({irregular_times(6, 1), irregular_times(1, 2)},
                                      {random({6, kChannels}, 3), random({1, kChannels}, 4)})}),
            "[model] sample 1 has 1 point, at least 2 are needed");
  EXPECT_EQ(series_refusal([](auto& s) {
              s.offsets = at::tensor({0, 0, 10}, at::kLong);
            }),
            "[model] sample 0 has 0 points, at least 2 are needed");
}

TEST(ModelBadInput, TimesThatFallOrAreNotFinite) {
  const auto at_row = [](int64_t row, double time) {
    return series_refusal([&](auto& s) { s.times[row] = time; });
  };
  EXPECT_EQ(at_row(8, -1).find("[model] sample 1: times must increase, but time 2 is -1 after "), 0u);
  EXPECT_EQ(at_row(8, NAN).find("[model] sample 1: time 2 is "), 0u);
  EXPECT_EQ(at_row(3, INFINITY), "[model] sample 0: time 3 is inf, it must be finite");
  EXPECT_EQ(at_row(6, -INFINITY), "[model] sample 1: time 0 is -inf, it must be finite");
}

TEST(ModelBadInput, InfiniteValuesAreNamedForEveryControl) {
  ModelInput input = {.series = some_series()};
  input.series.values[7][1] = INFINITY;
  for (const char* kind :
       {"natural_cubic", "hermite_cubic", "linear", "rectilinear", "hold", "log_signature"}) {
    const std::string found = refusal(input, with({{"control.kind", kind}}));
    EXPECT_NE(found.find("sample 1: value 1 of channel 1 is infinite"), std::string::npos)
        << kind << ": " << found;
  }
  input = {.series = some_series()};
  input.series.values.slice(0, 6).select(1, 2).fill_(NAN);
  EXPECT_NE(refusal(input, with({{"control.never_observed", "reject"}})).find("sample 1"), std::string::npos);
}

TEST(ModelBadInput, TimesThatTheTimeUnitRuins) {
  ModelInput input = {.series = some_series()};
  EXPECT_EQ(refusal(input, with({{"time_unit", "1e-320"}})).find("[control] sample 0: time 0 is inf"), 0u);
  input.series.times /= 1e300;
  EXPECT_EQ(refusal(input, with({{"time_unit", "1e100"}})).find("[control] sample 0: times must increase"),
            0u);
}

TEST(ModelBadInput, StaticFeaturesThatDoNotFit) {
  const ProgrammerConfig config = with({{"static_features", "4"}, {"initial", "static_features"}});
  ModelInput input = {.series = some_series()};
  EXPECT_EQ(refusal(input, config), "[model] static features must be [2, 4], got nothing");
  for (const at::IntArrayRef shape :
       std::vector<std::vector<int64_t>>{{4}, {4, 2}, {2, 3}, {3, 4}, {2, 4, 1}}) {
    input.static_features = random(shape, 1);
    EXPECT_EQ(refusal(input, config).find("[model] static features must be [2, 4], got ["), 0u);
  }
  input.static_features = random({2, 4}, 1);
  EXPECT_EQ(refusal(input, config), "");
  input.static_features[1][2] = NAN;
  EXPECT_EQ(refusal(input, config).find("[model] sample 1: static feature 2 is "), 0u);
  input.static_features[0][3] = -INFINITY;
  EXPECT_EQ(refusal(input, config),
            "[model] sample 0: static feature 3 is -inf; static features must be finite");
  EXPECT_EQ(refusal(input), "[model] this model takes no static features");
}

TEST(ModelBadInput, OutputTimesThatDoNotFit) {
  ModelInput input = {.series = shared_times(at::arange(5, at::kDouble), random({2, 5, kChannels}, 1))};
  const auto asked = [&](const Tensor& times, const Tensor& offsets) {
    input.output_times = {times, offsets};
    return refusal(input);
  };
  const auto times = [](std::vector<double> t) { return at::tensor(t, at::kDouble); };
  const Tensor two_each = at::tensor({0, 2, 4}, at::kLong);
  EXPECT_EQ(asked(times({0, 1, 2.5, 4}), two_each), "");
  const std::string form = "[model] output times must be float64 [M] with int64 offsets [3]";
  EXPECT_EQ(asked({}, {}), form);
  EXPECT_EQ(asked({}, two_each), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}), {}), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}).to(at::kFloat), two_each), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}).view({2, 2}), two_each), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}), two_each.to(at::kInt)), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}), at::tensor({0, 4}, at::kLong)), form);
  EXPECT_EQ(asked(times({0, 1, 2, 3}), at::tensor({0, 2, 5}, at::kLong)),
            "[model] offsets of output times must run from 0 to 4, got 0 to 5");
  EXPECT_EQ(asked(times({0, 1, 2, 3}), at::tensor({1, 2, 4}, at::kLong)),
            "[model] offsets of output times must run from 0 to 4, got 1 to 4");
  EXPECT_NE(asked(times({0, 1, 2, 3}), at::tensor({0, 9, 4}, at::kLong)), "");
  EXPECT_NE(asked(times({0, 1, 2, 3}), at::tensor({0, -3, 4}, at::kLong)), "");
  EXPECT_EQ(asked(times({0, 1, 2, 4.5}), two_each),
            "[model] sample 1: output time 1 is 4.5, outside of its series from 0 to 4");
  EXPECT_EQ(asked(times({-1, 1, 2, 4}), two_each),
            "[model] sample 0: output time 0 is -1, outside of its series from 0 to 4");
  EXPECT_EQ(asked(times({0, 1, 2, 2}), two_each),
            "[model] sample 1: output times must rise, but time 1 is 2 after 2");
  EXPECT_EQ(asked(times({3, 1, 2, 3}), two_each),
            "[model] sample 0: output times must rise, but time 1 is 1 after 3");
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(asked(times({0, 1, 2, bad}), two_each).find("[model] sample 1: output time 1 is "), 0u);
  }
}

TEST(ModelBadInput, NoOutputsAtAllAreNoError) {
  const ModelInput input = {
      .series = some_series(),
      .output_times = RaggedTimes{at::empty({0}, at::kDouble), at::zeros({3}, at::kLong)}};
  for (const ProgrammerConfig& config :
       {small_config(), with({{"deterministic", "true"}}), with({{"layers", "2"}, {"drive", "derivative"}}),
        with({{"solver.steps", "adaptive"}, {"solver.method", "dopri5"}})}) {
    const ModelOutput output = small_model(config).forward(input);
    EXPECT_EQ(output.outputs.sizes(), at::IntArrayRef({0, 2}));
    EXPECT_EQ(output.last.w[0].sizes(), at::IntArrayRef({2, 2, 5, 5}));
  }
}

TEST(ModelBadInput, StartsThatDoNotFit) {
  ModelInput input = {.series = shared_times(at::arange(5, at::kDouble), random({2, 5, kChannels}, 1))};
  const Tensor t = at::ones({2}, at::kDouble), w = random({2, 2, 5, 5}, 2);
  const auto begun = [&](const std::vector<Tensor>& weights, const Tensor& times) {
    input.start = FastWeightState{weights, times};
    return refusal(input);
  };
  EXPECT_EQ(begun({w}, t), "");
  EXPECT_EQ(begun({w}, {}), "[model] the start's times must be float64 [2]");
  EXPECT_EQ(begun({w}, t.to(at::kFloat)), "[model] the start's times must be float64 [2]");
  EXPECT_EQ(begun({w}, at::ones({3}, at::kDouble)), "[model] the start's times must be float64 [2]");
  EXPECT_EQ(begun({}, t), "[model] the start has fast weights of 0 layers, the model has 1");
  EXPECT_EQ(begun({w, w}, t), "[model] the start has fast weights of 2 layers, the model has 1");
  EXPECT_EQ(begun({{}}, t), "[model] the start's fast weights must be [2, 2, 5, 5], got nothing");
  EXPECT_EQ(begun({random({2, 2, 5}, 1)}, t),
            "[model] the start's fast weights must be [2, 2, 5, 5], got [2, 2, 5]");
  EXPECT_EQ(begun({w.to(at::kLong)}, t), "[model] the start's fast weights must be floating-point, got Long");
  for (const double bad : {-0.5, 4.5, std::nan("")}) {
    EXPECT_EQ(begun({w}, at::tensor({1.0, bad}, at::kDouble)),
              "[model] the start of sample 1 is outside of its series");
  }
  // outputs before the start
  input.output_times = RaggedTimes{at::tensor({2.0, 0.5}, at::kDouble), at::arange(3, at::kLong)};
  EXPECT_EQ(begun({w}, t), "[model] sample 1: output time 0 is 0.5, outside of its series from 1 to 4");
}

TEST(ModelBadInput, AStartThatIsNotFiniteIsTheOutcome) {
  ModelInput input = {.series = some_series()};
  Tensor w = random({2, 2, 5, 5}, 2);
  w[1][0][3][2] = NAN;
  input.start = FastWeightState{{w}, input.series.times.index_select(0, at::tensor({0, 6}, at::kLong))};
  const ModelOutput output = small_model().forward(input);
  EXPECT_EQ(output.status.outcome, Outcome::NotFinite);
  EXPECT_EQ(output.status.sample, 1);
}

TEST(ModelBadInput, BackendsThatAreNotThere) {
  const std::string found = error_message<std::runtime_error>([&] {
    small_model(with({{"backend", "cuda"}})).forward({.series = some_series()});
  });
  EXPECT_EQ(found, "[model] backend cuda cannot be used: the model is on the CPU");
  const ModelOutput output = small_model(with({{"backend", "reference"}})).forward({.series = some_series()});
  EXPECT_EQ(output.backend, "reference");
}

TEST(ModelBadInput, TypesThatParametersCannotHave) {
  EXPECT_EQ(error_message([] { Model(small_config(), {.type = at::kHalf}); }),
            "[model] parameters are float32 or float64, not Half");
  EXPECT_EQ(error_message([] { Model(small_config(), {.type = at::kLong}); }),
            "[model] parameters are float32 or float64, not Long");
}

TEST(ModelBadInput, MemoryLayoutDoesNotMatter) {
  const ProgrammerConfig config = with({{"static_features", "4"}, {"initial", "static_features"}});
  const RaggedSeries series = some_series();
  const Tensor features = random({2, 4}, 7);
  const Tensor ends = series.times.index_select(0, at::tensor({5, 9}, at::kLong));
  const RaggedTimes outputs = {ends, at::arange(3, at::kLong)};
  // every second row of something twice as long, columns of a transposed matrix
  const auto spread = [](const Tensor& x) {
    return at::stack({x, x}, 1).flatten(0, 1).slice(0, 0, at::nullopt, 2);
  };
  const RaggedSeries strided = {series.values.t().contiguous().t(), spread(series.times),
                                spread(series.offsets)};
  ASSERT_FALSE(strided.values.is_contiguous() || strided.times.is_contiguous() ||
               strided.offsets.is_contiguous());
  for (const char* kind :
       {"natural_cubic", "hermite_cubic", "linear", "rectilinear", "hold", "log_signature"}) {
    const Model model = small_model(with_setting(config, "control.kind", kind));
    const Tensor expected = model.forward({series, features, outputs}).outputs;
    const ModelInput input = {strided, features.t().contiguous().t(),
                              RaggedTimes{spread(ends), spread(outputs.offsets)}};
    // a BLAS may sum in another order where memory is laid out otherwise
    EXPECT_LT(relative_error(model.forward(input).outputs, expected), 1e-12) << kind;
    ModelInput goes_on = input;
    goes_on.start = FastWeightState{{random({5, 5, 2, 2}, 8).permute({2, 3, 0, 1})},
                                    spread(strided.times.index_select(0, at::tensor({1, 7}, at::kLong)))};
    ModelInput same = {series, features, outputs};
    same.start = FastWeightState{{goes_on.start->w[0].contiguous()}, goes_on.start->t.contiguous()};
    EXPECT_LT(relative_error(model.forward(goes_on).outputs, model.forward(same).outputs), 1e-12) << kind;
  }
}

TEST(ModelBadInput, SeriesOfTheOtherFloatingPointTypeAreConverted) {
  const ProgrammerConfig config = with({{"static_features", "4"}, {"initial", "static_features"}});
  RaggedSeries single = some_series();
  single.values = single.values.to(at::kFloat);
  RaggedSeries wide = single;
  wide.values = single.values.to(at::kDouble);
  const Tensor features = random({2, 4}, 7).to(at::kFloat);
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Model model(config, {.type = type});
    const Tensor a = model.forward({single, features}).outputs;
    const Tensor b = model.forward({wide, features.to(at::kDouble)}).outputs;
    EXPECT_EQ(a.scalar_type(), type);
    EXPECT_TRUE(at::equal(a, b));
  }
}

TEST(ModelBadInput, WhatMakesASeriesChecksItsParts) {
  EXPECT_EQ(error_message([] { ragged({Tensor()}, {Tensor()}); }),
            "[ragged] sample 0 has an undefined tensor");
  EXPECT_EQ(error_message([] { shared_times({}, {}); }), "[shared_times] times or values are undefined");
  EXPECT_EQ(error_message([] { median_gap({}); }), "[median_gap] values must be [N, C], got nothing");
  EXPECT_EQ(error_message([] {
              median_gap(shared_times(at::zeros({1}, at::kDouble), random({3, 1, 2}, 1)));
            }),
            "[median_gap] no series has two points");
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "fastweights/network.h"
#include "support/support.h"

/// Values computed by hand.

namespace fastweights {
namespace {

using List = std::vector<double>;

Tensor column(const List& values) { return at::tensor(values, at::kDouble).unsqueeze(1); }

// one channel; outputs at the given times
List predicted(const Model& model, const List& times, const List& values, const List& at) {
  ModelInput input = {.series = ragged({at::tensor(times, at::kDouble)}, {column(values)})};
  input.output_times = RaggedTimes{at::tensor(at, at::kDouble),
                                   at::tensor({int64_t{0}, static_cast<int64_t>(at.size())}, at::kLong)};
  const Tensor out = model.forward(input).outputs.to(at::kDouble).contiguous();
  return {out.data_ptr<double>(), out.data_ptr<double>() + out.numel()};
}

Model model_of(const char* name, const std::vector<std::pair<const char*, const char*>>& settings = {}) {
  ModelConfig config = named_model(name, {.channels = 1, .outputs = 1});
  for (const auto& [key, value] : settings) config = with_setting(config, key, value);
  return Model(config, {.type = at::kDouble});
}

// observations at 1, 2 and 4; gaps elsewhere
const List kTimes = {0, 1, 2, 3, 4, 5, 8}, kValues = {NAN, 10, 12, NAN, 6, NAN, NAN},
           kAt = {0, 1, 3, 3.5, 5, 8};

TEST(Naive, RepeatsTheLastObservation) {
  EXPECT_EQ(predicted(model_of("naive"), kTimes, kValues, kAt), (List{10, 10, 12, 12, 6, 6}));
}

TEST(Naive, LinesConnectNeighboursInTime) {
  EXPECT_EQ(predicted(model_of("linear-interpolation"), kTimes, kValues, kAt), (List{10, 10, 9, 7.5, 6, 6}));
}

// slope (6 - 10) / (4 - 1)
TEST(Naive, DriftContinuesTheLineThroughFirstAndLast) {
  const List got = predicted(model_of("drift"), kTimes, kValues, kAt);
  for (size_t i = 0; i < kAt.size(); ++i)  // a model without parameters returns float32
    EXPECT_NEAR(got[i], 10 - 4.0 / 3 * (kAt[i] - 1), 1e-6) << i;
}

TEST(Naive, ASeasonBeforeIsRepeated) {
  const List times = {0, 1, 2, 3, 4, 5, 6, 7, 8}, values = {1, 2, 3, 4, 5, 6, NAN, NAN, NAN};
  // three rows: 4, 5, 6 again
  const auto season = model_of("seasonal-naive", {{"season", "3"}});
  EXPECT_EQ(predicted(season, times, values, {6, 7, 8}), (List{4, 5, 6}));
  // two seasons ahead: the same ones, not predictions of predictions
  const auto two = model_of("seasonal-naive", {{"season", "2"}});
  EXPECT_EQ(predicted(two, times, values, {6, 7, 8}), (List{5, 6, 5}));
  // a season that is longer than what was observed: the last value
  const auto nine = model_of("seasonal-naive", {{"season", "9"}});
  EXPECT_EQ(predicted(nine, times, values, {6}), (List{6}));
  // inside of a series: the season before
  EXPECT_EQ(predicted(season, {0, 1, 2, 3, 4}, {1, 2, 3, NAN, 9}, {3}), (List{1}));
}

TEST(Naive, SeasonsCountTimeOrRows) {
  const List times = {0, 1, 2, 10, 11, 12, 20}, values = {1, 2, 3, 4, 5, 6, NAN};
  const auto time = model_of("seasonal-naive", {{"season", "10"}});
  EXPECT_EQ(predicted(time, times, values, {20}), (List{4}));
  const auto rows = model_of("seasonal-naive", {{"season", "2"}, {"season_unit", "rows"}});
  EXPECT_EQ(predicted(rows, times, values, {20}), (List{5}));
}

TEST(Naive, TheSeasonIsFoundByAutocorrelation) {
  std::vector<Tensor> times, values;
  for (int64_t b = 0; b < 3; ++b) {
    const Tensor t = at::arange(84, at::kDouble);
    times.push_back(2 * t);
    // a period of 12 rows, 24 units of time, with a trend and gaps
    Tensor x = at::sin(2 * M_PI * t / 12 + static_cast<double>(b)) + 0.05 * t +
               0.3 * testing::random({84}, static_cast<uint64_t>(b) + 1);
    x.slice(0, 30, 33).fill_(NAN);
    values.push_back(x.unsqueeze(1));
  }
  for (const auto& [unit, expected] : {std::pair<const char*, double>{"time", 24}, {"rows", 12}}) {
    ModelConfig config = named_model("seasonal-naive", {.channels = 1, .outputs = 1, .median_gap = 2});
    config = with_setting(config, "season_unit", unit);
    const Model model(config);
    config.architecture.type().fit(config, *model.network(),
                                   {.train = {{.series = ragged(times, values)}, {}, {}}, .validation = {}});
    EXPECT_EQ(model.parameters()[0].second.item<double>(), expected) << unit;
  }
}

TEST(Naive, NothingObservedIsZero) {
  for (const char* name : {"naive", "seasonal-naive", "linear-interpolation", "drift"})
    EXPECT_EQ(predicted(model_of(name), {0, 1, 2}, {NAN, NAN, NAN}, {1, 2}), (List{0, 0})) << name;
}

}  // namespace
}  // namespace fastweights

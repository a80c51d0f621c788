#include <algorithm>

#include "fastweights/control.h"
#include "model/cases.h"
#include "model/programmer_config.h"
#include "support/support.h"

/// Outputs at several times, solves that go on, causality, dropout, and times at the edge of what is
/// possible.

namespace fastweights {
namespace {

using testing::input_of;
using testing::random;
using testing::relative_error;
using testing::same_bits;
using testing::Sample;

// rounding where two solves do the same steps
constexpr double kSameSteps = 1e-13;

ProgrammerConfig output_config() {
  ProgrammerConfig c;
  c.channels = 2;
  c.outputs = 3;
  c.hidden_size = 6;
  c.heads = 2;
  c.value_width = 5;
  c.feed_forward_size = 7;
  return c;
}

struct NamedConfig {
  std::string name;
  ProgrammerConfig config;
};

// every kind of control with a drive that it can serve; two layers here and there
std::vector<NamedConfig> all_controls() {
  std::vector<NamedConfig> result;
  const auto add = [&](const char* name, const ControlPath& kind, Drive drive, int64_t layers) {
    ProgrammerConfig c = output_config();
    c.control.path = kind;
    c.drive = drive;
    c.layers = layers;
    result.push_back({name, c});
  };
  add("natural_cubic", NaturalCubic{}, Drive::DerivativeKeys, 2);
  add("hermite_cubic", HermiteCubic{}, Drive::DerivativeValues, 1);
  add("linear", Linear{}, Drive::Derivative, 2);
  add("rectilinear", Rectilinear{}, Drive::DerivativeKeys, 1);
  add("hold", Hold{}, Drive::X, 2);
  for (WindowClock clock : {WindowClock::Windows, WindowClock::Time}) {
    const bool count = clock == WindowClock::Windows;
    const PointWindows points = {.increments = 2, .tail = WindowTail::Keep};
    add(count ? "points on windows" : "points on time", LogSignatures{.windows = points, .clock = clock},
        count ? Drive::X : Drive::Derivative, 2);
    add(count ? "durations on windows" : "durations on time",
        LogSignatures{.windows = DurationWindows{0.8}, .clock = clock}, count ? Drive::Derivative : Drive::X,
        1);
  }
  return result;
}

// two series of different lengths with missing values
std::vector<Sample> two_series() {
  std::vector<Sample> samples;
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t length = b == 0 ? 6 : 4;
    samples.push_back({testing::irregular_times(length, 5 + b) - 1,
                       testing::with_missing(random({length, 2}, 7 + b), 0.25, 9 + b)});
  }
  return samples;
}

double row_time(const Sample& s, int64_t row) {
  return s.times[std::min(row, s.times.size(0) - 1)].item<double>();
}

double last_time(const Sample& s) { return s.times[-1].item<double>(); }

// the fast weights of sample b at its output j
Tensor weights_at(const ModelOutput& out, int64_t layer, int64_t b, int64_t j) {
  return out.w[layer][out.offsets[b].item<int64_t>() + j];
}

// stops at `stops` (one time per sample), goes on to the end, and compares with one solve that does both
void expect_split_is_whole(const NamedConfig& named, std::vector<Sample> samples,
                           const std::vector<double>& stops) {
  const Model model(named.config, {.type = at::kDouble});
  for (size_t b = 0; b < samples.size(); ++b) samples[b].outputs = {stops[b]};
  const ModelOutput first = model.forward(input_of(samples));
  for (size_t b = 0; b < samples.size(); ++b) samples[b].outputs = {last_time(samples[b])};
  ModelInput rest = input_of(samples);
  rest.start = first.last;
  const ModelOutput second = model.forward(rest);
  for (size_t b = 0; b < samples.size(); ++b) {
    if (stops[b] < last_time(samples[b])) samples[b].outputs = {stops[b], last_time(samples[b])};
  }
  const ModelOutput whole = model.forward(input_of(samples));

  EXPECT_TRUE(at::equal(first.last.t, at::tensor(stops, at::kDouble))) << named.name;
  const int64_t layers = named.config.layers;
  ASSERT_EQ(static_cast<int64_t>(first.last.w.size()), layers);
  for (int64_t b = 0; b < static_cast<int64_t>(samples.size()); ++b) {
    const int64_t end = whole.offsets[b + 1].item<int64_t>() - 1, stop = whole.offsets[b].item<int64_t>();
    const std::string where =
        named.name + ", sample " + std::to_string(b) + ", stop " + std::to_string(stops[b]);
    EXPECT_LT(relative_error(first.outputs[b], whole.outputs[stop]), kSameSteps) << where;
    EXPECT_LT(relative_error(second.outputs[b], whole.outputs[end]), kSameSteps) << where;
    for (int64_t l = 0; l < layers; ++l) {
      EXPECT_EQ(first.last.w[l].sizes(), at::IntArrayRef({2, 2, 5, 3})) << where;
      EXPECT_LT(relative_error(first.last.w[l][b], whole.w[l][stop]), kSameSteps) << where;
      EXPECT_LT(relative_error(second.w[l][b], whole.w[l][end]), kSameSteps) << where;
    }
  }
}

TEST(ModelOutputs, StoppingAndGoingOnIsOneSolve) {
  const std::vector<Sample> samples = two_series();
  for (NamedConfig named : all_controls()) {
    for (double max_step : {0.0, 0.3}) {
      named.config.solver.steps = ObservationSteps{.max_step = max_step};
      // at every observation, the first and the last among them, and once in between: an output ends a step
      for (int64_t row = 0; row < 6; ++row) {
        expect_split_is_whole(named, samples, {row_time(samples[0], row), row_time(samples[1], row)});
      }
      const double between = (row_time(samples[0], 2) + row_time(samples[0], 3)) / 2;
      expect_split_is_whole(named, samples, {between, row_time(samples[1], 1) + 0.01});
    }
  }
}

TEST(ModelOutputs, StoppingAtTheBorderOfAWindowAndGoingOnIsOneSolve) {
  const std::vector<Sample> samples = two_series();
  const RaggedSeries series = input_of(samples).series;
  for (const NamedConfig& named : all_controls()) {
    const auto* c = std::get_if<LogSignatures>(&named.config.control.path);
    if (!c) continue;
    const WindowedLogSignature found = logsignature_windows(series, c->windows);
    const int64_t* o = found.offsets.data_ptr<int64_t>();
    ASSERT_GT(o[1], 1);
    for (int64_t w = 0; w < o[1]; ++w) {
      const int64_t other = std::min(o[1] + w, o[2] - 1);
      expect_split_is_whole(named, samples, {found.end[w].item<double>(), found.end[other].item<double>()});
    }
  }
}

TEST(ModelOutputs, StoppingAfterWholeFixedStepsAndGoingOnIsOneSolve) {
  std::vector<Sample> samples = two_series();
  for (NamedConfig named : all_controls()) {
    ProgrammerConfig& c = named.config;
    // where the clock is not time, steps are not multiples of a time
    const auto* windows = std::get_if<LogSignatures>(&c.control.path);
    const bool counts = std::holds_alternative<Rectilinear>(c.control.path) ||
                        (windows && windows->clock == WindowClock::Windows);
    if (counts) continue;
    c.solver.steps = RegularSteps{.size = 0.25};
    for (double k : {1.0, 2.0, 5.0}) {
      const double way = 0.25 * k;
      expect_split_is_whole(named, samples, {row_time(samples[0], 0) + way, row_time(samples[1], 0) + way});
    }
  }
}

TEST(ModelOutputs, OutputsAtObservationsAreThoseOfSolvesThatStopThere) {
  for (NamedConfig named : all_controls()) {
    named.config.deterministic = true;
    const Model model(named.config, {.type = at::kDouble});
    std::vector<Sample> samples = two_series();
    samples.push_back(samples[1]);
    samples[0].outputs = {row_time(samples[0], 0), row_time(samples[0], 2), row_time(samples[0], 3),
                          last_time(samples[0])};
    samples[1].outputs = {row_time(samples[1], 1)};
    samples[2].outputs = {};
    // a window's inside is cut by an output, so there only its borders are free of charge
    const bool cuts = std::holds_alternative<LogSignatures>(named.config.control.path);
    if (cuts) samples[0].outputs = {row_time(samples[0], 0), last_time(samples[0])};
    const ModelOutput all = model.forward(input_of(samples));
    EXPECT_EQ(all.outputs.sizes(), at::IntArrayRef({cuts ? 3 : 5, 3})) << named.name;
    EXPECT_TRUE(at::equal(all.offsets, at::tensor({0, cuts ? 2 : 4, cuts ? 3 : 5, cuts ? 3 : 5}, at::kLong)));
    EXPECT_EQ(all.last.t[2].item<double>(), row_time(samples[2], 0)) << named.name;
    for (int64_t b = 0; b < 2; ++b) {
      for (size_t j = 0; j < samples[b].outputs.size(); ++j) {
        Sample one = samples[b];
        one.outputs = {samples[b].outputs[j]};
        const ModelOutput alone = model.forward(input_of({one}));
        const int64_t row = all.offsets[b].item<int64_t>() + static_cast<int64_t>(j);
        // the same steps up to there, and the same bits
        EXPECT_TRUE(same_bits(alone.outputs[0], all.outputs[row])) << named.name << " " << b << " " << j;
        EXPECT_TRUE(same_bits(alone.w[0][0], weights_at(all, 0, b, static_cast<int64_t>(j)))) << named.name;
        EXPECT_EQ(all.times[row].item<double>(), one.outputs[0]);
      }
    }
  }
}

TEST(ModelOutputs, OutputsBetweenObservationsCutStepsAndMoveOthersByTheErrorOfTheMethodOnly) {
  NamedConfig named = all_controls()[0];
  named.config.solver.method = rk4();
  named.config.layers = 1;  // smooth between knots
  std::vector<Sample> samples = {two_series()[0]};
  samples[0].values = random({6, 2}, 3);
  std::vector<double> errors;
  for (double max_step : {0.4, 0.1}) {
    named.config.solver.steps = ObservationSteps{.max_step = max_step};
    const Model model(named.config, {.type = at::kDouble});
    samples[0].outputs = {last_time(samples[0])};
    const Tensor plain = model.forward(input_of(samples)).w[0][0];
    samples[0].outputs = {row_time(samples[0], 1) + 0.013, last_time(samples[0])};
    errors.push_back(relative_error(model.forward(input_of(samples)).w[0][1], plain));
  }
  EXPECT_GT(errors[0], 1e-12);  // steps did change
  // order 4: a quarter of the step, 1/256 of the error; a margin of 8 for its higher terms
  EXPECT_LT(errors[1], errors[0] / 32);
}

TEST(ModelOutputs, OutputsOnTheGridOfFixedStepsAreFreeOfCharge) {
  NamedConfig named = all_controls()[1];
  named.config.solver.steps = RegularSteps{.size = 0.25};
  const Model model(named.config, {.type = at::kDouble});
  std::vector<Sample> samples = two_series();
  const double begin = row_time(samples[0], 0);
  samples[0].outputs = {begin + 0.25, begin + 0.5, begin + 1.25};
  const ModelOutput all = model.forward(input_of(samples));
  for (int64_t j = 0; j < 3; ++j) {
    Sample one = samples[0];
    one.outputs = {samples[0].outputs[j]};
    EXPECT_LT(relative_error(model.forward(input_of({one})).w[0][0], all.w[0][j]), kSameSteps);
  }
}

TEST(ModelOutputs, TheDefaultOutputIsTheEndOfEachSeries) {
  for (const NamedConfig& named : all_controls()) {
    const Model model(named.config, {.type = at::kDouble});
    std::vector<Sample> samples = two_series();
    for (Sample& s : samples) s.outputs = {last_time(s)};
    ModelInput input = input_of(samples);
    const ModelOutput asked = model.forward(input);
    input.output_times = {};
    const ModelOutput plain = model.forward(input);
    EXPECT_TRUE(at::equal(plain.outputs, asked.outputs)) << named.name;
    EXPECT_TRUE(at::equal(plain.times, asked.times)) << named.name;
    EXPECT_TRUE(at::equal(plain.offsets, at::tensor({0, 1, 2}, at::kLong))) << named.name;
  }
}

TEST(ModelOutputs, BehindADroppedTailNothingMoves) {
  for (NamedConfig named : all_controls()) {
    auto* c = std::get_if<LogSignatures>(&named.config.control.path);
    if (!c || std::holds_alternative<DurationWindows>(c->windows)) continue;
    c->windows = PointWindows{.increments = 2, .tail = WindowTail::Drop};
    const Model model(named.config, {.type = at::kDouble});
    // five increments of which the fifth is dropped
    std::vector<Sample> samples = {two_series()[0]};
    samples[0].outputs = {row_time(samples[0], 4), last_time(samples[0])};
    ModelInput input = input_of(samples);
    const ModelOutput asked = model.forward(input);
    EXPECT_TRUE(at::equal(asked.w[0][0], asked.w[0][1])) << named.name;
    input.output_times = {};
    EXPECT_LT(relative_error(model.forward(input).outputs[0], asked.outputs[1]), kSameSteps) << named.name;
  }
}

TEST(ModelOutputs, ABatchThatWantsNoOutputsHasItsStart) {
  for (const ModelSteps& steps : std::vector<ModelSteps>{ObservationSteps{}, AdaptiveSteps{1e-6, 1e-8}}) {
    for (NamedConfig named : all_controls()) {
      named.config.solver.steps = steps;
      named.config.solver.method = dopri5();
      const Model model(named.config, {.type = at::kDouble});
      std::vector<Sample> samples = two_series();
      for (size_t count : {1, 2}) {
        samples.resize(count);
        for (Sample& s : samples) s.outputs = {};
        const ModelOutput none = model.forward(input_of(samples));
        EXPECT_EQ(none.outputs.sizes(), at::IntArrayRef({0, 3})) << named.name;
        for (Sample& s : samples) s.outputs = {row_time(s, 0)};
        const ModelOutput first = model.forward(input_of(samples));
        EXPECT_TRUE(at::equal(none.last.w[0], first.w[0])) << named.name;
        EXPECT_TRUE(at::equal(none.last.t, first.times)) << named.name;
        samples = two_series();
      }
    }
  }
}

}  // namespace
}  // namespace fastweights

#include <cmath>
#include <set>

#include "fastweights/environment.h"
#include "model/cases.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// Properties of every model, on random configurations and random ragged series.

namespace fastweights {
namespace {

using testing::chosen;
using testing::flat;
using testing::input_of;
using testing::Passes;
using testing::PerSample;
using testing::random_config;
using testing::random_samples;
using testing::relative_error;
using testing::run_passes;
using testing::same_bits;
using testing::Sample;

constexpr uint64_t kFirst = 49, kEnd = 83;  // seeds of configurations, chosen to meet every choice
constexpr int64_t kSamples = 5;

// what a failure is about
std::string about(const ProgrammerConfig& config, uint64_t seed) {
  std::string text = to_json(config);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '"'; });
  return "seed " + std::to_string(seed) + ": " + text;
}

Model model_of(const ProgrammerConfig& config, at::ScalarType type = at::kDouble) {
  return Model(config, {.seed = 3, .type = type});
}

// A relu inside the field makes corners and, where a derivative goes through it, jumps. An adaptive solve
// decides there by the last bits whether a step is taken, and those depend on the batch unless the model is
// deterministic: results then agree to the solver's tolerance, and nothing controls the error of gradients.
bool steps_are_chaotic(const ProgrammerConfig& c) {
  const bool relu = c.layers > 1 || (c.tensor_map && c.map_layers > 1);
  return std::holds_alternative<AdaptiveSteps>(c.solver.steps) && relu && !c.deterministic;
}

struct Tolerances {
  double values;     // of outputs and fast weights
  double gradients;  // of series and static features
};

// rounding of a few dozen steps, of which gradients see that of larger terms that cancel
Tolerances tolerances_of(const ProgrammerConfig& c) {
  return steps_are_chaotic(c) ? Tolerances{20 * std::get<AdaptiveSteps>(c.solver.steps).rtol, INFINITY}
                              : Tolerances{1e-12, 1e-10};
}

double largest(const Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item<double>(); }

void expect_close(const PerSample& got, const PerSample& expected, const Tolerances& tolerances,
                  const std::string& about) {
  const size_t last = expected[0].size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    // one sample's gradient may be zero but for rounding: errors are relative to the largest of the batch
    double scale = 0;
    for (const auto& sample : expected) scale = std::max(scale, largest(sample[i]));
    for (size_t b = 0; b < expected.size(); ++b) {
      const bool gradient = i == last || expected[b][i].dim() == 1;
      const double own = gradient ? scale : largest(expected[b][i]);
      const bool same_shape = got[b][i].sizes() == expected[b][i].sizes();
      const double error = same_shape ? largest(got[b][i] - expected[b][i]) : INFINITY;
      EXPECT_LT(own > 0 ? error / own : error, gradient ? tolerances.gradients : tolerances.values)
          << "sample " << b << ", tensor " << i << ", " << about;
    }
  }
}

// where bits differ: "sample 2, tensor 1", or "" if nowhere
std::string difference(const PerSample& got, const PerSample& expected) {
  for (size_t b = 0; b < expected.size(); ++b) {
    for (size_t i = 0; i < expected[b].size(); ++i) {
      if (same_bits(got[b][i], expected[b][i])) continue;
      return "sample " + std::to_string(b) + ", tensor " + std::to_string(i) + ", relative " +
             std::to_string(relative_error(got[b][i], expected[b][i]) * 1e16) + "e-16";
    }
  }
  return "";
}

PerSample one_by_one(const Model& model, const std::vector<Sample>& samples) {
  PerSample result;
  for (const Sample& sample : samples) result.push_back(run_passes(model, {sample}).samples[0]);
  return result;
}

TEST(ModelProperties, RandomConfigurationsMeetEveryChoice) {
  std::set<std::string> met;
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig c = random_config(seed);
    met.insert("rule " + c.rule);
    met.insert("drive " + (c.tensor_map ? "of a tensor map" : std::to_string(static_cast<int>(c.drive))));
    met.insert("control " + std::to_string(c.control.path.index()));
    met.insert("initial " + std::to_string(static_cast<int>(c.initial)));
    met.insert("steps " + std::to_string(c.solver.steps.index()));
    if (!c.tensor_map) met.insert("layers " + std::to_string(c.layers));
    if (c.layers > 1) met.insert("layer_input " + std::to_string(static_cast<int>(c.layer_input)));
    if (c.residual) met.insert("residual");
    if (c.value_norm) met.insert("value_norm");
    if (c.read == Read::Transposed) met.insert("transposed");
    if (const auto* windows = std::get_if<LogSignatures>(&c.control.path)) {
      met.insert("windows " + std::to_string(windows->windows.index()) +
                 std::to_string(static_cast<int>(windows->clock)));
    }
  }
  // rules 5, drives 5, controls 6, initial 4, steps 3 (not shared_grid), layers 3, layer inputs 2, residual,
  // value_norm, transposed, windows 2 x 2
  EXPECT_EQ(met.size(), 5 + 5 + 6 + 4 + 3 + 3 + 2 + 3 + 4);
}

TEST(ModelProperties, SampleInABatchIsTheSampleAlone) {
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig config = random_config(seed);
    const Model model = model_of(config);
    const std::vector<Sample> samples = random_samples(config, kSamples, seed);
    const Passes together = run_passes(model, samples);
    ASSERT_TRUE(together.output.status) << together.output.status.message() << about(config, seed);
    PerSample alone;
    Tensor sum;
    for (const Sample& sample : samples) {
      const Passes own = run_passes(model, {sample});
      alone.push_back(own.samples[0]);
      sum = sum.defined() ? sum + flat(own.parameters) : flat(own.parameters);
    }
    expect_close(together.samples, alone, tolerances_of(config), about(config, seed));
    if (steps_are_chaotic(config)) continue;
    EXPECT_LT(relative_error(flat(together.parameters), sum), 1e-10) << about(config, seed);
  }
}

// results of each sample in a batch of a given order, back in the order of the samples
PerSample in_order(const Model& model, const std::vector<Sample>& samples,
                   const std::vector<int64_t>& order) {
  const PerSample found = run_passes(model, chosen(samples, order)).samples;
  PerSample result(samples.size());
  for (size_t i = 0; i < order.size(); ++i) result[order[i]] = found[i];
  return result;
}

TEST(ModelProperties, OrderOfSamplesIsTheOrderOfOutputs) {
  const std::vector<int64_t> order = {3, 0, 4, 2, 1};
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig config = random_config(seed);
    const Model model = model_of(config);
    const std::vector<Sample> samples = random_samples(config, kSamples, seed);
    const PerSample plain = run_passes(model, samples).samples;
    expect_close(in_order(model, samples, order), plain, tolerances_of(config), about(config, seed));
  }
}

struct DeterministicCase {
  ProgrammerConfig config;
  uint64_t seed;
  at::ScalarType type;
  int64_t samples;
};

std::vector<DeterministicCase> deterministic_cases() {
  std::vector<DeterministicCase> cases;
  // sizes at which LibTorch shares work between threads, above 32768 elements: in a batch, and alone
  ProgrammerConfig crowd;
  crowd.channels = 2;
  crowd.outputs = 3;
  crowd.drive = Drive::DerivativeKeys;
  crowd.hidden_size = 72;
  crowd.heads = 3;
  cases.push_back({crowd, 1, at::kFloat, 20});
  ProgrammerConfig wide = crowd;
  wide.solver = {.method = dopri5(), .steps = AdaptiveSteps{.rtol = 1e-2, .atol = 1e-3}};
  wide.hidden_size = 190;
  wide.heads = 1;
  cases.push_back({wide, 2, at::kDouble, 2});
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    cases.push_back({random_config(seed), seed, at::kDouble, kSamples});
    cases.push_back({random_config(seed), seed, at::kFloat, kSamples});
  }
  for (DeterministicCase& c : cases) c.config.deterministic = true;
  return cases;
}

// the samples in a batch, in a batch of another order and in a smaller one have the bits that they have alone
void expect_bits(const DeterministicCase& c, const PerSample& alone) {
  const Model model = model_of(c.config, c.type);
  const std::vector<Sample> samples = random_samples(c.config, c.samples, c.seed);
  EXPECT_EQ(difference(run_passes(model, samples).samples, alone), "") << about(c.config, c.seed);
  std::vector<int64_t> order(c.samples);
  for (int64_t b = 0; b < c.samples; ++b) order[b] = (b + 2) % c.samples;
  std::swap(order[0], order[1]);
  EXPECT_EQ(difference(in_order(model, samples, order), alone), "") << about(c.config, c.seed);
  const PerSample two = run_passes(model, chosen(samples, {0, 1})).samples;
  EXPECT_EQ(difference(two, {alone[0], alone[1]}), "") << about(c.config, c.seed);
}

TEST(ModelProperties, DeterministicModeGivesTheSameBitsAloneInAnyBatchAndOnTwoThreads) {
  const std::vector<DeterministicCase> cases = deterministic_cases();
  const int before = environment().threads;
  set_threads(1);
  std::vector<PerSample> alone;
  for (const DeterministicCase& c : cases) {
    alone.push_back(one_by_one(model_of(c.config, c.type), random_samples(c.config, c.samples, c.seed)));
    expect_bits(c, alone.back());
  }
  // small sums are not shared between threads: some of the small cases and all large ones
  set_threads(2);
  for (size_t i = 0; i < cases.size(); i += cases[i].samples == kSamples ? 9 : 1) {
    const DeterministicCase& c = cases[i];
    const std::vector<Sample> two = chosen(random_samples(c.config, c.samples, c.seed), {0, 1});
    const PerSample again = one_by_one(model_of(c.config, c.type), two);
    EXPECT_EQ(difference(again, {alone[i][0], alone[i][1]}), "") << about(c.config, c.seed);
    expect_bits(c, alone[i]);
  }
  set_threads(before);
}

// series that would spoil others if anything of them leaked: huge values, almost nothing observed, far away
std::vector<Sample> poison(const ProgrammerConfig& config, double huge) {
  std::vector<Sample> samples = random_samples(config, 3, 77);
  for (Sample& s : samples) s.outputs = {s.times[-1].item<double>()};
  samples[0].values = samples[0].values * huge;
  samples[1].values.fill_(NAN);
  samples[1].values[0][0] = huge;
  samples[2].times = samples[2].times + 1e6;
  samples[2].outputs = {samples[2].times[-1].item<double>()};
  samples[2].values.nan_to_num_(-huge);
  return samples;
}

TEST(ModelProperties, NothingOfASampleReachesTheOthers) {
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    ProgrammerConfig config = random_config(seed);
    std::vector<Sample> samples = random_samples(config, 2, seed);
    // a channel that looks for its first observation and one that looks for its last
    if (!std::holds_alternative<Rectilinear>(config.control.path)) {
      for (Sample& s : samples) {
        s.values[0][0] = NAN;
        s.values[-1][-1] = NAN;
      }
    }
    for (bool deterministic : {false, true}) {
      config.deterministic = deterministic;
      const Model model = model_of(config);
      const PerSample alone = one_by_one(model, samples);
      // the second kind of numbers overflows
      for (double huge : {1e30, 1e300}) {
        std::vector<Sample> batch = poison(config, huge);
        batch.insert(batch.begin() + 1, samples[0]);
        batch.insert(batch.begin() + 3, samples[1]);
        PerSample found = run_passes(model, batch).samples;
        found = {found[1], found[3]};
        if (deterministic) {
          EXPECT_EQ(difference(found, alone), "") << huge << about(config, seed);
        } else {
          expect_close(found, alone, tolerances_of(config), about(config, seed));
        }
      }
    }
  }
}

TEST(ModelProperties, TimesOfSamplesMeanNothingAcrossSamples) {
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig config = random_config(seed);
    const Model model = model_of(config);
    std::vector<Sample> samples = random_samples(config, kSamples, seed);
    for (size_t b = 0; b < samples.size(); ++b) {
      const double offset = std::vector<double>{0, 1e6, -1e6, 0x1p30, 17}[b];
      samples[b].times = samples[b].times + offset;
      for (double& t : samples[b].outputs) t += offset;
    }
    expect_close(run_passes(model, samples).samples, one_by_one(model, samples), tolerances_of(config),
                 about(config, seed));
  }
}

std::vector<Sample> moved(std::vector<Sample> samples, double factor, double offset) {
  for (Sample& s : samples) {
    s.times = s.times * factor + offset;
    for (double& t : s.outputs) t = t * factor + offset;
  }
  return samples;
}

TEST(ModelProperties, OnlyDifferencesOfTimesMatter) {
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig config = random_config(seed);
    const Model model = model_of(config);
    const std::vector<Sample> samples = random_samples(config, 3, seed);
    const PerSample plain = run_passes(model, samples).samples;
    // gaps of 0.1 between times around 1000 are known to 1e-12, and cubic paths take their squares
    Tolerances tolerances = tolerances_of(config);
    if (!steps_are_chaotic(config)) tolerances = {1e-9, 1e-8};
    expect_close(run_passes(model, moved(samples, 1, 1000)).samples, plain, tolerances, about(config, seed));
  }
}

TEST(ModelProperties, TheUnitOfTimeDoesNotMatter) {
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    ProgrammerConfig config = random_config(seed), scaled = config;
    config.deterministic = scaled.deterministic = true;
    scaled.time_unit = 4 * config.time_unit;
    if (auto* windows = std::get_if<LogSignatures>(&scaled.control.path)) {
      if (auto* timed = std::get_if<DurationWindows>(&windows->windows)) timed->duration *= 4;
    }
    const std::vector<Sample> samples = random_samples(config, 3, seed);
    const PerSample plain = run_passes(model_of(config), samples).samples;
    // a factor of 4 touches no digit
    EXPECT_EQ(difference(run_passes(model_of(scaled), moved(samples, 4, 0)).samples, plain), "")
        << about(config, seed);
  }
}

// the same numbers with blocks of rows (and of columns) in another order
Tensor blocks(const Tensor& x, int64_t dimension, const Tensor& order) {
  const int64_t heads = order.size(0), size = x.size(dimension) / heads;
  const Tensor index = (order.unsqueeze(1) * size + at::arange(size, at::kLong)).reshape({-1});
  return x.index_select(dimension, index);
}

enum class Blocks { No, Yes };

// gives the model's parameter `name` of `from`, with its rows and columns in the order of the heads
void copy_permuted(const Model& from, Model& to, const std::string& name, Blocks rows, Blocks columns,
                   const Tensor& order) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < from.parameters().size(); ++i) {
    const std::string& full = from.parameters()[i].first;
    if (full.rfind(name + ".", 0) != 0) continue;
    Tensor value = from.parameters()[i].second.detach();
    if (rows == Blocks::Yes) value = blocks(value, 0, order);
    if (columns == Blocks::Yes && value.dim() == 2) value = blocks(value, 1, order);
    to.parameters()[i].second.detach().copy_(value);
  }
}

Model with_heads(const Model& model, const Tensor& order) {
  const ProgrammerConfig& c = model.config();
  Model result = model_of(c);
  const auto copy = [&](const std::string& name, Blocks rows, Blocks columns) {
    copy_permuted(model, result, name, rows, columns, order);
  };
  for (int64_t l = 0; l < c.layers; ++l) {
    const std::string layer = "layers." + std::to_string(l);
    // what a layer reads is made of heads above the first layer, and a residual connection adds to heads
    const Blocks inputs = l > 0 ? Blocks::Yes : Blocks::No;
    const Blocks encoded = l > 0 || c.residual ? Blocks::Yes : Blocks::No;
    copy(layer + ".input", encoded, Blocks::No);
    copy(layer + ".norm", encoded, Blocks::No);
    copy(layer + ".program", Blocks::Yes, encoded);
    copy(layer + ".value", Blocks::Yes, inputs);
    copy(layer + ".value_norm", Blocks::Yes, Blocks::No);
    copy(layer + ".value_out", Blocks::Yes, Blocks::Yes);
    copy(layer + ".query", Blocks::Yes, encoded);
    copy(layer + ".ff.norm", Blocks::Yes, Blocks::No);
    copy(layer + ".ff.in", Blocks::No, Blocks::Yes);
    copy(layer + ".ff.out", Blocks::Yes, Blocks::No);
  }
  copy("static.out", Blocks::Yes, Blocks::No);
  copy("out", Blocks::No, Blocks::Yes);
  return result;
}

TEST(ModelProperties, OrderOfHeadsDoesNotMatter) {
  int compared = 0;
  for (uint64_t seed = kFirst; seed < kEnd; ++seed) {
    const ProgrammerConfig config = random_config(seed);
    if (config.tensor_map || config.heads == 1) continue;
    const Tensor order = (at::arange(config.heads, at::kLong) + 1) % config.heads;
    const Model model = model_of(config), other = with_heads(model, order);
    const ModelInput input = input_of(random_samples(config, 3, seed));
    const ModelOutput expected = model.forward(input), got = other.forward(input);
    const double tolerance = tolerances_of(config).values;
    EXPECT_LT(relative_error(got.outputs, expected.outputs), tolerance) << about(config, seed);
    for (size_t l = 0; l < expected.w.size(); ++l)
      EXPECT_LT(relative_error(got.w[l], expected.w[l].index_select(1, order)), tolerance)
          << about(config, seed);
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

}  // namespace
}  // namespace fastweights

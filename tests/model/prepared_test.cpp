#include <gtest/gtest.h>

#include "fastweights/network.h"
#include "fastweights/optimise.h"
#include "model/small_model.h"

/// Batches that are prepared once and used often, on the CPU.

namespace fastweights::testing {
namespace {

// series of 6, 4, 9 and 2 points
RaggedSeries four_series() {
  std::vector<Tensor> times, values;
  for (const int64_t length : {6, 4, 9, 2}) {
    times.push_back(irregular_times(length, static_cast<uint64_t>(length)));
    values.push_back(random({length, kChannels}, static_cast<uint64_t>(length) + 10));
  }
  return ragged(times, values);
}

ModelConfig baseline(const Architecture& architecture) {
  return {.channels = kChannels, .outputs = 2, .architecture = architecture};
}

// what the engine samples in different ways, and baselines
std::vector<ModelConfig> all_kinds() {
  return {with({}),
          with({{"drive", "derivative_keys"}}),
          with({{"drive", "derivative"}, {"control.kind", "linear"}}),
          with({{"drive", "derivative_values"}, {"control.kind", "natural_cubic"}, {"layers", "2"}}),
          with({{"control.kind", "hold"}, {"solver.method", "flow"}}),
          with({{"control.kind", "log_signature"}, {"control.window_increments", "1"}}),
          with({{"query", "first_observation"}, {"initial", "first_observation"}}),
          with({{"solver.gradient", "adjoint"}}),
          with({{"solver.steps", "adaptive"}, {"solver.method", "dopri5"}}),
          with({{"backend", "reference"}}),
          baseline(NeuralCde{.hidden_size = 6}),
          baseline(Recurrent{.hidden_size = 6})};
}

std::vector<Tensor> outputs_and_gradients(const Model& model, const ModelOutput& output) {
  std::vector<Tensor> all = gradients(output.outputs.square().sum(), model.parameter_tensors());
  all.push_back(output.outputs.detach());
  all.insert(all.end(), output.w.begin(), output.w.end());
  return all;
}

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], expected[i])) << what << " " << i;
}

TEST(Prepared, PassesHaveTheBitsOfTheInputItself) {
  const ModelInput input = {.series = four_series()};
  for (const ModelConfig& config : all_kinds()) {
    const Model model = small_model(config);
    const std::vector<Tensor> expected = outputs_and_gradients(model, model.forward(input));
    const PreparedBatch batch = model.prepare(input);
    EXPECT_EQ(batch.samples(), 4);
    for (int i = 0; i < 2; ++i)
      expect_equal(outputs_and_gradients(model, model.forward(batch)), expected, to_json(config).c_str());
  }
}

TEST(Prepared, SelectedSamplesAreThoseOfABatch) {
  const ModelInput input = {.series = four_series()};
  const std::vector<int64_t> samples = {2, 0, 3};
  const ModelInput some = select_samples(input, samples);
  EXPECT_EQ(some.series.offsets[1].item<int64_t>(), 9);
  for (const ModelConfig& config : all_kinds()) {
    const Model model = small_model(config);
    for (const Reuse reuse : {Reuse::Once, Reuse::Often}) {
      const PreparedBatch batch = model.prepare(input, reuse).select(samples);
      EXPECT_EQ(batch.samples(), 3);
      expect_equal(outputs_and_gradients(model, model.forward(batch)),
                   outputs_and_gradients(model, model.forward(some)), to_json(config).c_str());
    }
  }
}

TEST(Prepared, SelectionKeepsOutputTimesFeaturesAndStarts) {
  ProgrammerConfig config = small_config();
  config.static_features = 2;
  config.initial = InitialWeights::StaticFeatures;
  const Model model = small_model(config);
  const RaggedSeries series = four_series();
  ModelInput input = {.series = series, .static_features = random({4, 2}, 5)};
  input.output_times = RaggedTimes{series.times, series.offsets};
  const ModelOutput all = model.forward(input), some = model.forward(model.prepare(input).select({2, 1}));
  const auto rows = [&](const Tensor& x) { return at::cat({x.slice(0, 10, 19), x.slice(0, 6, 10)}, 0); };
  EXPECT_LT(relative_error(some.outputs, rows(all.outputs)), 1e-12);
  EXPECT_TRUE(at::equal(some.times, rows(all.times)));
  EXPECT_TRUE(at::equal(some.last.t, at::stack({all.last.t[2], all.last.t[1]}, 0)));
  // on from the first of them
  input.start = FastWeightState{all.last.w, series.times.index_select(0, series.offsets.slice(0, 0, -1))};
  const ModelOutput later = model.forward(input);
  EXPECT_LT(relative_error(model.forward(model.prepare(input).select({2, 1})).outputs, rows(later.outputs)),
            1e-12);
}

TEST(Prepared, TheSignalIsSampledInAdvanceUnlessMemoryIsLimited) {
  const ModelInput input = {.series = four_series()};
  ProgrammerConfig config = small_config();
  EXPECT_GT(small_model(config).prepare(input).bytes(), 0);
  EXPECT_EQ(small_model(config).prepare(input, Reuse::Once).bytes(), 0);
  config.solver.memory_limit = int64_t{1} << 30;
  EXPECT_EQ(small_model(config).prepare(input).bytes(), 0);
}

TEST(Prepared, BadUsesGetASentence) {
  const ModelInput input = {.series = four_series()};
  const Model model = small_model();
  const PreparedBatch batch = model.prepare(input);
  EXPECT_EQ(error_message([&] { batch.select({4}); }), "[model] sample 4 is out of range for 4 samples");
  EXPECT_EQ(error_message([&] { small_model(baseline(Recurrent{})).forward(batch); }),
            "[model] this batch was prepared by a model of another architecture");
  EXPECT_EQ(error_message([&] { model.forward(batch, {.observe = [](const Time&, const Samples&) {}}); }),
            "[model] the signal of this batch is sampled at fixed steps; prepare it with Reuse::Once");
}

TEST(Prepared, ALimitThatIsSetLaterHolds) {
  Model model = small_model();
  const RaggedSeries series = shared_times(at::arange(400, at::kDouble), random({3, 400, kChannels}, 1));
  const PreparedBatch batch = model.prepare({.series = series});
  const ModelOutput whole = model.forward(batch);
  EXPECT_EQ(whole.plan.blocks, 1);
  SolverConfig solver = *solver_of(model.config());
  solver.memory_limit = 1;
  model.set_solver(solver);
  const ModelOutput cut = model.forward(batch);
  EXPECT_GT(cut.plan.blocks, 1);
  EXPECT_LT(relative_error(cut.outputs, whole.outputs), 1e-13);
}

}  // namespace
}  // namespace fastweights::testing

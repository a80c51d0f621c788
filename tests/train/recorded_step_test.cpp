#include "train/recorded_step.h"

#include <cmath>

#include "base/random.h"
#include "fastweights/architecture.h"
#include "fastweights/tensor.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/random_tensor.h"
#include "train/tensor_adam.h"

/// Training steps as CUDA graphs, against the same steps one piece of work after another. Machines with a GPU
/// only.

namespace fastweights {
namespace {

using testing::relative_error;

// other sums over rows, since there is room for more of them
constexpr double kReplayRounding = 1e-5;

class RecordedSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }

  // a slow net of 3 channels has a kernel of its own, one of 20 does not
  static ProgrammerConfig config(int64_t channels) {
    ProgrammerConfig c;
    c.channels = channels;
    c.outputs = 3;
    c.hidden_size = 24;
    c.heads = 3;
    c.drive = Drive::DerivativeKeys;
    c.dropout = 0.3;
    c.value_dropout = 0.2;
    return c;
  }

  static RaggedSeries series(int64_t channels) {
    Random random(6);
    std::vector<double> times;
    std::vector<int64_t> offsets = {0};
    for (const int64_t length : {5, 9, 2, 17, 11, 6, 3, 14}) {
      for (int64_t i = 0; i < length; ++i) times.push_back(static_cast<double>(i) + 0.5 * random.uniform());
      offsets.push_back(static_cast<int64_t>(times.size()));
    }
    return {uniform({static_cast<int64_t>(times.size()), channels}, -1, 1, random, at::kFloat),
            at::tensor(times, at::kDouble), at::tensor(offsets, at::kLong)};
  }

  const at::Device device_ = find_device("auto");
};

struct Step {
  std::vector<int64_t> samples;
  Batch truth;
  uint64_t seed;
};

Step classified(std::vector<int64_t> samples, const std::vector<int64_t>& classes, uint64_t seed) {
  Step step = {std::move(samples), {}, seed};
  step.truth.classes = at::tensor(classes, at::kLong);
  return step;
}

struct ReplaySettings {
  double clip = 1, penalty = 0;
  Tensor class_weights = {};
};

StepWork work_of(const Model& model, const ReplaySettings& settings) {
  return {
      .network = model.network(),
      .optimiser = make_adam(*model.network(), {}),
      .loss = [weights = settings.class_weights](
                  const Tensor& outputs, const Batch& batch) { return task_loss(outputs, batch, weights); },
      .clip = settings.clip,
      .penalty = settings.penalty};
}

// a graph is recorded with the first step, with room for all samples, and replays all steps; another model
// takes the same steps one operation after another
void expect_same_steps(const ProgrammerConfig& config, const at::Device& device, const ModelInput& data,
                       const ReplaySettings& settings, const std::vector<Step>& steps) {
  const Model model(config, {.device = device}), other(config, {.device = device});
  const StepWork work = work_of(model, settings), other_work = work_of(other, settings);
  const PreparedBatch all = model.prepare(data);
  const PreparedBatch first = all.select(steps[0].samples);
  ASSERT_TRUE(model.network()->can_record(first));
  RecordedStep recorded(work, first, steps[0].truth, total_rows(all));
  // recording changes nothing
  for (size_t i = 0; i < model.parameters().size(); ++i)
    ASSERT_TRUE(model.parameters()[i].second.equal(other.parameters()[i].second))
        << model.parameters()[i].first;
  PlainSteps plain(other_work);
  for (const Step& step : steps) {
    const PreparedBatch input = all.select(step.samples);
    ASSERT_TRUE(recorded.takes(input, step.truth));
    work.optimiser->begin_step(1e-2);
    const ComputedStep got = recorded.run(input, step.truth, step.seed);
    const ComputedStep expected = plain.run({step.samples, step.seed, input, step.truth}, 1e-2);
    EXPECT_TRUE(got.replayed);
    EXPECT_FALSE(expected.replayed);
    EXPECT_TRUE(std::isfinite(expected.summary[0].item<double>()));
    EXPECT_LT(relative_error(got.gradient.flat, expected.gradient.flat), kReplayRounding)
        << "seed " << step.seed;
    EXPECT_LT(relative_error(got.summary, expected.summary), kReplayRounding);
  }
  EXPECT_FALSE(recorded.takes(all.select({0, 1}), steps[0].truth)) << "fewer samples";
}

// ragged: other samples of other lengths in every step
const std::vector<Step> kReplayLengths = {classified({0, 1, 2}, {0, 1, 1}, 7),
                                          classified({3, 4, 7}, {1, 0, 1}, 8),
                                          classified({2, 6, 0}, {1, 0, 0}, 9)};

TEST_F(RecordedSteps, WithAKernelForTheSlowNet) {
  const ProgrammerConfig c = config(3);
  expect_same_steps(c, device_, {.series = series(3)}, {}, kReplayLengths);
}

TEST_F(RecordedSteps, WithProductsForTheSlowNet) {
  const ProgrammerConfig c = config(20);
  expect_same_steps(c, device_, {.series = series(20)}, {}, kReplayLengths);
}

TEST_F(RecordedSteps, OfTwoClassesWithWeightsAndAPenalty) {
  ProgrammerConfig c = config(3);
  c.outputs = 1;
  const Tensor weights = at::tensor({0.5, 2.0}, at::kFloat).to(device_);
  expect_same_steps(c, device_, {.series = series(3)}, {0.0, 1e-3, weights}, kReplayLengths);
}

TEST_F(RecordedSteps, WithUnknownClasses) {
  const std::vector<Step> steps = {classified({0, 1, 2}, {0, -1, 1}, 7),
                                   classified({3, 4, 7}, {-1, -1, -1}, 8),
                                   classified({2, 6, 0}, {2, 1, 0}, 9)};
  expect_same_steps(config(3), device_, {.series = series(3)}, {}, steps);
  ProgrammerConfig two = config(3);
  two.outputs = 1;
  const Tensor weights = at::tensor({0.5, 2.0}, at::kFloat).to(device_);
  expect_same_steps(two, device_, {.series = series(3)}, {.class_weights = weights},
                    {classified({0, 1, 2}, {0, -1, 1}, 7), classified({3, 4, 7}, {1, -1, 0}, 8)});
}

// reads of lower layers, and their gradients, in rows that a batch does not have
TEST_F(RecordedSteps, OfSeveralLayers) {
  for (const Drive drive : {Drive::X, Drive::DerivativeKeys, Drive::DerivativeValues}) {
    for (const LayerInput input : {LayerInput::Weights, LayerInput::Update}) {
      ProgrammerConfig c = config(3);
      c.layers = 3;
      c.drive = drive;
      c.layer_input = input;
      c.residual = true;
      expect_same_steps(c, device_, {.series = series(3)}, {}, kReplayLengths);
    }
  }
}

TEST_F(RecordedSteps, OfRungeKuttaAndOja) {
  ProgrammerConfig c = config(3);
  c.layers = 2;
  c.rule = "oja";
  c.solver.method = Method(rk4());
  expect_same_steps(c, device_, {.series = series(3)}, {}, kReplayLengths);
}

TEST_F(RecordedSteps, OfTargets) {
  std::vector<Step> steps = kReplayLengths;
  for (Step& step : steps) {
    step.truth = {};
    step.truth.targets = at::full({3, 3}, 0.5, at::kFloat);
    step.truth.targets[1][2] = NAN;
  }
  expect_same_steps(config(3), device_, {.series = series(3)}, {}, steps);
}

// outputs at all rows: other numbers of them in every step
TEST_F(RecordedSteps, OfStepOutputs) {
  const RaggedSeries data = series(3);
  const int64_t* o = data.offsets.data_ptr<int64_t>();
  std::vector<Step> steps = kReplayLengths, values = kReplayLengths;
  for (size_t i = 0; i < steps.size(); ++i) {
    int64_t rows = 0;
    for (const int64_t b : steps[i].samples) rows += o[b + 1] - o[b];
    steps[i].truth.classes = at::arange(rows, at::kLong).remainder(4) - 1;
    values[i].truth = {};
    values[i].truth.targets = at::arange(rows, at::kFloat).unsqueeze(1).expand({rows, 3}).contiguous() / 10;
  }
  for (const int64_t layers : {1, 2}) {
    ProgrammerConfig c = config(3);
    c.layers = layers;
    const ModelInput input = {.series = data, .output_times = RaggedTimes{data.times, data.offsets}};
    expect_same_steps(c, device_, input, {}, steps);
    expect_same_steps(c, device_, input, {}, values);
  }
}

// also without a GPU
TEST(ReplayedStepsAnywhere, TheLogSaysOnceWhyStepsAreNotReplayed) {
  const Model model(named_model("gru", {.channels = 2, .outputs = 2}));
  const RaggedSeries series = {at::zeros({4, 2}), at::arange(4, at::kDouble),
                               at::tensor({0, 2, 4}, at::kLong)};
  const PreparedBatch all = model.prepare({.series = series});
  ReplayedSteps steps(work_of(model, {}), all);
  std::vector<std::string> notes;
  for (int i = 0; i < 40; ++i) {
    for (const Step& step : {classified({0, 1}, {0, 1}, 1), classified({1}, {0}, 1)}) {
      const ComputedStep taken =
          steps.run({step.samples, step.seed, all.select(step.samples), step.truth}, 1e-3);
      EXPECT_FALSE(taken.replayed);
      if (!taken.note.empty()) notes.push_back(taken.note);
    }
  }
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "training steps on 2 series are not replayed as a CUDA graph: this model cannot record "
            "a pass on such batches");
}

}  // namespace
}  // namespace fastweights

#include "train/recorded_step.h"

#include <numeric>

#include "base/random.h"
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
  std::vector<int64_t> samples, classes;
  uint64_t seed;
};

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

// a graph is recorded with the first step and replays all of them; another model takes the same steps one
// operation after another
void expect_same_steps(const ProgrammerConfig& config, const at::Device& device, const RaggedSeries& series,
                       const ReplaySettings& settings, const std::vector<Step>& steps) {
  const Model model(config, {.device = device}), other(config, {.device = device});
  const StepWork work = work_of(model, settings), other_work = work_of(other, settings);
  const PreparedBatch all = model.prepare({.series = series});
  const PreparedBatch first = all.select(steps[0].samples);
  const auto truth = [](const std::vector<int64_t>& classes) {
    Batch batch;
    batch.classes = at::tensor(classes, at::kLong);
    return batch;
  };
  ASSERT_EQ(RecordedStep::refusal(*model.network(), first, truth(steps[0].classes)), "");
  // room for any batch, or for exactly this one if the model has several layers
  const std::vector<int64_t> counts = (config.layers > 1 ? first : all).contents().step_counts();
  const int64_t rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  RecordedStep recorded(work, first, truth(steps[0].classes), rows);
  // recording changes nothing
  for (size_t i = 0; i < model.parameters().size(); ++i)
    ASSERT_TRUE(model.parameters()[i].second.equal(other.parameters()[i].second))
        << model.parameters()[i].first;
  PlainSteps plain(other_work);
  for (const Step& step : steps) {
    const PreparedBatch input = all.select(step.samples);
    const Batch known = truth(step.classes);
    ASSERT_TRUE(recorded.takes(input, known));
    work.optimiser->begin_step(1e-2);
    const ComputedStep got = recorded.run(input, known, step.seed);
    Batch there = known;
    there.classes = known.classes.to(device);
    const ComputedStep expected = plain.run({step.samples, step.seed, input, there}, 1e-2);
    EXPECT_TRUE(got.replayed);
    EXPECT_FALSE(expected.replayed);
    EXPECT_LT(relative_error(got.gradient.flat, expected.gradient.flat), kReplayRounding)
        << "seed " << step.seed;
    EXPECT_LT(relative_error(got.summary, expected.summary), kReplayRounding);
  }
  EXPECT_FALSE(recorded.takes(all.select({0, 1}), truth({0, 1}))) << "fewer samples";
  EXPECT_FALSE(recorded.takes(first, truth({0, 1, -1}))) << "a class that is not known";
}

// ragged: other samples of other lengths in every step
const std::vector<Step> kReplayLengths = {
    {{0, 1, 2}, {0, 1, 1}, 7}, {{3, 4, 7}, {1, 0, 1}, 8}, {{2, 6, 0}, {1, 0, 0}, 9}};

TEST_F(RecordedSteps, WithAKernelForTheSlowNet) {
  const ProgrammerConfig c = config(3);
  expect_same_steps(c, device_, series(3), {}, kReplayLengths);
}

TEST_F(RecordedSteps, WithProductsForTheSlowNet) {
  const ProgrammerConfig c = config(20);
  expect_same_steps(c, device_, series(20), {}, kReplayLengths);
}

TEST_F(RecordedSteps, OfTwoClassesWithWeightsAndAPenalty) {
  ProgrammerConfig c = config(3);
  c.outputs = 1;
  const Tensor weights = at::tensor({0.5, 2.0}, at::kFloat).to(device_);
  expect_same_steps(c, device_, series(3), {0.0, 1e-3, weights}, kReplayLengths);
}

TEST_F(RecordedSteps, OfTwoLayersOnAsManyRows) {
  ProgrammerConfig c = config(3);
  c.layers = 2;
  const std::vector<Step> steps = {
      {{0, 1, 2}, {0, 1, 2}, 7}, {{2, 0, 1}, {2, 2, 1}, 8}, {{1, 2, 0}, {1, 0, 0}, 9}};
  expect_same_steps(c, device_, series(3), {}, steps);
}

// also without a GPU
TEST(ReplayedStepsAnywhere, TheLogSaysOnceWhyStepsAreNotReplayed) {
  const DataShape shape = {.channels = 2, .outputs = 2};
  const Model model(named_model("gru", shape));
  const RaggedSeries series = {at::zeros({4, 2}), at::arange(4, at::kDouble),
                               at::tensor({0, 2, 4}, at::kLong)};
  const PreparedBatch all = model.prepare({.series = series});
  ReplayedSteps steps(work_of(model, {}), all, 2);
  Batch truth;
  truth.classes = at::tensor({0, 1}, at::kLong);
  std::vector<std::string> notes;
  for (int i = 0; i < 40; ++i) {
    const ComputedStep step = steps.run({{0, 1}, 1, all, truth}, 1e-3);
    EXPECT_FALSE(step.replayed);
    if (!step.note.empty()) notes.push_back(step.note);
  }
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(
      notes[0],
      "training steps are not replayed as a CUDA graph: this model cannot record a pass on such a batch");
}

}  // namespace
}  // namespace fastweights

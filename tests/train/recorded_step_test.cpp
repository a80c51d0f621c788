#include "train/recorded_step.h"

#include "base/random.h"
#include "fastweights/device.h"
#include "support/support.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

/// Training steps as CUDA graphs, against the same steps one piece of work after another. Machines with a GPU
/// only.

namespace fastweights {
namespace {

using testing::relative_error;

// other sums over rows, since there is room for more of them
constexpr double kFloat = 1e-5;

class RecordedSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }

  // a slow net of 3 channels has a kernel of its own, one of 20 does not
  static ModelConfig config(int64_t channels) {
    ModelConfig c;
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

  static Batch truth(const std::vector<int64_t>& classes) {
    Batch batch;
    batch.classes = at::tensor(classes, at::kLong);
    return batch;
  }

  const at::Device device_ = find_device("auto");
};

TEST_F(RecordedSteps, AreThoseThatWereRecordedAndAllOthersOfTheirShape) {
  for (const int64_t channels : {3, 20}) {
    const FastWeightProgrammer model(config(channels), {.device = device_}),
        other(config(channels), {.device = device_});
    DeviceAdam adam(model, {}), other_adam(other, {});
    const PreparedInput all = model.prepare({.series = series(channels)});
    const StepWork work = {model, 1.0, 0.0, {}}, other_work = {other, 1.0, 0.0, {}};
    struct Step {
      std::vector<int64_t> samples, classes;
      uint64_t seed;
    };
    const std::vector<Step> steps = {
        {{0, 1, 2}, {0, 1, 2}, 7}, {{3, 4, 7}, {2, 2, 1}, 8}, {{2, 6, 0}, {1, 0, 0}, 9}};
    const PreparedInput first = all.select(steps[0].samples);
    ASSERT_TRUE(RecordedStep::possible(model, first, truth(steps[0].classes)));
    RecordedStep recorded(work, adam, first, truth(steps[0].classes), /*rows=*/60);
    // recording changes nothing
    for (size_t i = 0; i < model.parameters().size(); ++i)
      ASSERT_TRUE(model.parameters()[i].second.equal(other.parameters()[i].second))
          << model.parameters()[i].first;
    for (const Step& step : steps) {
      const PreparedInput input = all.select(step.samples);
      const Batch known = truth(step.classes);
      ASSERT_TRUE(recorded.takes(input, known));
      adam.begin_step(1e-2);
      const StepGradient got = recorded.run(input, known, step.seed);
      const StepGradient expected = step_gradient(other_work, input, known, step.seed);
      other_adam.begin_step(1e-2);
      const RecordGradients off(false);
      other_adam.apply(expected.flat, expected.norm, 1.0);
      EXPECT_LT(relative_error(got.flat, expected.flat), kFloat)
          << channels << " channels, seed " << step.seed;
      EXPECT_LT(relative_error(got.numbers, expected.numbers), kFloat);
    }
    EXPECT_FALSE(recorded.takes(all.select({0, 1}), truth({0, 1}))) << "fewer samples";
    EXPECT_FALSE(recorded.takes(first, truth({0, 1, -1}))) << "a class that is not known";
  }
}

}  // namespace
}  // namespace fastweights

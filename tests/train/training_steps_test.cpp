#include "train/training_steps.h"

#include "model/programmer_config.h"

#include "base/random.h"
#include "fastweights/tensor.h"
#include "support/support.h"
#include "train/tensor_adam.h"
#include "train/train_cases.h"

/// Training steps on a GPU, also where it has little memory left. Machines with a GPU only.

namespace fastweights {
namespace {

// long series of two classes
DataSet long_series(int64_t samples, int64_t length) {
  Random random(2);
  std::vector<Series> all;
  for (int64_t b = 0; b < samples; ++b) {
    Series s = {.id = std::to_string(b), .label = b % 2 == 0 ? "up" : "down"};
    for (int64_t i = 0; i < length; ++i) {
      s.times.push_back(static_cast<double>(i));
      for (int c = 0; c < 2; ++c) s.values.push_back(random.uniform(-1, 1));
    }
    all.push_back(std::move(s));
  }
  return collect_series({.name = "long", .channels = {"x", "y"}}, all);
}

class DeviceTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }
  const at::Device device_ = find_device("auto");
};
// takes nearly all memory
class DeviceShortage : public DeviceTraining {};

TEST_F(DeviceShortage, StepsAreCutIntoBlocksAndGiveTheSame) {
  const TrainData data = train_data(long_series(80, 4000));
  ProgrammerConfig config = small_model(data);
  config.hidden_size = 64;
  config.heads = 8;
  config.dropout = 0;
  TrainingSteps::BatchId all;
  for (int64_t b = 0; b < data.train.samples(); ++b) all.samples.push_back(b);
  all.seed = 3;
  const auto loss_of_second = [&] {
    const Model model(config, {.device = device_});
    TrainingSteps training(model, data, {}, make_adam(*model.network(), {}), {}, {});
    training.step(all, all, 1e-3);
    return training.step(all, {}, 1e-3).loss;
  };
  const double expected = loss_of_second();
  release_device_memory();
  // all but this much is taken; a step takes several times as much
  constexpr int64_t kLeft = int64_t{256} << 20;
  const Tensor others =
      at::empty({device_memory(device_).free - kLeft}, at::TensorOptions(at::kByte).device(device_));
  EXPECT_NEAR(loss_of_second(), expected, 1e-5);
}

TEST_F(DeviceTraining, EpochsCountTheStepsThatWereReplayed) {
  const TrainData data = train_data(two_classes(16));
  Trainer trainer(Model(small_model(data), {.device = device_}), data, {.epochs = 3, .batch_size = 4});
  int64_t replayed = 0, total = 0;
  while (!trainer.finished()) {
    const TrainStep step = trainer.step();
    replayed += step.replayed ? 1 : 0;
    if (!step.epoch_record) continue;
    EXPECT_EQ(step.epoch_record->steps, 3);
    EXPECT_EQ(step.epoch_record->replayed_steps, replayed);
    total += replayed;
    replayed = 0;
  }
  EXPECT_GT(total, 0);
}

}  // namespace
}  // namespace fastweights

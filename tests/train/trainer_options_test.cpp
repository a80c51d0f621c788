#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/data_support.h"
#include "fastweights/run.h"
#include "fastweights/train.h"
#include "support/support.h"
#include "tensor/runtime.h"
#include "train/prepared_set.h"
#include "train/trainer_steps.h"

namespace fastweights {
namespace {

using testing::copies;
using testing::equal;
using testing::expect_same;
using testing::run;

TEST(TrainerOptions, PreparingTheDataOnceChangesNoBit) {
  const TrainData data = train_data(two_classes(16));
  ProgrammerConfig lazy = small_model(data);
  // with a limit, however large, the signal is sampled in every step
  lazy.solver.memory_limit = int64_t{1} << 40;
  const TrainConfig config = {.epochs = 3, .batch_size = 5};
  Trainer once(Model(small_model(data)), data, config), always(Model(lazy), data, config);
  expect_same(run(once), run(always));
  EXPECT_TRUE(equal(copies(once), copies(always)));
  const auto expect_equal = [](const Predictions& got, const Predictions& expected) {
    for (const auto field :
         {&Predictions::outputs, &Predictions::times, &Predictions::samples, &Predictions::classes})
      EXPECT_TRUE(at::equal(got.*field, expected.*field));
  };
  for (Trainer* trainer : {&once, &always}) {
    expect_equal(trainer->predict_training(),
                 predict(trainer->model(), data.train, data.preparation, data.task));
    expect_equal(trainer->predict_validation(),
                 predict(trainer->model(), data.validation, data.preparation, data.task));
  }
}

// gradient descent without any memory but a count
class Descent : public Optimiser {
 public:
  explicit Descent(const Model& model) : parameters_(model.parameter_tensors()) {}
  void begin_step(double learning_rate) override { rate_ = learning_rate; }
  void apply(const StepGradient& gradient, double) override {
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].sub_(gradient.by_parameter[i], rate_);
    ++count_;
  }
  std::map<std::string, Tensor> state() const override {
    return {{"descent.count", at::tensor({count_}, at::kLong)}};
  }
  void set_state(const std::map<std::string, Tensor>& tensors) override {
    count_ = tensors.at("descent.count").item<int64_t>();
  }

 private:
  std::vector<Tensor> parameters_;
  double rate_ = 0;
  int64_t count_ = 0;
};

TEST(TrainerOptions, TakesOwnLossesOptimisersAndCallbacks) {
  const TrainData data = train_data(two_classes(16));
  int64_t losses = 0, steps = 0, epochs = 0;
  const TrainerOptions options = {
      .loss =
          [&](const Tensor& outputs, const Batch& batch) {
            ++losses;
            return (outputs.squeeze(1) - batch.classes.to(at::kFloat)).square().mean();
          },
      .optimiser = [](const Model& model) { return std::make_unique<Descent>(model); },
      .on_step = [&](const TrainStep& step) { steps += step.replayed ? 0 : 1; },
      .on_epoch = [&](const TrainEpoch& epoch) { epochs = epoch.epoch; }};
  const TrainConfig config = {.epochs = 4, .batch_size = 4, .learning_rate = 0.1, .warm_up = 0};
  Trainer trainer(Model(small_model(data)), data, config, options);
  const auto records = run(trainer);
  EXPECT_EQ(losses, 12);
  EXPECT_EQ(steps, 12);
  EXPECT_EQ(epochs, 4);
  EXPECT_LT(records.back().epoch_record->loss, records[2].epoch_record->loss);
  const NamedTensors state = trainer.state();
  EXPECT_EQ(state.tensors.at("descent.count").item<int64_t>(), 12);
  EXPECT_FALSE(state.tensors.contains("adam.steps"));
  Trainer resumed(Model(small_model(data)), data, config, options);
  resumed.set_state(state);
  EXPECT_TRUE(same_bits(resumed.state(), state));
}

TEST(TrainerOptions, TrainingsDoNotSeeEachOthersPrecision) {
  const TrainData data = train_data(two_classes(16));
  const bool before = uses_tf32();
  const auto trainer_with = [&](Tf32 tf32, std::vector<bool>& seen) {
    return Trainer(Model(small_model(data)), data, {.epochs = 1, .batch_size = 4},
                   {.loss =
                        [&seen](const Tensor& outputs, const Batch& batch) {
                          seen.push_back(uses_tf32());
                          return task_loss(outputs, batch, {});
                        },
                    .tf32 = tf32});
  };
  std::vector<bool> rounded, exact;
  Trainer first = trainer_with(Tf32::Yes, rounded), second = trainer_with(Tf32::No, exact);
  while (!first.finished()) {
    first.step();
    EXPECT_EQ(uses_tf32(), before);
    second.step();
  }
  EXPECT_EQ(rounded, std::vector<bool>(3, true));
  EXPECT_EQ(exact, std::vector<bool>(3, false));
}

TEST(TrainerOptions, TheOldNameOfBucketingIsRead) {
  EXPECT_EQ(run_config_from_json(R"({"training": {"like_length": 4}})").training.bucket_batches, 4);
  EXPECT_EQ(to_json(RunConfig{}).find("like_length"), std::string::npos);
}

}  // namespace
}  // namespace fastweights

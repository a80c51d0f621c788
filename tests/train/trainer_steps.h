#pragma once

#include "support/support.h"
#include "train/train_cases.h"

/// Small trainings, and their steps compared.

namespace fastweights::testing {

// 12 series to train on in 3 steps per epoch, 4 for validation
inline Trainer small_trainer(TrainConfig config, uint64_t model_seed = 1) {
  const TrainData data = train_data(two_classes(16));
  if (config.batch_size == 0) config.batch_size = 4;
  return {Model(small_model(data), {.seed = model_seed}), data, config};
}

inline std::vector<TrainStep> run(Trainer& trainer, int64_t most = 1000000) {
  std::vector<TrainStep> records;
  while (!trainer.finished() && static_cast<int64_t>(records.size()) < most) {
    records.push_back(trainer.step());
    if (!records.back().not_finite.empty()) break;
  }
  return records;
}

inline std::vector<Tensor> copies(const Trainer& trainer) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : trainer.model().parameter_tensors())
    all.push_back(parameter.detach().clone());
  return all;
}

inline bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

// all but the time they took
inline void expect_same(const std::vector<TrainStep>& a, const std::vector<TrainStep>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].epoch, b[i].epoch);
    EXPECT_EQ(a[i].step, b[i].step);
    EXPECT_EQ(a[i].loss, b[i].loss) << i;
    EXPECT_EQ(a[i].gradient_norm, b[i].gradient_norm) << i;
    EXPECT_EQ(a[i].learning_rate, b[i].learning_rate) << i;
    ASSERT_EQ(a[i].epoch_record.has_value(), b[i].epoch_record.has_value());
    if (!a[i].epoch_record) continue;
    EXPECT_EQ(a[i].epoch_record->loss, b[i].epoch_record->loss);
    EXPECT_EQ(a[i].epoch_record->steps, b[i].epoch_record->steps);
    EXPECT_EQ(a[i].epoch_record->replayed_steps, b[i].epoch_record->replayed_steps);
    EXPECT_EQ(a[i].epoch_record->best, b[i].epoch_record->best);
    EXPECT_EQ(a[i].epoch_record->validation, b[i].epoch_record->validation);
  }
}

}  // namespace fastweights::testing

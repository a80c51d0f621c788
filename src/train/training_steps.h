#pragma once

#include "train/prepared_set.h"
#include "train/recorded_step.h"

/// Steps through a training set. What does not depend on parameters is prepared once for all epochs where
/// memory allows. On a GPU a step synchronises once, to read the loss.

namespace fastweights {

struct StepOutcome {
  double loss = 0, gradient_norm = 0;
  bool replayed = false;
  std::string note = {}, not_finite = {};
};

class TrainingSteps {
 public:
  /// Without a loss, steps use the task's with these weights of classes.
  TrainingSteps(const Model& model, const TrainData& data, const TrainConfig& config,
                std::shared_ptr<Optimiser> optimiser, LossFunction loss, const Tensor& class_weights);

  /// A batch by its samples; the seed is of dropout and of what the task hides.
  struct BatchId {
    std::vector<int64_t> samples;
    uint64_t seed = 0;
  };
  /// The next batch is prepared while a GPU computes this one. Takes shorter blocks of time if the memory of
  /// a GPU does not suffice.
  StepOutcome step(const BatchId& batch, const std::optional<BatchId>& next, double learning_rate);

  /// From data that are kept prepared, where they are.
  Predictions predict_training() const;
  Predictions predict_validation();

  Optimiser& optimiser() const { return *optimiser_; }

 private:
  const Model& model() const { return limited_ ? *limited_ : model_; }
  void make_runner();
  ReadyBatch make_ready(const BatchId& batch) const;
  void prepare_next(const BatchId& next);
  Status in_data_time(Status status, const BatchId& batch) const;
  StepOutcome try_step(const std::optional<BatchId>& next, double learning_rate);
  void halve_memory(size_t samples);

  Model model_;
  std::optional<Model> limited_;  // the model within less memory; parameters are shared
  TrainData data_;                // tensors are shared
  TrainConfig config_;
  std::shared_ptr<Optimiser> optimiser_;
  enum class Recording { Possible, Impossible };
  Recording recording_;  // a loss of the user's may synchronise
  LossFunction loss_;
  std::optional<PreparedBatch> all_;  // the whole training set, if it is kept
  std::unique_ptr<StepRunner> runner_;
  std::optional<ReadyBatch> ready_;
  enum class Kept { Unknown, No, Yes };
  Kept validation_kept_ = Kept::Unknown;
  std::vector<ReadyBatch> validation_;
};

}  // namespace fastweights

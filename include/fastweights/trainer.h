#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fastweights/calibration.h"
#include "fastweights/model.h"
#include "fastweights/optimise.h"
#include "fastweights/predictions.h"
#include "fastweights/task.h"
#include "fastweights/tensor.h"

/// Training as a sequence of steps that can be interrupted and resumed: the same seed and the same number of
/// threads give the same bits, interrupted or not.

namespace fastweights {

/// Cosine decays to zero over the whole run. Plateau divides by ten when the validation metric has not
/// improved for some epochs.
enum class RateSchedule { Cosine, Plateau, Constant };

/// Balanced: every class has the same total weight.
enum class ClassWeights { None, Balanced };

struct TrainConfig {
  int64_t epochs = 0;          ///< 0: about 2,000 steps, at least 20 and at most 150 epochs
  int64_t batch_size = 0;      ///< 0: a sixteenth of the data, at least 16 and at most 256
  int64_t bucket_batches = 1;  ///< sort by length within pools of this many batches; 1: no bucketing
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  double clip = 1;  ///< gradient clipping: largest 2-norm; 0: none
  RateSchedule schedule = RateSchedule::Cosine;
  double warm_up = 0.05;  ///< fraction of all steps over which the rate rises from zero
  int64_t plateau_patience = 10;
  int64_t patience = 0;     ///< early stopping: epochs without improvement; 0: off
  std::string metric = {};  ///< selects the model; empty: auroc for two classes, accuracy for more, mse
  ClassWeights class_weights = ClassWeights::None;
  double positive_weight = 0;  ///< of the second of two classes; 0: use class_weights
  double penalty = 0;          ///< the published regulariser: weight of the sum of the parameters' 2-norms
  double head_rate = 1;        ///< factor of the learning rate of the last layer
  std::string threshold_for = "balanced_accuracy";  ///< metric that the threshold of two classes maximises
  CalibrationRule calibration = CalibrationRule::Automatic;
  double interval = 0.9;  ///< level of prediction intervals of numbers; 0: none
  int64_t seed = 1;
};

/// Training data. If validation is empty, the training loss selects the model.
struct TrainData {
  PreparedData train, validation;
  Preparation preparation;
  TaskConfig task;
};

struct TrainEpoch {
  int64_t epoch = 0;  ///< from 1
  /// Steps taken, and those of them that were replayed as a recorded CUDA graph.
  int64_t steps = 0, replayed_steps = 0;
  double loss = 0;  ///< mean over the training steps
  double learning_rate = 0;
  double seconds = 0;
  Metrics validation = {};
  bool best = false;  ///< its parameters are those that training would keep if it ended now
};

struct TrainStep {
  int64_t epoch = 0, step = 0, steps = 0;  ///< from 1; steps of the epoch
  int64_t samples = 0;
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  bool replayed = false;  ///< as a recorded CUDA graph
  /// A line for the log: why steps are not replayed from here on; otherwise empty.
  std::string note = {};
  std::string not_finite = {};                  ///< the value that is not finite; parameters are unchanged
  std::vector<int64_t> batch = {};              ///< its samples, if a value is not finite
  std::optional<TrainEpoch> epoch_record = {};  ///< if the step was the last of an epoch
};

/// Replacements for built-in parts of the trainer.
struct TrainerOptions {
  /// The loss [] of outputs [M, O]; the batch has classes and targets, but no input. Default: task_loss().
  std::function<Tensor(const Tensor& outputs, const Batch& batch)> loss = {};
  /// Creates the optimiser of the parameters. Default: Adam, fused on a GPU.
  std::function<std::unique_ptr<Optimiser>(const Model& model)> optimiser = {};
  std::function<void(const TrainStep&)> on_step = {};    ///< called after each step
  std::function<void(const TrainEpoch&)> on_epoch = {};  ///< called after each epoch
  Tf32 tf32 = Tf32::No;  ///< of this trainer; trainers in several threads of a process need the same value
};

/// A model on a GPU is trained there.
class Trainer {
 public:
  Trainer(Model model, TrainData data, const TrainConfig& config, TrainerOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Trains on one batch; after the last batch of an epoch, evaluates the model on the validation set.
  TrainStep step();
  bool finished() const;

  /// With defaults filled in.
  const TrainConfig& config() const;
  const Model& model() const;
  int64_t steps_per_epoch() const;
  int64_t steps_done() const;
  int64_t epochs_done() const;
  double best_value() const;
  int64_t best_epoch() const;

  /// Sets the parameters to those of the best epoch.
  void restore_best();

  /// predict() of the parts, from the data that training keeps prepared.
  Predictions predict_training();
  Predictions predict_validation();

  /// The state to resume from.
  NamedTensors state() const;
  void set_state(const NamedTensors& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All samples once, in batches in random order, sorted by length within pools of `bucket_batches` batches.
std::vector<std::vector<int64_t>> random_batches(const Tensor& offsets, int64_t size, int64_t bucket_batches,
                                                 uint64_t seed);

/// Weights that balance the classes, with mean 1 over the samples: [K].
Tensor balanced_weights(const Tensor& classes, int64_t count);

}  // namespace fastweights

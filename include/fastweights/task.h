#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastweights/data.h"
#include "fastweights/model.h"

/// What a model is to predict, and batches of prepared data for it.

namespace fastweights {

/// Automatic: classes, if series have labels; targets, if they have those; a class at every row, if rows have
/// labels; otherwise forecasting. Forecast: the channels in the last rows of each series, of which the model
/// sees only the times. Imputation: values that are hidden here and there.
enum class TaskKind { Automatic, Classification, Regression, StepClassification, Forecast, Imputation };

struct TaskConfig {
  TaskKind kind = TaskKind::Automatic;
  double horizon = 0.25;  ///< forecasting: the share of a series' rows to predict
  double hidden = 0.2;    ///< imputation: the share of observed values to predict
};

/// The kind that Automatic stands for, or an error if the data have nothing of the kind that was asked for.
TaskKind task_kind(const DataSet& data, const TaskConfig& config);

/// Numbers that the model puts out: one for two classes, otherwise one each.
int64_t output_count(TaskKind kind, const Preparation& preparation);

/// Scaled data of one set, as tensors.
struct PreparedData {
  std::vector<std::string> ids;
  Tensor values;       // [N, C] float32, NaN: not observed
  Tensor times;        // [N] float64
  Tensor offsets;      // [B + 1] int64
  Tensor statics;      // [B, F] float32, or undefined
  Tensor labels;       // [B] int64, -1: unknown; or undefined
  Tensor targets;      // [B, O] float32, NaN: unknown; or undefined
  Tensor step_labels;  // [N] int64, -1: unknown; or undefined

  int64_t samples() const { return offsets.size(0) - 1; }
};

/// Of data that have the preparation's names (see match_data()).
PreparedData prepare(const DataSet& data, const Preparation& preparation);

/// M rows of outputs belong to B samples.
struct Batch {
  ModelInput input;
  Tensor classes;  // [M] int64, -1: unknown; or undefined
  Tensor targets;  // [M, O] float32, NaN: unknown or not asked for; or undefined
};

/// Of forecasting and imputation. Hidden: known values that the model does not get to see, to compare with.
/// Missing: the unknown ones, from all that is known: rows behind the last observation, or every row.
enum class Wanted { Hidden, Missing };

/// `seed` and the place of a series in its set choose the values that imputation hides.
Batch make_batch(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
                 const std::vector<int64_t>& samples, uint64_t seed, Wanted wanted = Wanted::Hidden);

/// What make_batch() says about the truth, without the input; not for imputation, which draws what it hides.
Batch truth_of(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
               const std::vector<int64_t>& samples);

/// The data with rows to forecast behind those of each series, a median gap apart: so many, or, for 0, as
/// many as make up the task's horizon. Series that end with rows without values stay as they are: these rows
/// say which times are wanted.
DataSet with_future(const DataSet& data, const TaskConfig& task, const Preparation& preparation,
                    int64_t rows);

/// The mean loss over rows whose truth is known: logistic or cross entropy with weights per class ([K], or
/// undefined), or the mean square. Zero, with gradients, if nothing is known.
Tensor task_loss(const Tensor& outputs, const Batch& batch, const Tensor& class_weights);

}  // namespace fastweights

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastweights/data.h"
#include "fastweights/model.h"

/// Tasks, batches of prepared data for them, and metrics of predictions.

namespace fastweights {

/// Automatic: classification if series have labels, regression if they have targets, step classification if
/// rows have labels, otherwise forecasting. Forecast: predicts the channels in the last rows of each series,
/// of which only the times are inputs. Imputation: predicts observed values that are removed from the input
/// at random.
enum class TaskKind { Automatic, Classification, Regression, StepClassification, Forecast, Imputation };

inline bool is_classification(TaskKind kind) {
  return kind == TaskKind::Classification || kind == TaskKind::StepClassification;
}

struct TaskConfig {
  TaskKind kind = TaskKind::Automatic;
  double horizon = 0.25;  ///< forecasting: fraction of the rows of a series to predict; 1 or more: rows
  double hidden = 0.2;    ///< imputation: fraction of observed values to predict
};

/// The number of rows that forecasting predicts, of a series of `length` rows.
int64_t horizon_rows(const TaskConfig& config, int64_t length);

/// The kind that Automatic selects. An error if the data lack the labels or targets of the kind.
TaskKind task_kind(const DataSet& data, const TaskConfig& config);

/// A sentence: the kind, why Automatic selects it if it does, and how another one is selected.
std::string task_note(const DataSet& data, TaskKind kind);

/// fit_preparation() for a task. Forecasting and imputation hold values out, so times since the last observed
/// row are longer than gaps of the data; the usual gap is at least as long as these times.
Preparation fit_preparation(const DataSet& data, const std::vector<int64_t>& samples,
                            const PrepareConfig& config, const TaskConfig& task);

/// Outputs of the model: one for two classes, otherwise one per class, target or channel.
int64_t output_count(TaskKind kind, const Preparation& preparation);

/// A scaled data set as tensors.
struct PreparedData {
  std::vector<std::string> ids;
  Tensor values;       // [N, C] float32, NaN: not observed
  Tensor times;        // [N] float64
  Tensor offsets;      // [B + 1] int64
  Tensor statics;      // [B, F] float32, or undefined
  Tensor labels;       // [B] int64, -1: unknown; or undefined
  Tensor targets;      // [B, O] float32, NaN: unknown; or undefined
  Tensor step_labels;  // [N] int64, -1: unknown; or undefined
  /// The first channel of the column of each channel: those of a text column share one. Empty: each has its
  /// own.
  std::vector<int64_t> columns = {};  // [C]

  int64_t samples() const { return offsets.size(0) - 1; }
};

/// Scales data that have the preparation's names (see match_data()): all, or the given samples.
PreparedData prepare(const DataSet& data, const Preparation& preparation);
PreparedData prepare(const DataSet& data, const std::vector<int64_t>& samples,
                     const Preparation& preparation);

/// M rows of outputs belong to B samples.
struct Batch {
  ModelInput input;  ///< in model time, see docs/time_and_gaps.md
  Tensor classes;    // [M] int64, -1: unknown; or undefined
  Tensor targets;    // [M, O] float32, NaN: unknown or not held out; or undefined
  Tensor times;      // [M] float64: of the outputs, as the data have them
  Tensor guess;      // [M, O] float32: first guess; outputs and targets are differences from it; or undefined
};

/// Targets of forecasting and imputation. HeldOut: observed values, which are removed from the input.
/// Missing: unobserved values, predicted from all observed ones: rows after the last observation, or every
/// row.
enum class Targets { HeldOut, Missing };

/// `seed` and the index of a series in its set choose the values that imputation holds out; channels of a
/// text column are held out together.
Batch make_batch(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
                 const std::vector<int64_t>& samples, uint64_t seed, Targets targets = Targets::HeldOut);

/// Classes and targets of make_batch() without the input; not for imputation, whose held-out values depend on
/// the seed.
Batch truth_of(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
               const std::vector<int64_t>& samples);

/// Appends rows to forecast to each series, a median gap apart: `rows` of them, or 0 for the task's horizon.
/// Series that end with rows without values are unchanged: these rows give the times to forecast.
DataSet with_future(const DataSet& data, const TaskConfig& task, const Preparation& preparation,
                    int64_t rows);

/// The mean loss over rows with a known class or target: logistic or cross entropy with weights per class
/// ([K], or undefined), or the mean square. Zero, with gradients, if there are none.
Tensor task_loss(const Tensor& outputs, const Batch& batch, const Tensor& class_weights);

using Metrics = std::vector<std::pair<std::string, double>>;

/// Probabilities [M, K] and true classes [M]; rows with class -1 are ignored. Accuracy,
/// balanced accuracy (mean recall over classes that occur), log-loss, F1 (of the second of two classes, or
/// the mean over classes), AUROC and average precision (of two classes; with more, the mean of one against
/// the rest over classes that occur), expected calibration error of the most probable class (15 bins of equal
/// width), Brier score (squared error of the second of two classes, or the sum over classes). `threshold`
/// decides between two classes.
Metrics classification_metrics(const Tensor& probabilities, const Tensor& classes, double threshold = 0.5);

/// Predictions and targets [M, O] in the units of the data; NaN is ignored. Mean squared and absolute errors,
/// and the fraction of variance explained. evaluate() adds two metrics of channels: SMAPE, the mean of twice
/// the absolute error divided by the sum of the absolute prediction and value, in their own units; MASE, the
/// mean absolute error divided by Preparation::naive_errors.
Metrics regression_metrics(const Tensor& predictions, const Tensor& targets);

/// The value of the metric with this name; NaN if it is absent.
double metric(const Metrics& metrics, const std::string& name);

/// Whether larger values of the metric are better.
bool larger_is_better(const std::string& name);

/// Fraction of pairs of a positive and a negative that the scores order correctly; ties count half.
double auroc(const Tensor& scores, const Tensor& positive);
double average_precision(const Tensor& scores, const Tensor& positive);

/// The probability threshold that maximises a metric: accuracy, balanced_accuracy or f1.
double best_threshold(const Tensor& probabilities, const Tensor& classes, const std::string& name);

/// Points of the ROC curve from (0, 0) to (1, 1).
struct Roc {
  std::vector<double> false_positive, true_positive, thresholds;
};
Roc roc(const Tensor& scores, const Tensor& positive);

/// [K, K]: rows are true classes.
std::vector<std::vector<int64_t>> confusion(const Tensor& predicted, const Tensor& classes, int64_t count);

/// Sigmoid or softmax of outputs: [M, 1] or [M, K] -> [M, K] float64.
Tensor class_probabilities(const Tensor& outputs);

/// The most probable class; of two classes the second if its probability reaches the threshold: [M].
Tensor predicted_classes(const Tensor& probabilities, double threshold);

}  // namespace fastweights

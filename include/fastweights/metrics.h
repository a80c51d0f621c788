#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fastweights/tensor.h"

/// Metrics of predictions, in float64 on the CPU.

namespace fastweights {

using Metrics = std::vector<std::pair<std::string, double>>;

/// Probabilities [M, K] and true classes [M]; rows with class -1 are ignored. Accuracy,
/// balanced accuracy (mean recall over classes that occur), log-loss, F1 (of the second of two classes, or
/// the mean over classes), AUROC and average precision (of two classes; with more, the mean of one against
/// the rest over classes that occur). `threshold` decides between two classes.
Metrics classification_metrics(const Tensor& probabilities, const Tensor& classes, double threshold = 0.5);

/// Predictions and targets [M, O] in the units of the data; NaN is ignored. Mean squared and absolute errors,
/// and the fraction of variance explained.
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

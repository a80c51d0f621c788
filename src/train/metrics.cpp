#include "fastweights/task.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/metric_sums.h"

namespace fastweights {
namespace {

std::vector<double> doubles(const Tensor& x) {
  const Tensor flat = x.detach().to(at::kCPU, at::kDouble).contiguous().view(-1);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

std::vector<int64_t> integers(const Tensor& x) {
  const Tensor flat = x.detach().to(at::kCPU, at::kLong).contiguous().view(-1);
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

// counts of positives and negatives at or above each distinct score, in descending order
struct Ranked {
  std::vector<double> scores, positives, negatives;
};

Ranked ranked(const Tensor& scores, const Tensor& positive) {
  const std::vector<double> s = doubles(scores), y = doubles(positive);
  FW_CHECK(s.size() == y.size(), "[metrics] ", s.size(), " scores need as many truths, got ", y.size());
  const Ranking found = ranking(s);
  Ranked out;
  double positives = 0, negatives = 0;
  for (size_t i = 0; i < found.order.size(); ++i) {
    const size_t row = found.order[i];
    (y[row] > 0.5 ? positives : negatives) += 1;
    if (!found.group_end[i]) continue;
    out.scores.push_back(s[row]);
    out.positives.push_back(positives);
    out.negatives.push_back(negatives);
  }
  return out;
}

// half way between two scores, robust to rounding; always above the lower one
double half_way(double lower, double upper) {
  return std::max((lower + upper) / 2, std::nextafter(lower, INFINITY));
}

RankingMetrics ranking_metrics(const Tensor& scores, const Tensor& positive) {
  const std::vector<double> s = doubles(scores), y = doubles(positive);
  FW_CHECK(s.size() == y.size(), "[metrics] ", s.size(), " scores need as many truths, got ", y.size());
  std::vector<bool> truth(y.size());
  std::transform(y.begin(), y.end(), truth.begin(), [](double x) { return x > 0.5; });
  return ranking_metrics(ranking(s), truth, std::vector<double>(s.size(), 1));
}

struct Known {
  Tensor probabilities, classes;  // [M', K], [M']
};

Known known_rows(const Tensor& probabilities, const Tensor& classes) {
  FW_CHECK(probabilities.dim() == 2 && classes.dim() == 1 && probabilities.size(0) == classes.size(0),
           "[metrics] probabilities must be [M, K] and classes [M], got ", probabilities.sizes(), " and ",
           classes.sizes());
  const Tensor known = classes.ge(0).nonzero().squeeze(1);
  return {probabilities.index_select(0, known), classes.index_select(0, known)};
}

}  // namespace

Tensor class_probabilities(const Tensor& outputs) {
  const Tensor z = outputs.detach().to(at::kDouble);
  if (z.size(1) > 1) return at::softmax(z, 1);
  const Tensor p = at::sigmoid(z);
  return at::cat({1 - p, p}, 1);
}

Tensor predicted_classes(const Tensor& probabilities, double threshold) {
  if (probabilities.size(1) != 2) return probabilities.argmax(1);
  return probabilities.select(1, 1).ge(threshold).to(at::kLong);
}

double auroc(const Tensor& scores, const Tensor& positive) { return ranking_metrics(scores, positive).auroc; }

double average_precision(const Tensor& scores, const Tensor& positive) {
  return ranking_metrics(scores, positive).average_precision;
}

Roc roc(const Tensor& scores, const Tensor& positive) {
  const Ranked r = ranked(scores, positive);
  Roc curve = {{0}, {0}, {INFINITY}};
  for (size_t i = 0; i < r.scores.size(); ++i) {
    curve.false_positive.push_back(r.negatives[i] / std::max(r.negatives.back(), 1.0));
    curve.true_positive.push_back(r.positives[i] / std::max(r.positives.back(), 1.0));
    curve.thresholds.push_back(r.scores[i]);
  }
  return curve;
}

Metrics classification_metrics(const Tensor& probabilities, const Tensor& classes, double threshold) {
  const Known known = known_rows(probabilities, classes);
  const ClassSums sums(known.probabilities, known.classes, threshold);
  return sums.metrics(std::vector<double>(sums.rows(), 1));
}

Metrics regression_metrics(const Tensor& predictions, const Tensor& targets) {
  return RegressionSums(predictions, targets, {}, at::zeros({targets.size(0)}, at::kLong), 1).metrics({1});
}

double metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [known, value] : metrics) {
    if (known == name) return value;
  }
  return NAN;
}

bool larger_is_better(const std::string& name) {
  static const std::vector<std::string> kErrors = {"mse",   "mae",   "log_loss", "loss", "ece",
                                                   "brier", "width", "smape",    "mase"};
  return std::find(kErrors.begin(), kErrors.end(), name) == kErrors.end();
}

double best_threshold(const Tensor& probabilities, const Tensor& classes, const std::string& name) {
  const Known known = known_rows(probabilities, classes);
  const Ranked r = ranked(known.probabilities.select(1, 1), known.classes);
  if (r.scores.empty()) return 0.5;
  const double positives = r.positives.back(), negatives = r.negatives.back();
  FW_CHECK(name == "accuracy" || name == "balanced_accuracy" || name == "f1",
           "[threshold] can be chosen for accuracy, balanced_accuracy or f1, not for '", name, "'");
  double best = -1, threshold = 0.5;
  for (size_t i = 0; i < r.scores.size(); ++i) {
    const double found = r.positives[i], wrong = r.negatives[i];
    const double value = name == "f1" ? 2 * found / (found + wrong + positives)
                         : name == "accuracy"
                             ? (found + negatives - wrong) / (positives + negatives)
                             : found / std::max(positives, 1.0) - wrong / std::max(negatives, 1.0) + 1;
    if (value <= best) continue;
    best = value;
    threshold = i + 1 < r.scores.size() ? half_way(r.scores[i + 1], r.scores[i]) : r.scores[i] / 2;
  }
  // nothing above the threshold: half of balanced accuracy, all negatives right
  const double none = name == "f1" ? 0 : name == "accuracy" ? negatives / (positives + negatives) : 1;
  if (none > best) threshold = half_way(r.scores[0], 1);
  return threshold;
}

std::vector<std::vector<int64_t>> confusion(const Tensor& predicted, const Tensor& classes, int64_t count) {
  std::vector<std::vector<int64_t>> table(static_cast<size_t>(count),
                                          std::vector<int64_t>(static_cast<size_t>(count), 0));
  const std::vector<int64_t> guess = integers(predicted), truth = integers(classes);
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] >= 0) ++table[static_cast<size_t>(truth[i])][static_cast<size_t>(guess[i])];
  }
  return table;
}

}  // namespace fastweights

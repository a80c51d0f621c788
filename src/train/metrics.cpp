#include "fastweights/task.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace fastweights {
namespace {

constexpr double kSmallestProbability = 1e-15;

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
  // NaN cannot be ordered
  if (std::any_of(s.begin(), s.end(), [](double x) { return std::isnan(x); })) return {};
  std::vector<size_t> order(s.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return s[a] > s[b]; });
  Ranked out;
  double positives = 0, negatives = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    (y[order[i]] > 0.5 ? positives : negatives) += 1;
    if (i + 1 < order.size() && s[order[i + 1]] == s[order[i]]) continue;
    out.scores.push_back(s[order[i]]);
    out.positives.push_back(positives);
    out.negatives.push_back(negatives);
  }
  return out;
}

// half way between two scores, robust to rounding; always above the lower one
double half_way(double lower, double upper) {
  return std::max((lower + upper) / 2, std::nextafter(lower, INFINITY));
}

// of one class: true positives, false negatives, false positives
struct Counts {
  double right = 0, missed = 0, wrong = 0;

  double recall() const { return right / (right + missed); }
  double f1() const { return 2 * right / std::max(2 * right + missed + wrong, 1.0); }
};

std::vector<Counts> class_counts(const std::vector<int64_t>& predicted, const std::vector<int64_t>& classes,
                                 int64_t count) {
  std::vector<Counts> counts(static_cast<size_t>(count));
  for (size_t i = 0; i < classes.size(); ++i) {
    const auto truth = static_cast<size_t>(classes[i]), guess = static_cast<size_t>(predicted[i]);
    if (truth == guess) {
      counts[truth].right += 1;
    } else {
      counts[truth].missed += 1;
      counts[guess].wrong += 1;
    }
  }
  return counts;
}

// the mean over classes that occur, or NaN
template <typename Function>
double mean_over(const std::vector<Counts>& counts, Function value) {
  double sum = 0, present = 0;
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k].right + counts[k].missed == 0) continue;
    sum += value(k);
    present += 1;
  }
  return present > 0 ? sum / present : NAN;
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

double auroc(const Tensor& scores, const Tensor& positive) {
  const Ranked r = ranked(scores, positive);
  if (r.scores.empty() || r.positives.back() == 0 || r.negatives.back() == 0) return NAN;
  double area = 0, positives = 0, negatives = 0;
  for (size_t i = 0; i < r.scores.size(); ++i) {
    area += (r.negatives[i] - negatives) * (r.positives[i] + positives) / 2;
    positives = r.positives[i];
    negatives = r.negatives[i];
  }
  return area / (positives * negatives);
}

double average_precision(const Tensor& scores, const Tensor& positive) {
  const Ranked r = ranked(scores, positive);
  if (r.scores.empty() || r.positives.back() == 0) return NAN;
  double sum = 0, positives = 0;
  for (size_t i = 0; i < r.scores.size(); ++i) {
    sum += (r.positives[i] - positives) * r.positives[i] / (r.positives[i] + r.negatives[i]);
    positives = r.positives[i];
  }
  return sum / positives;
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
  const int64_t count = probabilities.size(1);
  const Tensor& p = known.probabilities;
  const std::vector<int64_t> truth = integers(known.classes);
  const std::vector<Counts> counts = class_counts(integers(predicted_classes(p, threshold)), truth, count);
  double right = 0;
  for (const Counts& c : counts) right += c.right;
  const auto total = static_cast<double>(truth.size());
  const auto one_against_rest = [&](auto measure) {
    if (count == 2) return measure(p.select(1, 1), known.classes);
    return mean_over(counts, [&](size_t k) {
      const auto j = static_cast<int64_t>(k);
      return measure(p.select(1, j), known.classes.eq(j));
    });
  };
  const Tensor likely = p.gather(1, known.classes.unsqueeze(1)).clamp_min(kSmallestProbability);
  Metrics metrics;
  metrics.emplace_back("accuracy", total > 0 ? right / total : NAN);
  metrics.emplace_back("balanced_accuracy", mean_over(counts, [&](size_t k) { return counts[k].recall(); }));
  metrics.emplace_back("auroc", one_against_rest(auroc));
  metrics.emplace_back("average_precision", one_against_rest(average_precision));
  metrics.emplace_back(
      "f1", count == 2 ? counts[1].f1() : mean_over(counts, [&](size_t k) { return counts[k].f1(); }));
  metrics.emplace_back("log_loss", total > 0 ? -likely.log().mean().item<double>() : NAN);
  return metrics;
}

Metrics regression_metrics(const Tensor& predictions, const Tensor& targets) {
  const Tensor y = targets.to(at::kDouble), known = y.isnan().logical_not();
  const Tensor truth = y.masked_select(known),
               difference = predictions.detach().to(at::kDouble).masked_select(known) - truth;
  if (truth.size(0) == 0) return {{"mse", NAN}, {"mae", NAN}, {"r2", NAN}};
  const double squares = difference.square().mean().item<double>();
  // variance of each target around its own mean
  double spread = 0;
  for (int64_t o = 0; o < y.size(1); ++o) {
    const Tensor column = y.select(1, o).masked_select(known.select(1, o));
    if (column.size(0) > 0) spread += (column - column.mean()).square().sum().item<double>();
  }
  spread /= static_cast<double>(truth.size(0));
  return {{"mse", squares},
          {"mae", difference.abs().mean().item<double>()},
          {"r2", spread > 0 ? 1 - squares / spread : NAN}};
}

double metric(const Metrics& metrics, const std::string& name) {
  for (const auto& [known, value] : metrics) {
    if (known == name) return value;
  }
  return NAN;
}

bool larger_is_better(const std::string& name) {
  return name != "mse" && name != "mae" && name != "log_loss" && name != "loss";
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

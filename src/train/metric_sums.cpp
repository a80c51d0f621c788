#include "train/metric_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"

namespace fastweights {
namespace {

constexpr double kSmallestProbability = 1e-15;
// of Guo et al. 2017, so that errors of calibration can be compared
constexpr int kCalibrationBins = 15;

// of one class: weights of true positives, false negatives, false positives
struct ClassCounts {
  double right = 0, missed = 0, wrong = 0;

  double known() const { return right + missed; }
  double recall() const { return right / known(); }
  double f1() const {
    const double all = 2 * right + missed + wrong;
    return all > 0 ? 2 * right / all : 0;
  }
};

// the mean over classes that occur, or NaN
template <typename Function>
double mean_over(const std::vector<ClassCounts>& counts, Function value) {
  double sum = 0, present = 0;
  for (const ClassCounts& of : counts) {
    if (of.known() == 0) continue;
    sum += value(of);
    present += 1;
  }
  return present > 0 ? sum / present : NAN;
}

double weighted_mean(const std::vector<double>& values, const std::vector<double>& weights, double total) {
  return total > 0 ? std::inner_product(values.begin(), values.end(), weights.begin(), 0.0) / total : NAN;
}

// twice the error divided by the sum of the sizes
double relative_error(double guess, double truth) {
  const double sizes = std::abs(guess) + std::abs(truth);
  return sizes > 0 ? 2 * std::abs(guess - truth) / sizes : 0;
}

}  // namespace

Ranking ranking(const std::vector<double>& scores) {
  if (std::any_of(scores.begin(), scores.end(), [](double x) { return std::isnan(x); })) return {};
  Ranking out = {std::vector<size_t>(scores.size()), std::vector<bool>(scores.size(), true)};
  std::iota(out.order.begin(), out.order.end(), size_t{0});
  std::sort(out.order.begin(), out.order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i + 1 < scores.size(); ++i)
    out.group_end[i] = scores[out.order[i]] != scores[out.order[i + 1]];
  return out;
}

RankingMetrics ranking_metrics(const Ranking& ranking, const std::vector<bool>& positive,
                               const std::vector<double>& weights) {
  // of positives and negatives: up to here, and up to the last group of ties
  double right = 0, wrong = 0, right_before = 0, wrong_before = 0, area = 0, precision = 0;
  for (size_t i = 0; i < ranking.order.size(); ++i) {
    const size_t row = ranking.order[i];
    (positive[row] ? right : wrong) += weights[row];
    if (!ranking.group_end[i]) continue;
    area += (wrong - wrong_before) * (right + right_before) / 2;
    if (right > right_before) precision += (right - right_before) * right / (right + wrong);
    right_before = right;
    wrong_before = wrong;
  }
  return {right > 0 && wrong > 0 ? area / (right * wrong) : NAN, right > 0 ? precision / right : NAN};
}

ClassSums::ClassSums(const Tensor& probabilities, const Tensor& classes, double threshold)
    : count_(static_cast<size_t>(probabilities.size(1))) {
  const Tensor p = probabilities.detach().to(at::kCPU, at::kDouble).contiguous(),
               y = classes.to(at::kCPU, at::kLong).contiguous(),
               decided = predicted_classes(p, threshold).contiguous();
  const auto rows = static_cast<size_t>(p.size(0));
  for (size_t i = 0; i < rows; ++i) {
    const double* row = p.data_ptr<double>() + i * count_;
    const auto truth = static_cast<size_t>(y.data_ptr<int64_t>()[i]);
    const auto top = static_cast<size_t>(std::max_element(row, row + count_) - row);
    truth_.push_back(truth);
    guess_.push_back(static_cast<size_t>(decided.data_ptr<int64_t>()[i]));
    confidence_.push_back(row[top]);
    top_right_.push_back(top == truth);
    const double place = std::isnan(row[top]) ? 0 : row[top] * kCalibrationBins;
    bin_.push_back(static_cast<size_t>(std::clamp(static_cast<int>(place), 0, kCalibrationBins - 1)));
    // NaN stays NaN
    loss_.push_back(-std::log(row[truth] < kSmallestProbability ? kSmallestProbability : row[truth]));
    double squares = 0;
    for (size_t k = 0; k < count_; ++k) squares += std::pow(row[k] - (k == truth ? 1 : 0), 2);
    brier_.push_back(count_ == 2 ? squares / 2 : squares);
  }
  for (size_t k = count_ == 2 ? 1 : 0; k < count_; ++k) {
    const std::vector<size_t>& t = truth_;
    if (count_ > 2 && std::find(t.begin(), t.end(), k) == t.end()) continue;
    OneAgainstRest one = {.positive_class = k, .positive = std::vector<bool>(rows)};
    std::vector<double> scores(rows);
    for (size_t i = 0; i < rows; ++i) {
      scores[i] = p.data_ptr<double>()[i * count_ + k];
      one.positive[i] = t[i] == k;
    }
    one.ranking = ranking(scores);
    against_rest_.push_back(std::move(one));
  }
}

// of two classes that of the second, otherwise the mean over classes that occur
RankingMetrics ClassSums::mean_ranking(const std::vector<double>& weights,
                                       const std::vector<double>& known) const {
  RankingMetrics sum;
  double present = 0;
  for (const OneAgainstRest& one : against_rest_) {
    if (count_ > 2 && known[one.positive_class] == 0) continue;
    const RankingMetrics of = ranking_metrics(one.ranking, one.positive, weights);
    sum.auroc += of.auroc;
    sum.average_precision += of.average_precision;
    present += 1;
  }
  if (present == 0) return {NAN, NAN};
  return {sum.auroc / present, sum.average_precision / present};
}

Metrics ClassSums::metrics(const std::vector<double>& weights) const {
  std::vector<ClassCounts> counts(count_);
  std::vector<double> gaps(kCalibrationBins, 0), known(count_);
  double total = 0, right = 0;
  for (size_t i = 0; i < rows(); ++i) {
    const double w = weights[i];
    total += w;
    // confidence minus accuracy, summed over a bin
    gaps[bin_[i]] += w * (confidence_[i] - (top_right_[i] ? 1 : 0));
    if (truth_[i] == guess_[i]) {
      counts[truth_[i]].right += w;
      right += w;
    } else {
      counts[truth_[i]].missed += w;
      counts[guess_[i]].wrong += w;
    }
  }
  for (size_t k = 0; k < count_; ++k) known[k] = counts[k].known();
  const RankingMetrics ranked = mean_ranking(weights, known);
  double gap = 0;
  for (const double sum : gaps) gap += std::abs(sum);
  Metrics metrics;
  metrics.emplace_back("accuracy", total > 0 ? right / total : NAN);
  metrics.emplace_back("balanced_accuracy", mean_over(counts, [](const auto& c) { return c.recall(); }));
  metrics.emplace_back("auroc", ranked.auroc);
  metrics.emplace_back("average_precision", ranked.average_precision);
  metrics.emplace_back(
      "f1", count_ == 2 ? counts[1].f1() : mean_over(counts, [](const auto& c) { return c.f1(); }));
  metrics.emplace_back("log_loss", weighted_mean(loss_, weights, total));
  metrics.emplace_back("ece", total > 0 ? gap / total : NAN);
  metrics.emplace_back("brier", weighted_mean(brier_, weights, total));
  return metrics;
}

RegressionSums::RegressionSums(const Tensor& predictions, const Tensor& targets, const Tensor& half_widths,
                               const Tensor& groups, int64_t count, ChannelUnits units)
    : groups_(static_cast<size_t>(count)),
      outputs_(static_cast<size_t>(targets.size(1))),
      intervals_(half_widths.defined()),
      units_(std::move(units)),
      sums_(groups_ * outputs_) {
  const Tensor y = targets.to(at::kCPU, at::kDouble).contiguous(),
               guess = predictions.detach().to(at::kCPU, at::kDouble).contiguous(),
               group = groups.to(at::kCPU, at::kLong).contiguous();
  const Tensor half = intervals_ ? half_widths.to(at::kCPU, at::kDouble).contiguous() : Tensor();
  // sums of squares around a value near the mean do not cancel
  std::vector<double> middle(outputs_, 0);
  const Tensor known = y.isnan().logical_not();
  const Tensor means = (at::nan_to_num(y, 0.0).sum(0) / known.sum(0).clamp_min(1)).contiguous();  // [O]
  std::copy(means.data_ptr<double>(), means.data_ptr<double>() + outputs_, middle.begin());
  const auto cells = static_cast<size_t>(y.numel());
  for (size_t i = 0; i < cells; ++i) {
    const double truth = y.data_ptr<double>()[i];
    if (std::isnan(truth)) continue;
    const size_t row = i / outputs_, output = i % outputs_;
    Sums& sums = sums_[static_cast<size_t>(group.data_ptr<int64_t>()[row]) * outputs_ + output];
    const double error = std::abs(guess.data_ptr<double>()[i] - truth), away = truth - middle[output];
    sums.count += 1;
    sums.truth += away;
    sums.truth_squares += away * away;
    sums.squares += error * error;
    sums.errors += error;
    if (!units_.scales.empty())
      sums.relative += relative_error(units_.scales[output].undo(guess.data_ptr<double>()[i]),
                                      units_.scales[output].undo(truth));
    if (!units_.naive_errors.empty() && units_.naive_errors[output] > 0) {
      sums.stepped += 1;
      sums.steps += error / units_.naive_errors[output];
    }
    const double width = intervals_ ? half.data_ptr<double>()[i] : NAN;
    if (std::isnan(width)) continue;
    sums.bounded += 1;
    sums.inside += error <= width ? 1 : 0;
    sums.width += 2 * width;
  }
}

void RegressionSums::Sums::add(const Sums& other, double weight) {
  count += weight * other.count;
  truth += weight * other.truth;
  truth_squares += weight * other.truth_squares;
  squares += weight * other.squares;
  errors += weight * other.errors;
  relative += weight * other.relative;
  stepped += weight * other.stepped;
  steps += weight * other.steps;
  bounded += weight * other.bounded;
  inside += weight * other.inside;
  width += weight * other.width;
}

Metrics RegressionSums::metrics(const std::vector<double>& weights) const {
  Sums all;
  double spread = 0;
  for (size_t o = 0; o < outputs_; ++o) {
    Sums one;
    for (size_t g = 0; g < groups_; ++g) {
      one.add(sums_[g * outputs_ + o], weights[g]);
    }
    all.add(one, 1);
    // around the mean of each target
    if (one.count > 0) spread += one.truth_squares - one.truth * one.truth / one.count;
  }
  const auto mean = [](double sum, double count) { return count > 0 ? sum / count : NAN; };
  Metrics metrics = {{"mse", mean(all.squares, all.count)},
                     {"mae", mean(all.errors, all.count)},
                     {"r2", spread > 0 ? 1 - all.squares / spread : NAN}};
  if (!units_.scales.empty()) metrics.emplace_back("smape", mean(all.relative, all.count));
  if (!units_.naive_errors.empty()) metrics.emplace_back("mase", mean(all.steps, all.stepped));
  if (!intervals_) return metrics;
  metrics.emplace_back("coverage", mean(all.inside, all.bounded));
  metrics.emplace_back("width", mean(all.width, all.bounded));
  return metrics;
}

std::vector<int64_t> positions_of(const Tensor& samples) {
  std::map<int64_t, int64_t> rows;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < samples.size(0); ++i) positions.push_back(rows[samples.data_ptr<int64_t>()[i]]++);
  return positions;
}

}  // namespace fastweights

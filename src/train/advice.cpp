#include "train/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace fastweights {
namespace {

constexpr double kRise = 0.1, kSmallRise = 0.02, kGap = 0.1, kStillFalling = 0.02;
// fewer epochs show no trend
constexpr size_t kFewest = 5;

struct Curve {
  std::vector<int64_t> epochs = {};
  std::vector<double> training = {}, validation = {};
};

Curve losses(const RunResult& result) {
  Curve curve;
  for (const TrainEpoch& epoch : result.epochs) {
    for (const auto& [name, value] : epoch.validation) {
      if (!is_loss(name) || !std::isfinite(value) || !std::isfinite(epoch.loss)) continue;
      curve.epochs.push_back(epoch.epoch);
      curve.training.push_back(epoch.loss);
      curve.validation.push_back(value);
      break;
    }
  }
  return curve;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// of the last tenth, or of the tenth before it
double median_of_tenth(const std::vector<double>& values, size_t before_last) {
  const size_t count = std::max<size_t>(1, values.size() / 10);
  const auto end = values.end() - static_cast<int64_t>(before_last * count);
  return median({end - static_cast<int64_t>(count), end});
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

std::string percent(double share) { return message(std::llround(100 * share), " %"); }

constexpr const char* kAgainstOverfitting =
    "More series help most. Otherwise try a smaller model (--preset small), more dropout (--set "
    "model.dropout=0.4) "
    "or weight decay (--set training.weight_decay=0.1), or fewer epochs.";

const PartResult* part_of(const RunResult& result, const char* name) {
  for (const PartResult& part : result.parts) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

// a sentence about the distance of training and validation, or nothing
std::string gap_sentence(const RunResult& result, const std::string& metric_name) {
  const PartResult *train = part_of(result, "train"), *validation = part_of(result, "validation");
  if (!train || !validation || is_loss(metric_name) || !larger_is_better(metric_name)) return "";
  const double seen = metric(train->metrics, metric_name), unseen = metric(validation->metrics, metric_name);
  const auto count = static_cast<double>(std::max<int64_t>(validation->samples, 1));
  const double share = std::clamp(unseen, 0.0, 1.0), error = std::sqrt(share * (1 - share) / count);
  // a comparison with NaN is false
  if (!(seen - unseen > std::max(kGap, 2 * error))) return "";
  return message("The model knows its training series better than others: ", metric_name, " is ",
                 number(seen), " on the training part and ", number(unseen), " on validation.");
}

std::string overfitting_sentence(const Curve& curve, size_t lowest, double end, const RunResult& result) {
  const double rise = end / curve.validation[lowest] - 1;
  return message("Overfitting: the validation loss was lowest in epoch ", curve.epochs[lowest], " (",
                 number(curve.validation[lowest]), ") and then rose by ", percent(rise), " to ", number(end),
                 ", while the training loss fell from ", number(curve.training[lowest]), " to ",
                 number(median_of_tenth(curve.training, 0)), ". The model of epoch ", result.best_epoch,
                 " was kept.");
}

}  // namespace

std::vector<std::string> training_advice(const RunResult& result, const std::string& metric) {
  const Curve curve = losses(result);
  if (curve.epochs.empty())
    return {"There is no validation part, so the curves cannot show whether the model overfits."};
  if (curve.epochs.size() < kFewest)
    return {message("After ", curve.epochs.size(), curve.epochs.size() == 1 ? " epoch" : " epochs",
                    " the curves are too short to show overfitting.")};
  const auto at = std::min_element(curve.validation.begin(), curve.validation.end());
  const auto lowest = static_cast<size_t>(at - curve.validation.begin());
  const double end = median_of_tenth(curve.validation, 0);
  const std::string gap = gap_sentence(result, metric);
  std::vector<std::string> out;
  // next to zero a tenth is nothing
  const double rise = std::max(kRise * *at, kSmallRise * curve.validation.front());
  if (end > *at + rise && median_of_tenth(curve.training, 0) < curve.training[lowest]) {
    out.push_back(overfitting_sentence(curve, lowest, end, result));
    if (!gap.empty()) out.push_back(gap);
    out.emplace_back(kAgainstOverfitting);
    return out;
  }
  if (!gap.empty()) return {gap, kAgainstOverfitting};
  const double before = median_of_tenth(curve.validation, 1);
  if (20 * (lowest + 1) > 19 * curve.epochs.size() && end < before * (1 - kStillFalling)) {
    out.push_back(message("No overfitting: the validation loss was still falling when training ended, from ",
                          number(before), " to ", number(end), " over the last tenth of the epochs."));
    out.push_back(message("Train longer, for example with --epochs ", 2 * curve.epochs.back(), "."));
    return out;
  }
  return {message("No overfitting: the validation loss ends at ", number(end), ", close to its minimum ",
                  number(*at), " in epoch ", curve.epochs[lowest], ".")};
}

std::string positive_note(const DataSet& data, TaskKind kind) {
  if (!is_classification(kind) || data.classes() != 2) return "";
  return message("the positive class is '", data.head.classes[1], "' (f1, average_precision, threshold)");
}

}  // namespace fastweights

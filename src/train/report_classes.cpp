#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "train/report_data.h"
#include "train/report_values.h"

/// What the report shows of predicted classes.

namespace fastweights {
namespace {

using report::ReportData;

constexpr int64_t kMostRocRows = 50'000;

// 95 % of a share by Wilson's formula, which stays within 0 and 1
std::pair<double, double> wilson_interval(double share, double count) {
  constexpr double kZ = 1.96, kSquare = kZ * kZ;
  const double middle = (share + kSquare / (2 * count)) / (1 + kSquare / count),
               half = kZ * std::sqrt(share * (1 - share) / count + kSquare / (4 * count * count)) /
                      (1 + kSquare / count);
  return {middle - half, middle + half};
}

// the share of hits in ten bins of a predicted probability; both [M]
report::Calibration calibration(const Tensor& p, const Tensor& hit, const std::string& part,
                                const std::string& of) {
  constexpr int kBins = 10;
  std::vector<double> sum(kBins, 0), hits(kBins, 0), count(kBins, 0);
  const std::vector<double> probabilities = values_of(p), truth = values_of(hit);
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const auto bin =
        static_cast<size_t>(std::clamp(static_cast<int>(probabilities[i] * kBins), 0, kBins - 1));
    sum[bin] += probabilities[i];
    hits[bin] += truth[i];
    count[bin] += 1;
  }
  report::Calibration out = {.part = part, .of = of};
  for (size_t bin = 0; bin < kBins; ++bin) {
    if (count[bin] == 0) continue;
    const double share = hits[bin] / count[bin];
    const auto [low, high] = wilson_interval(share, count[bin]);
    out.predicted.push_back(sum[bin] / count[bin]);
    out.observed.push_back(share);
    out.count.push_back(count[bin]);
    out.low.push_back(low);
    out.high.push_back(high);
  }
  return out;
}

// every n-th of so many points, and the last
template <typename Use>
void thinned(size_t points, size_t most, const Use& use) {
  const size_t step = points / most + 1;
  for (size_t i = 0; i < points; ++i) {
    if (i % step == 0 || i + 1 == points) use(i);
  }
}

report::RocCurve roc_curve(const Tensor& p, const Tensor& positive, double threshold,
                           const std::string& part) {
  const Roc curve = roc(p, positive);
  report::RocCurve out = {.part = part, .auc = auroc(p, positive)};
  size_t chosen = 0;
  for (size_t i = 0; i < curve.thresholds.size(); ++i) {
    if (curve.thresholds[i] >= threshold) chosen = i;
  }
  thinned(curve.thresholds.size(), 400, [&](size_t i) {
    out.false_positive.push_back(curve.false_positive[i]);
    out.true_positive.push_back(curve.true_positive[i]);
  });
  out.threshold = {threshold, curve.false_positive[chosen], curve.true_positive[chosen]};
  return out;
}

// one class against the rest, for classes that occur and do not fill the part; the hardest first
report::ClassRocs class_rocs(const Tensor& p, const Tensor& truth, const std::string& part,
                             const std::vector<std::string>& classes,
                             const std::vector<int64_t>& candidates) {
  constexpr size_t kMost = 8;
  std::vector<std::pair<double, int64_t>> areas;
  for (const int64_t k : candidates) {
    const Tensor positive = truth.eq(k);
    const int64_t count = positive.sum().item<int64_t>();
    if (count > 0 && count < truth.size(0)) areas.emplace_back(auroc(p.select(1, k), positive), k);
  }
  std::sort(areas.begin(), areas.end());
  report::ClassRocs out = {.part = part};
  if (areas.size() > kMost)
    out.note = message("The ", kMost, " of ", classes.size(), " classes with the smallest area.");
  for (size_t i = 0; i < areas.size() && i < kMost; ++i) {
    const int64_t k = areas[i].second;
    const Roc curve = roc(p.select(1, k), truth.eq(k));
    report::ClassRoc line = {.name = classes[static_cast<size_t>(k)], .auc = areas[i].first};
    thinned(curve.thresholds.size(), 150, [&](size_t at) {
      line.false_positive.push_back(curve.false_positive[at]);
      line.true_positive.push_back(curve.true_positive[at]);
    });
    out.curves.push_back(std::move(line));
  }
  return out;
}

// those with the smallest probability of the true class
std::vector<report::Mistake> mistakes(const Predictions& p, const Tensor& probabilities,
                                      const Tensor& predicted, const PreparedData& data,
                                      const std::vector<std::string>& classes) {
  constexpr size_t kMost = 12;
  const Tensor wrong = (predicted.ne(p.classes) & p.classes.ge(0)).nonzero().squeeze(1);  // [N]
  const Tensor likely = probabilities.index_select(0, wrong).gather(
      1, p.classes.index_select(0, wrong).unsqueeze(1));  // [N, 1]
  const std::vector<double> likelihoods = values_of(likely);
  std::vector<std::pair<double, int64_t>> worst;
  for (size_t i = 0; i < likelihoods.size(); ++i)
    worst.emplace_back(likelihoods[i], wrong.data_ptr<int64_t>()[i]);
  std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, worst.size())),
                    worst.end());
  std::vector<report::Mistake> out;
  for (size_t i = 0; i < worst.size() && i < kMost; ++i) {
    const auto [probability, row] = worst[i];
    const int64_t guess = predicted[row].item<int64_t>();
    out.push_back({.id = data.ids[static_cast<size_t>(p.samples[row].item<int64_t>())],
                   .truth = classes[static_cast<size_t>(p.classes[row].item<int64_t>())],
                   .predicted = classes[static_cast<size_t>(guess)],
                   .probability = probabilities[row][guess].item<double>(),
                   .loss = -std::log(std::max(probability, 1e-15))});
  }
  return out;
}

// the classes with most errors, then with most samples; a matrix of all could have millions of cells
std::vector<int64_t> shown_classes(const Tensor& predicted, const Tensor& truth, int64_t count) {
  const Tensor wrong = predicted.ne(truth).nonzero().squeeze(1);
  const auto per_class = [&](const Tensor& classes) { return at::bincount(classes, {}, count); };
  const Tensor samples = per_class(truth), errors = per_class(truth.index_select(0, wrong)) +
                                                    per_class(predicted.index_select(0, wrong));  // [K]
  const int64_t *e = errors.data_ptr<int64_t>(), *n = samples.data_ptr<int64_t>();
  std::vector<int64_t> chosen(static_cast<size_t>(count));
  std::iota(chosen.begin(), chosen.end(), int64_t{0});
  if (count <= kMostClasses) return chosen;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](int64_t a, int64_t b) { return std::tie(e[a], n[a]) > std::tie(e[b], n[b]); });
  chosen.resize(kMostClasses);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// about classes that are left out
std::optional<std::string> class_note(size_t shown, size_t all) {
  if (shown == all) return std::nullopt;
  return message("The ", shown, " of ", all, " classes with the most errors.");
}

report::Confusion confusion_of(const Tensor& predicted, const Tensor& truth, const std::string& part,
                               const std::vector<std::string>& classes, const std::vector<int64_t>& chosen) {
  const auto count = static_cast<int64_t>(classes.size());
  Tensor place = at::full({count}, -1, at::kLong);
  report::Confusion out = {.part = part};
  for (const int64_t k : chosen) {
    place[k] = static_cast<int64_t>(out.classes.size());
    out.classes.push_back(classes[static_cast<size_t>(k)]);
  }
  const Tensor rows = place.index_select(0, truth), columns = place.index_select(0, predicted);
  const Tensor both = (rows.ge(0) & columns.ge(0)).nonzero().squeeze(1);
  out.counts = confusion(columns.index_select(0, both), rows.index_select(0, both),
                         static_cast<int64_t>(chosen.size()));
  out.note = class_note(chosen.size(), classes.size());
  return out;
}

report::ClassTable class_table(const Tensor& predicted, const Tensor& truth, const std::string& part,
                               const std::vector<std::string>& classes, const std::vector<int64_t>& chosen) {
  const auto per_class = [&](const Tensor& list) {
    return at::bincount(list, {}, static_cast<int64_t>(classes.size()));
  };
  const Tensor right = per_class(truth.masked_select(truth.eq(predicted))), samples = per_class(truth),
               taken = per_class(predicted);  // [K]
  report::ClassTable out = {.part = part, .note = class_note(chosen.size(), classes.size())};
  for (const int64_t k : chosen) {
    const auto at = [&](const Tensor& counts) { return static_cast<double>(counts[k].item<int64_t>()); };
    // 0 / 0, of a class without samples or predictions, is unknown
    out.rows.push_back({.name = classes[static_cast<size_t>(k)],
                        .precision = at(right) / at(taken),
                        .recall = at(right) / at(samples),
                        .f1 = 2 * at(right) / (at(samples) + at(taken)),
                        .samples = samples[k].item<int64_t>(),
                        .predicted = taken[k].item<int64_t>()});
  }
  return out;
}

// of two classes, the second of which is the positive one
std::string threshold_note(const std::string& positive, double threshold) {
  char number[16];
  std::snprintf(number, sizeof number, "%.3f", threshold);
  return message("'", positive, "' is predicted from a probability of ", number, " on.");
}

}  // namespace

void add_classes(ReportData& report, const TrainedModel& trained, const Shown& shown) {
  const Predictions& p = *shown.result.predictions;
  const Tensor probabilities = class_probabilities(p.outputs), known = p.classes.ge(0).nonzero().squeeze(1);
  if (known.size(0) == 0) return;
  const std::string& part = shown.result.name;
  const Tensor all_predicted = predicted_classes(probabilities, trained.threshold);
  const std::vector<std::string>& classes = trained.preparation.classes;
  const Tensor predicted = all_predicted.index_select(0, known), truth = p.classes.index_select(0, known),
               likely = probabilities.index_select(0, known);
  const std::vector<int64_t> chosen = shown_classes(predicted, truth, static_cast<int64_t>(classes.size()));
  report.confusion = confusion_of(predicted, truth, part, classes, chosen);
  report.classes = class_table(predicted, truth, part, classes, chosen);
  if (classes.size() == 2) {
    const Tensor scores = likely.select(1, 1);
    report.roc = roc_curve(scores, truth, trained.threshold, part);
    report.confusion->note = report.classes->note = threshold_note(classes[1], trained.threshold);
    report.calibration = calibration(scores, truth, part, "probability of " + classes[1]);
  } else {
    // of very many predictions every n-th one: the areas of dozens of classes are sorted lists
    const int64_t every = truth.size(0) / kMostRocRows + 1;
    report.class_roc = class_rocs(likely.slice(0, 0, truth.size(0), every),
                                  truth.slice(0, 0, truth.size(0), every), part, classes, chosen);
    const auto [confidence, guess] = likely.max(1);
    report.calibration = calibration(confidence, guess.eq(truth), part, "probability of the predicted class");
  }
  report.mistakes = mistakes(p, probabilities, all_predicted, shown.data, classes);
}

}  // namespace fastweights

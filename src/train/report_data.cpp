#include "train/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "report/report.h"
#include "tensor/autograd.h"
#include "train/clock.h"
#include "train/fit.h"
#include "train/model_time.h"
#include "train/reference.h"
#include "train/report_values.h"
#include "train/run_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"

namespace fastweights {
namespace {

using report::ReportData;

// the part that a report shows
struct Shown {
  const PartResult& result;
  const PreparedData& data;
};

const PreparedData& part_of(const RunData& data, const std::string& name) {
  return name == "train" ? data.train : name == "validation" ? data.validation : data.test;
}

bool is_loss(const std::string& metric) { return metric == "log_loss" || metric == "mse"; }

std::vector<report::Curve> curves(const RunResult& result) {
  const auto add = [](report::Line& line, const TrainEpoch& epoch, double y) {
    line.x.push_back(epoch.epoch);
    line.y.push_back(y);
  };
  std::vector<report::Line> losses = {{.name = "train"}}, metrics;
  report::Line rate = {.name = "learning rate"}, validation = {.name = "validation"};
  // thousands of points are enough for a curve
  const size_t every = result.epochs.size() / 2000 + 1;
  for (size_t i = 0; i < result.epochs.size(); ++i) {
    const TrainEpoch& epoch = result.epochs[i];
    if (i % every != 0 && i + 1 != result.epochs.size() && epoch.epoch != result.best_epoch) continue;
    add(losses[0], epoch, epoch.loss);
    add(rate, epoch, epoch.learning_rate);
    for (const auto& [name, value] : epoch.validation) {
      if (is_loss(name)) add(validation, epoch, value);
      if (is_loss(name) || name == "mae") continue;
      auto known = std::find_if(metrics.begin(), metrics.end(),
                                [&key = name](const report::Line& line) { return line.name == key; });
      if (known == metrics.end()) known = metrics.insert(metrics.end(), {.name = name});
      add(*known, epoch, value);
    }
  }
  if (!validation.x.empty()) losses.push_back(std::move(validation));
  const int64_t best = result.best_epoch;
  std::vector<report::Curve> out = {{"Loss", "epoch", "loss", best, std::move(losses)}};
  if (!metrics.empty()) out.push_back({"Validation", "epoch", "metric", best, std::move(metrics)});
  out.push_back({"Learning rate", "epoch", "rate", best, {std::move(rate)}});
  return out;
}

report::MetricsTable metrics_table(const RunResult& result) {
  report::MetricsTable table;
  std::vector<std::string> names;
  for (const PartResult& part : result.parts) {
    table.columns.push_back(part.name);
    for (const auto& [name, value] : part.metrics) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    const bool percent = name.find("accuracy") != std::string::npos;
    report::MetricsRow row = {.name = name, .format = percent ? "percent" : "number"};
    for (const PartResult& part : result.parts) row.values.push_back(metric(part.metrics, name));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<report::Headline> headline(const PartResult& part, const Model& model) {
  std::vector<report::Headline> out;
  for (const char* name : {"accuracy", "auroc", "mse"}) {
    const double value = metric(part.metrics, name);
    if (!std::isfinite(value)) continue;
    const bool percent = std::string(name) == "accuracy";
    out.push_back({part.name + " " + name, value, percent ? "percent" : "number"});
  }
  out.push_back({"parameters", model.parameter_count(), "integer"});
  return out;
}

// observed frequency of the second class in ten bins of its predicted probability
report::Calibration calibration(const Tensor& p, const Tensor& positive, const std::string& part) {
  constexpr int kBins = 10;
  std::vector<double> sum(kBins, 0), hits(kBins, 0), count(kBins, 0);
  const std::vector<double> probabilities = values_of(p), truth = values_of(positive);
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const auto bin =
        static_cast<size_t>(std::clamp(static_cast<int>(probabilities[i] * kBins), 0, kBins - 1));
    sum[bin] += probabilities[i];
    hits[bin] += truth[i];
    count[bin] += 1;
  }
  report::Calibration out = {.part = part};
  for (size_t bin = 0; bin < kBins; ++bin) {
    if (count[bin] == 0) continue;
    out.predicted.push_back(sum[bin] / count[bin]);
    out.observed.push_back(hits[bin] / count[bin]);
    out.count.push_back(count[bin]);
  }
  return out;
}

// a curve of many points, thinned
report::RocCurve roc_curve(const Tensor& p, const Tensor& positive, double threshold,
                           const std::string& part) {
  constexpr size_t kMost = 400;
  const Roc curve = roc(p, positive);
  const size_t step = curve.thresholds.size() / kMost + 1;
  report::RocCurve out = {.part = part, .auc = auroc(p, positive)};
  size_t chosen = 0;
  for (size_t i = 0; i < curve.thresholds.size(); ++i) {
    if (curve.thresholds[i] >= threshold) chosen = i;
    if (i % step != 0 && i + 1 != curve.thresholds.size()) continue;
    out.false_positive.push_back(curve.false_positive[i]);
    out.true_positive.push_back(curve.true_positive[i]);
  }
  out.threshold = {threshold, curve.false_positive[chosen], curve.true_positive[chosen]};
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

report::Confusion confusion_of(const Tensor& predicted, const Tensor& truth, const std::string& part,
                               const std::vector<std::string>& classes) {
  const auto count = static_cast<int64_t>(classes.size());
  const std::vector<int64_t> chosen = shown_classes(predicted, truth, count);
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
  if (count > kMostClasses)
    out.note = message("The ", kMostClasses, " of ", count, " classes with the most errors.");
  return out;
}

void add_classes(ReportData& report, const TrainedModel& trained, const Shown& shown) {
  const Predictions& p = *shown.result.predictions;
  const Tensor probabilities = class_probabilities(p.outputs), known = p.classes.ge(0).nonzero().squeeze(1);
  if (known.size(0) == 0) return;
  const std::string& part = shown.result.name;
  const Tensor predicted = predicted_classes(probabilities, trained.threshold);
  const std::vector<std::string>& classes = trained.preparation.classes;
  report.confusion =
      confusion_of(predicted.index_select(0, known), p.classes.index_select(0, known), part, classes);
  if (classes.size() == 2) {
    const Tensor scores = probabilities.select(1, 1).index_select(0, known),
                 truth = p.classes.index_select(0, known);
    report.roc = roc_curve(scores, truth, trained.threshold, part);
    report.calibration = calibration(scores, truth, part);
  }
  report.mistakes = mistakes(p, probabilities, predicted, shown.data, classes);
}

void add_scatter(ReportData& report, const TrainedModel& trained, const Shown& shown) {
  constexpr int64_t kMost = 2000;
  const Predictions& p = *shown.result.predictions;
  const bool channels = trained.task.kind != TaskKind::Regression;
  const Tensor truth = in_own_units(p.targets, trained.task, trained.preparation).select(1, 0),
               guess = in_own_units(p.outputs, trained.task, trained.preparation).select(1, 0);
  const Tensor known = truth.isnan().logical_not().nonzero().squeeze(1).slice(0, 0, kMost);
  if (known.size(0) == 0) return;
  report.scatter = {.part = shown.result.name,
                    .target = channels ? trained.preparation.channels[0] : trained.preparation.targets[0],
                    .truth = values_of(truth.index_select(0, known)),
                    .predicted = values_of(guess.index_select(0, known))};
}

report::ModelSection model_section(const Model& model) {
  report::ModelSection section = {.summary = model_summary(model.config())};
  section.summary.emplace_back("parameters", message(model.parameter_count()));
  for (const auto& [name, tensor] : model.parameters())
    section.parameters.push_back({name, message(tensor.sizes()), tensor.numel()});
  section.config = to_json(model.config());
  return section;
}

std::string model_text(const ModelConfig& model) {
  const FastWeights* fast = model.architecture.get_if<FastWeights>();
  if (!fast) return "architecture " + model.architecture.name();
  return "fast weights, rule " + fast->rule + ", drive " + name_of(fast->drive);
}

report::Pairs facts(const Run& run) {
  const RunConfig& config = run.config;
  const Split& parts = run.data.split;
  char rate[32];
  std::snprintf(rate, sizeof rate, "%g", config.training.learning_rate);
  return {{"Data", run.data.head.name + " (" + run.data.head.origin + ")"},
          {"Series", message(parts.train.size(), " train, ", parts.validation.size(), " validation, ",
                             parts.test.size(), " test; split ", name_of(parts.rule))},
          {"Channels",
           message(run.data.head.channels.size(), " in the data, ", config.model.channels, " for the model")},
          {"Task", name_of(config.task.kind)},
          {"Model", model_text(config.model)},
          {"Training", is_fitted(config.model)
                           ? message("fitted to all training series at once, seed ", config.training.seed)
                           : message("learning rate ", rate, ", ", name_of(config.training.schedule),
                                     " schedule, seed ", config.training.seed)}};
}

// what a folder keeps of a result, and predictions of the part that the report shows
RunResult load_result(const std::string& folder, const Run& run, const TrainedModel& trained) {
  RunResult result = read_result(folder);
  const EpochsFile epochs = read_epochs(folder);
  result.epochs = epochs.epochs;
  result.message = epochs.warning();
  result.trained = trained;
  PartResult& shown = result.parts.back();
  shown.predictions =
      predict(trained.model, part_of(run.data, shown.name), trained.preparation, trained.task);
  return result;
}

}  // namespace

ReportData make_report(const std::string& folder, const Run& run, const RunResult& result) {
  const at::NoGradGuard no_grad;
  const TrainedModel& trained = *result.trained;
  // the last of train, validation and test
  const PartResult& last = result.parts.back();
  const Shown shown = {last, part_of(run.data, last.name)};
  const RunConfig& config = run.config;
  ReportData report = {.title = run.data.head.name,
                       .subtitle = message(name_of(config.task.kind), " with ", model_text(config.model)),
                       .finished = utc_now("%Y-%m-%d %H:%M UTC"),
                       .facts = facts(run),
                       .headline = headline(shown.result, trained.model),
                       .curves = is_fitted(config.model) ? std::vector<report::Curve>{} : curves(result),
                       .metrics = metrics_table(result)};
  if (last.predictions->classes.defined()) add_classes(report, trained, shown);
  if (last.predictions->targets.defined()) add_scatter(report, trained, shown);
  if (const auto lines = reference_lines(run, last, shown.data); !lines.empty()) report.references = lines;
  report.model = model_section(trained.model);
  if (!is_fitted(config.model)) report.fast_weights = weight_view(trained, shown.data, 0);
  const size_t skipped = run.data.head.skipped.size();
  std::vector<std::string> warnings = run.data.head.notes;
  if (skipped > 0) warnings.push_back(message(skipped, " files were left out"));
  if (const std::string gaps = gap_note(run); !gaps.empty()) warnings.push_back(gaps);
  if (!result.message.empty()) warnings.push_back(result.message);
  if (!warnings.empty()) report.warnings = warnings;
  const std::string& path = config.data.path;
  report.commands = {message("fastweights evaluate ", folder, " ", path),
                     message("fastweights predict ", folder, " ", path, " --out predictions.csv")};
  return report;
}

void write_report(const std::string& folder, const Run& run, const RunResult& result) {
  const ReportData report = make_report(folder, run, result);
  const std::string json = report::to_json(report);
  replace_file(folder + "/report.json", json);
  replace_file(folder + "/report.html", report::page(report.title, json));
}

void write_report(const std::string& folder, const DataSet& data) {
  const TrainedModel trained = load_trained(folder);
  const Run run = open_run(folder, data, trained.preparation);
  write_report(folder, run, load_result(folder, run, trained));
}

}  // namespace fastweights

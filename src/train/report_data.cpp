#include "train/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "data/time_axis.h"
#include "report/report.h"
#include "tensor/autograd.h"
#include "train/advice.h"
#include "train/clock.h"
#include "train/fit.h"
#include "train/model_time.h"
#include "train/reference.h"
#include "train/report_values.h"
#include "train/run_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/run_set.h"
#include "train/settings.h"

namespace fastweights {
namespace {

using report::ReportData;

const PreparedData& part_of(const RunData& data, const std::string& name) {
  return name == "train" ? data.train : name == "validation" ? data.validation : data.test;
}

// how an axis calls a metric; those with the same name share a chart
std::string scale_of(const std::string& metric) {
  if (metric == "log_loss") return "log loss (nats)";
  if (metric == "mse") return "mean squared error";
  if (metric == "mae") return "mean absolute error";
  if (metric == "ece") return "expected calibration error";
  if (metric == "brier") return "Brier score";
  for (const char* share : {"accuracy", "balanced_accuracy", "f1", "auroc", "average_precision"}) {
    if (metric == share) return "share, 1 is best";
  }
  return metric;
}

// the loss of training has the scale of a validation metric, unless targets have units of their own
std::string training_scale(const TaskConfig& task) {
  if (is_classification(task.kind)) return scale_of("log_loss");
  return task.kind == TaskKind::Regression ? "mean squared error of scaled targets" : scale_of("mse");
}

// one chart per scale, the loss of training first
std::vector<report::Curve> curves(const RunResult& result, const TaskConfig& task) {
  std::vector<report::Curve> out;
  const int64_t best = result.best_epoch;
  const auto line_of = [&](const std::string& title, const std::string& scale, const std::string& name) {
    auto chart =
        std::find_if(out.begin(), out.end(), [&](const auto& curve) { return curve.y_label == scale; });
    if (chart == out.end()) chart = out.insert(out.end(), {title, "epoch", scale, best, {}});
    auto line = std::find_if(chart->lines.begin(), chart->lines.end(),
                             [&](const report::Line& known) { return known.name == name; });
    if (line != chart->lines.end()) return line;
    chart->lines.push_back({.name = name});
    return std::prev(chart->lines.end());
  };
  const auto add = [](report::Line& line, const TrainEpoch& epoch, double y) {
    line.x.push_back(epoch.epoch);
    line.y.push_back(y);
  };
  // thousands of points are enough for a curve
  const size_t every = result.epochs.size() / 2000 + 1;
  for (size_t i = 0; i < result.epochs.size(); ++i) {
    const TrainEpoch& epoch = result.epochs[i];
    if (i % every != 0 && i + 1 != result.epochs.size() && epoch.epoch != best) continue;
    add(*line_of("Loss", training_scale(task), "train"), epoch, epoch.loss);
    for (const auto& [name, value] : epoch.validation)
      add(*line_of("Validation", scale_of(name), is_loss(name) ? "validation" : name), epoch, value);
    add(*line_of("Learning rate", "learning rate", "learning rate"), epoch, epoch.learning_rate);
  }
  // of a metric that stands alone the name is the title
  for (report::Curve& curve : out) {
    if (curve.title == "Validation" && curve.lines.size() == 1) curve.title += ": " + curve.y_label;
  }
  return out;
}

// of channels and rows ahead, with the errors of each part
void add_groups(report::MetricsTable& table, const RunResult& result) {
  constexpr size_t kMost = 40;
  const std::vector<MetricsGroup>& groups = result.parts.back().groups;
  for (size_t g = 0; g < std::min(groups.size(), kMost); ++g) {
    const MetricsGroup& group = groups[g];
    const bool channel = group.kind == "channels";
    report::MetricsRow row = {.name = channel ? "mae of " + group.name : "mae, row " + group.name + " ahead",
                              .format = "number"};
    for (const PartResult& part : result.parts) {
      const auto same = [&](const MetricsGroup& other) {
        return other.kind == group.kind && other.name == group.name;
      };
      const auto found = std::find_if(part.groups.begin(), part.groups.end(), same);
      row.values.push_back(found == part.groups.end() ? NAN : metric(found->metrics, "mae"));
    }
    table.rows.push_back(std::move(row));
  }
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
    std::vector<report::Numbers> intervals;
    for (const PartResult& part : result.parts) {
      const ConfidenceInterval interval = interval_of(part.intervals, name);
      row.values.push_back(metric(part.metrics, name));
      intervals.emplace_back();
      if (!std::isnan(interval.low)) intervals.back() = {interval.low, interval.high};
    }
    const auto known = [](const report::Numbers& interval) { return !interval.empty(); };
    if (std::any_of(intervals.begin(), intervals.end(), known)) row.intervals = std::move(intervals);
    table.rows.push_back(std::move(row));
  }
  if (!result.parts.empty()) add_groups(table, result);
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

// what a folder keeps of a result, and predictions of the part that the report shows
RunResult load_result(const std::string& folder, const Run& run, const TrainedModel& trained) {
  RunResult result = read_result(folder);
  const EpochsFile epochs = read_epochs(folder);
  result.epochs = epochs.epochs;
  result.message = epochs.warning();
  result.trained = trained;
  PartResult& shown = result.parts.back();
  shown.predictions = trained.finished(
      predict(trained.model, part_of(run.data, shown.name), trained.preparation, trained.task));
  return result;
}

}  // namespace

ReportData make_report(const std::string& folder, const Run& run, const RunResult& result,
                       const std::vector<std::string>& series) {
  const at::NoGradGuard no_grad;
  const TrainedModel& trained = *result.trained;
  // the last of train, validation and test
  const PartResult& last = result.parts.back();
  const Shown shown = {last, part_of(run.data, last.name)};
  ReportData report = {
      .title = run.data.head.name,
      .finished = utc_now("%Y-%m-%d %H:%M UTC"),
      .headline = headline(shown.result, trained.model),
      .curves = is_fitted(run.config.model) ? std::vector<report::Curve>{} : curves(result, run.config.task),
      .advice = training_advice(result, selection_metric(run.config)),
      .metrics = metrics_table(result)};
  if (const std::optional<data::DateScale> dates = data::date_scale(run.data.head))
    report.calendar = report::Calendar{(dates->zero + dates->form.offset) / 1000, dates->unit / 1000};
  report.model = model_section(trained.model);
  add_facts(report, folder, run, result);
  if (last.predictions->classes.defined()) add_classes(report, trained, shown);
  if (last.predictions->targets.defined()) add_scatter(report, trained, shown);
  const TaskKind kind = run.config.task.kind;
  if (kind == TaskKind::Forecast || kind == TaskKind::Imputation) add_forecasts(report, trained, shown);
  if (const auto lines = reference_lines(run, last, shown.data); !lines.empty()) report.references = lines;
  if (!is_fitted(run.config.model)) add_series(report, trained, shown, series);
  const size_t skipped = run.data.head.skipped.size();
  std::vector<std::string> warnings = run.data.head.notes;
  if (skipped > 0) warnings.push_back(message(skipped, " files were left out"));
  if (const std::string gaps = gap_note(run); !gaps.empty()) warnings.push_back(gaps);
  if (!result.message.empty()) warnings.push_back(result.message);
  if (!warnings.empty()) report.warnings = warnings;
  return report;
}

void write_report(const std::string& folder, const Run& run, const RunResult& result,
                  const std::vector<std::string>& series) {
  const ReportData report = make_report(folder, run, result, series);
  const std::string json = report::to_json(report);
  replace_file(folder + "/report.json", json);
  replace_file(folder + "/report.html", report::page(report.title, json));
  replace_file(folder + "/model_card.md", report::model_card(report));
}

void write_report(const std::string& folder, const DataSet& data, const std::vector<std::string>& series) {
  if (const std::optional<RunSet> set = read_run_set(folder)) {
    check_set_data(*set, data);
    collect_runs(*set, data);
    return;
  }
  const TrainedModel trained = load_trained(folder);
  const Run run = open_run(folder, data, trained.preparation);
  write_report(folder, run, load_result(folder, run, trained), series);
}

}  // namespace fastweights

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "report/report.h"
#include "train/clock.h"
#include "train/report_data.h"
#include "train/run_fields.h"
#include "train/run_set.h"

namespace fastweights {
namespace {

using report::ReportData;

std::string format_of(const std::string& metric) {
  return metric.find("accuracy") != std::string::npos ? "percent" : "number";
}

// "ensemble" or "out-of-fold": what all runs reach at once
std::string together_name(const RunsOptions& options) {
  return options.folds > 0 ? "out-of-fold" : "ensemble";
}

std::vector<report::Headline> spread_headline(const RunsOptions& options, const RunsPart& part) {
  std::vector<report::Headline> out;
  for (const char* name : {"accuracy", "auroc", "mse"}) {
    const auto found = std::find_if(part.spread.begin(), part.spread.end(),
                                    [&](const Spread& of) { return of.name == name; });
    if (found == part.spread.end()) continue;
    out.push_back({message(part.name, " ", name, ", mean"), found->mean, format_of(name)});
    out.push_back({message("deviation over ", found->runs, " ", kind_of(options), "s"), found->deviation,
                   format_of(name)});
    const double all = metric(part.together.metrics, name);
    if (std::isfinite(all)) out.push_back({together_name(options) + " " + name, all, format_of(name)});
    break;
  }
  return out;
}

report::MetricsTable spread_table(const RunsOptions& options, const RunsResult& result) {
  report::MetricsTable table = {.columns = {"mean", "deviation", "min", "max", together_name(options)}};
  for (const RunsPart& part : result.parts) {
    for (const Spread& of : part.spread)
      table.rows.push_back(
          {.name = part.name + " " + of.name,
           .format = format_of(of.name),
           .values = {of.mean, of.deviation, of.least, of.largest, metric(part.together.metrics, of.name)}});
  }
  return table;
}

report::RunsTable links(const RunsOptions& options, const RunsPart& part) {
  report::RunsTable table = {.part = part.name};
  for (const auto& [name, unused] : part.runs.front().metrics) {
    table.columns.push_back(name);
    table.formats.push_back(format_of(name));
  }
  const std::vector<SetRun> runs = set_runs(options);
  for (size_t i = 0; i < runs.size(); ++i) {
    report::RunLink link = {.name = runs[i].name, .href = runs[i].name + "/report.html"};
    for (const std::string& name : table.columns) link.values.push_back(metric(part.runs[i].metrics, name));
    table.runs.push_back(std::move(link));
  }
  return table;
}

report::Pairs set_facts(const RunSet& set, const DataSet& data, const TrainedModel& trained) {
  const RunsOptions& options = set.options;
  return {{"Data", data.head.name + " (" + data.head.origin + ")"},
          {"Series", message(data.samples())},
          {"Runs", options.folds > 0 ? tests_text(options)
                                     : message(options.seeds.size(), " seeds with the same split")},
          {"Task", name_of(trained.task.kind)},
          {"Model", options.setup.model}};
}

}  // namespace

void write_runs_report(const RunSet& set, const RunsResult& result, const DataSet& data,
                       const TrainedModel& trained) {
  const RunsOptions& options = set.options;
  const RunsPart& last = result.parts.back();
  const std::string& folder = options.folder;
  ReportData report = {.title = data.head.name,
                       .subtitle = message(name_of(trained.task.kind), " with ", options.setup.model, ", ",
                                           set_runs(options).size(), " ", kind_of(options), "s"),
                       .finished = utc_now("%Y-%m-%d %H:%M UTC"),
                       .facts = set_facts(set, data, trained),
                       .headline = spread_headline(options, last),
                       .runs = links(options, last),
                       .metrics = spread_table(options, result),
                       .model = model_section(trained.model)};
  const std::string& path = options.setup.source.path;
  report.commands = {message("fastweights evaluate ", folder, " ", path),
                     message("fastweights predict ", folder, " ", path, " --out predictions.csv")};
  const std::string json = report::to_json(report);
  replace_file(folder + "/report.json", json);
  replace_file(folder + "/report.html", report::page(report.title, json));
}

}  // namespace fastweights

#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "data_options.h"
#include "errors.h"
#include "progress.h"
#include "train/run_files.h"

namespace fastweights::cli {
namespace {

struct EvaluateCommand {
  std::string device = "auto";
  std::string run, part;
  DataOptions data;
  bool json = false;
};

Json number_json(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json ends_json(const ConfidenceInterval& interval) {
  return {number_json(interval.low), number_json(interval.high)};
}

Json evaluation_json(const TrainedModel& trained, const Evaluation& found) {
  Json json = Json::object(), intervals = Json::object();
  for (const auto& [name, value] : found.metrics) json[name] = number_json(value);
  for (const auto& [name, interval] : found.intervals) intervals[name] = ends_json(interval);
  if (!found.at_threshold.empty()) {
    json["threshold"] = trained.threshold;
    for (const char* name : {"accuracy", "balanced_accuracy", "f1"}) {
      const std::string key = message(name, "_at_threshold");
      json[key] = number_json(metric(found.at_threshold, name));
      intervals[key] = ends_json(interval_of(found.intervals_at_threshold, name));
    }
  }
  json["intervals"] = intervals;
  json.update(groups_json(found.groups));
  return json;
}

// of an ensemble, which models predict
std::string how_predicted(const TrainedModel& trained, const PartSamples& part) {
  if (trained.members.empty()) return "";
  return part.members.empty() ? message(", mean of ", trained.members.size(), " models")
                              : ", each predicted by the model that was not trained on it";
}

// a table of each kind: channels, rows ahead
void print_groups(const std::vector<MetricsGroup>& groups) {
  std::string kind;
  for (const MetricsGroup& group : groups) {
    if (group.kind != kind) {
      std::printf("%-20s", group.kind == "channels" ? "in own units" : "rows ahead");
      for (const auto& [name, value] : group.metrics) std::printf(" %10s", name.c_str());
      std::printf("\n");
    }
    kind = group.kind;
    std::printf("  %-18s", printable(group.name).c_str());
    for (const auto& [name, value] : group.metrics) std::printf(" %10.4g", value);
    std::printf("\n");
  }
}

void print(const EvaluateCommand& command, const TrainedModel& trained, const Evaluation& found,
           const std::string& name, const PartSamples& part) {
  if (command.json) {
    Json json = {{"data", name}, {"part", part.name}, {"samples", part.samples.size()}};
    if (!trained.members.empty()) json["members"] = trained.members.size();
    json.update(evaluation_json(trained, found));
    std::printf("%s\n", shown_dump(json).c_str());
    return;
  }
  std::printf("%s, %s: %zu %s%s, with 95 %% confidence intervals\n", printable(name).c_str(),
              part.name.c_str(), part.samples.size(), part.windows.empty() ? "series" : "windows",
              how_predicted(trained, part).c_str());
  for (const auto& [metric, value] : found.metrics) {
    const ConfidenceInterval interval = interval_of(found.intervals, metric);
    std::printf("  %-18s %.4f", metric.c_str(), value);
    if (!std::isnan(interval.low)) std::printf("  %.4f to %.4f", interval.low, interval.high);
    std::printf("\n");
  }
  print_groups(found.groups);
  if (!found.at_threshold.empty())
    std::printf("with the threshold %.3f for '%s'%s chosen on validation: %s\n", trained.threshold,
                printable(trained.preparation.classes[1]).c_str(),
                trained.members.empty() ? "" : ", the mean of those", shown(found.at_threshold).c_str());
}

void run(const EvaluateCommand& command, Session& session) {
  TrainedModel trained = load_trained(command.run);
  move_to_device(trained, command.device);
  const DataConfig source = data_for_model(command.data, command.run, trained.preparation);
  const DataSet all = read(command.data, source);
  print_notes(command.data, match_notes(all, trained.preparation));
  const PartSamples part = choose_part(command.run, all, source.path, command.part);
  const DataSet data = series_of(all, part);
  const Evaluation found =
      within_memory("predicting", [&] { return evaluate(trained, data, {.members = part.members}); });
  if (!check_finite(found.predictions, data, session)) return;
  print_notes(command.data, {found.predictions.note});
  FW_CHECK(!found.metrics.empty() && found.known > 0, data.head.name,
           " has nothing to compare predictions with; use 'fastweights predict'");
  if (found.predictions.classes.defined() && found.known < found.rows)
    std::fprintf(stderr, "%lld of %lld labels are missing or unknown to the model\n",
                 static_cast<long long>(found.rows - found.known), static_cast<long long>(found.rows));
  print(command, trained, found, data.head.name, part);
}

}  // namespace

void add_evaluate(CLI::App& program, Session& session) {
  auto command = std::make_shared<EvaluateCommand>();
  CLI::App* app = program.add_subcommand("evaluate", "Evaluate a trained model on labelled data");
  app->add_option("run", command->run, "folder of a run, of folds or of seeds, or a model.safetensors")
      ->required();
  add_data_options(*app, command->data, "data to evaluate on");
  app->add_option(
         "--part", command->part,
         "train, validation, test or all; default: test if the data have that part, otherwise all; test of "
         "folds: all series, each predicted by the model that was not trained on it")
      ->check(CLI::IsMember({"train", "validation", "test", "all"}));
  app->add_flag("--json", command->json, "print one JSON object");
  app->add_option("--device", command->device, "cpu, cuda, or auto: cuda if it is usable; default: auto");
  app->footer("Example:\n  fastweights evaluate runs/spirals spirals --json");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "fastweights/train.h"
#include "train/run_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/run_lock.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

void check_models(const std::vector<std::string>& models) {
  const std::vector<std::string> known = model_names();
  for (const std::string& name : models)
    FW_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "there is no model '", name,
             "'; the nearest is '", nearest(name, known), "'");
}

// "key is THEIRS there and OURS here" of the first setting in which two configurations differ; "" if none
std::string difference(const Json& theirs, const Json& ours, const std::string& where = "") {
  for (const auto& [key, value] : ours.items()) {
    const Json other = theirs.contains(key) ? theirs[key] : Json();
    if (value.is_object() && other.is_object()) {
      const std::string inner = difference(other, value, where + key + ".");
      if (!inner.empty()) return inner;
    } else if (value != other) {
      return message(where, key, " is ", shown_json(other), " there and ", shown_json(value), " here");
    }
  }
  return "";
}

// the table holds runs of one configuration and one set of data
void check_same(const std::string& folder, const Run& run) {
  // the same data may be elsewhere
  RunConfig theirs = read_run_config(folder), ours = run.config;
  theirs.data.absolute_path = ours.data.absolute_path = "";
  const std::string found = difference(json_of(theirs), json_of(ours));
  FW_CHECK(found.empty(), folder, " has a run with other settings (", found,
           "); choose another folder, or remove that one");
  check_run_data(folder, run);
}

double median_seconds(const std::string& folder) {
  std::vector<double> seconds;
  for (const TrainEpoch& epoch : read_epochs(folder).epochs) {
    if (std::isfinite(epoch.seconds)) seconds.push_back(epoch.seconds);
  }
  if (seconds.empty()) return 0;
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<int64_t>(seconds.size() / 2),
                   seconds.end());
  return seconds[seconds.size() / 2];
}

ComparedModel finished(const std::string& model, const std::string& folder) {
  const RunResult result = read_result(folder);
  return {.model = model,
          .parameters = Model(read_run_config(folder).model).parameter_count(),
          .seconds_per_epoch = median_seconds(folder),
          .best_epoch = result.best_epoch,
          // test, or if there is none, validation or train
          .part = result.parts.back()};
}

std::string cell(const Metrics& metrics, const std::string& name) {
  const double value = metric(metrics, name);
  if (!std::isfinite(value)) return "";
  const bool percent = name != "mse" && name != "log_loss";
  char text[32];
  std::snprintf(text, sizeof text, percent ? "%.1f %%" : "%.4f", value * (percent ? 100 : 1));
  return text;
}

bool has_metric(const Metrics& metrics, const std::string& name) {
  return std::any_of(metrics.begin(), metrics.end(), [&](const auto& m) { return m.first == name; });
}

std::vector<ComparedModel> rows_of(const Comparison& comparison) {
  std::vector<ComparedModel> rows = comparison.models;
  std::erase_if(rows, [](const ComparedModel& row) { return !row.failure.empty(); });
  return rows;
}

Json rows_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparedModel& row : rows_of(comparison))
    rows.push_back({{"model", row.model},
                    {"parameters", row.parameters},
                    {"seconds_per_epoch", row.seconds_per_epoch},
                    {"best_epoch", row.best_epoch},
                    {"part", row.part.name},
                    {"metrics", result_json(row.part)}});
  return rows;
}

// one run, resumed if it has begun
ComparedModel train_model(const Run& run, const std::string& model, const std::string& folder,
                          const TrainFunction& train, RunEnd& end) {
  const bool begun = fs::exists(folder + "/config.json");
  try {
    end = train(run, {.folder = folder, .start = begun ? RunStart::Resume : RunStart::Fresh}).end;
  } catch (const std::exception& error) {
    return {.model = model, .failure = message("failed: ", error.what())};
  }
  if (end == RunEnd::NotFinite) return {.model = model, .failure = "not finite"};
  return end == RunEnd::Finished ? finished(model, folder) : ComparedModel{};
}

}  // namespace

Comparison compare(const CompareOptions& options, const DataSet& data) {
  const std::vector<std::string> models = options.models.empty() ? model_names() : options.models;
  check_models(models);
  // errors in settings are found before anything is trained
  std::vector<Run> runs;
  for (const std::string& model : models) {
    RunSetup setup = options.setup;
    setup.model = model;
    runs.push_back(runs.empty() ? make_run(setup, data) : make_run(setup, runs.front().data));
    const std::string folder = options.folder + "/" + model;
    if (fs::exists(folder + "/config.json")) check_same(folder, runs.back());
  }
  const TrainFunction train = options.train ? options.train : TrainFunction(train_run);
  fs::create_directories(options.folder);
  const RunLock lock(options.folder);
  Comparison comparison;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string folder = options.folder + "/" + models[i];
    RunEnd end = RunEnd::Finished;
    const ComparedModel row = fs::exists(folder + "/result.json")
                                  ? finished(models[i], folder)
                                  : train_model(runs[i], models[i], folder, train, end);
    if (end == RunEnd::Stopped) {
      comparison.end = end;
      return comparison;
    }
    comparison.models.push_back(row);
    replace_file(options.folder + "/comparison.json", rows_json(comparison).dump(2) + "\n");
    replace_file(options.folder + "/comparison.md", markdown_table(comparison));
  }
  return comparison;
}

std::string to_json(const Comparison& comparison) { return rows_json(comparison).dump(); }

std::string markdown_table(const Comparison& comparison) {
  const std::vector<ComparedModel> rows = rows_of(comparison);
  std::vector<std::string> metrics;
  for (const char* name : {"accuracy", "auroc", "average_precision", "log_loss", "mse"}) {
    if (!rows.empty() && has_metric(rows[0].part.metrics, name)) metrics.emplace_back(name);
  }
  std::string text = "| model | parameters |", line = "|---|---|";
  for (const std::string& name : metrics) {
    text += message(" ", rows[0].part.name, " ", name, " |");
    line += "---|";
  }
  text += " seconds per epoch | best epoch |\n" + line + "---|---|\n";
  for (const ComparedModel& row : rows) {
    text += message("| ", row.model, " | ", row.parameters, " |");
    for (const std::string& name : metrics) text += " " + cell(row.part.metrics, name) + " |";
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f", row.seconds_per_epoch);
    text += message(" ", seconds, " | ", row.best_epoch, " |\n");
  }
  for (const ComparedModel& row : comparison.models) {
    if (!row.failure.empty()) text += message("| ", row.model, " | ", row.failure, " |\n");
  }
  return text;
}

}  // namespace fastweights

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "fastweights/train.h"
#include "train/fit.h"
#include "train/run_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/settings.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

void check_models(const std::vector<std::string>& models) {
  const std::vector<std::string> known = model_names();
  for (const std::string& name : models)
    if (std::find(known.begin(), known.end(), name) == known.end()) refuse_model(name);
}

// of some models only those are fitted: settings that they lack are for the others
RunSetup setup_for(const std::string& model, const CompareOptions& options, bool any_trained) {
  RunSetup setup = options.setup;
  setup.model = model;
  const ModelConfig plain = named_model(model, {});
  if (!is_fitted(plain) || !any_trained) return setup;
  const Json own = {{"model", json_of(plain)}};
  std::erase_if(setup.settings, [&](const Setting& setting) {
    if (setting.key.rfind("model.", 0) != 0) return false;
    std::string pointer = "/" + setting.key;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    return !own.contains(Json::json_pointer(pointer));
  });
  return setup;
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
  const std::string found = difference(json_of(read_run_config(folder)), json_of(run.config));
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
  ComparedModel row = {.model = model,
                       .parameters = Model(read_run_config(folder).model).parameter_count(),
                       .seconds_per_epoch = median_seconds(folder),
                       .best_epoch = result.best_epoch,
                       .part = result.parts.back()};
  for (const PartResult& part : result.parts) {
    if (part.name == "validation") row.validation = part;
  }
  return row;
}

// larger is better: the metric that ranks, then the log loss
std::pair<double, double> score_of(const ComparedModel& row, const std::string& name) {
  const auto value = [&](const std::string& each) {
    const double x = metric(row.validation->metrics, each) * (larger_is_better(each) ? 1 : -1);
    return std::isnan(x) ? -INFINITY : x;
  };
  return {value(name), value("log_loss")};
}

void set_ranks(Comparison& comparison) {
  const auto ranked = [](const ComparedModel& row) { return row.validation && row.failure.empty(); };
  for (ComparedModel& row : comparison.models) {
    row.rank = ranked(row) ? 1 : 0;
    for (const ComparedModel& other : comparison.models) {
      if (row.rank > 0 && ranked(other) &&
          score_of(other, comparison.metric) > score_of(row, comparison.metric))
        ++row.rank;
    }
  }
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
  for (const ComparedModel& row : rows_of(comparison)) {
    Json json = {{"model", row.model},
                 {"parameters", row.parameters},
                 {"seconds_per_epoch", row.seconds_per_epoch},
                 {"best_epoch", row.best_epoch},
                 {"part", row.part.name},
                 {"metrics", result_json(row.part)}};
    if (row.validation) json.update({{"rank", row.rank}, {"validation", result_json(*row.validation)}});
    rows.push_back(std::move(json));
  }
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
  check_models(options.models);
  const RunData divided = divide(config_of(options.setup), data);
  const std::vector<std::string> models =
      options.models.empty() ? models_for(divided.task.kind) : options.models;
  const bool any_trained = std::any_of(models.begin(), models.end(), [](const std::string& name) {
    return !is_fitted(named_model(name, {}));
  });
  // errors in settings are found before anything is trained
  std::vector<Run> runs;
  for (const std::string& model : models) {
    runs.push_back(make_run(setup_for(model, options, any_trained), divided));
    const std::string folder = options.folder + "/" + model;
    if (fs::exists(folder + "/config.json")) check_same(folder, runs.back());
  }
  const TrainFunction train = options.train ? options.train : TrainFunction(train_run);
  fs::create_directories(options.folder);
  const RunLock lock(options.folder);
  const std::string& chosen = runs.front().config.training.metric;
  Comparison comparison = {.metric = chosen.empty() ? default_metric(divided.task.kind, divided.preparation)
                                                    : chosen};
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
    set_ranks(comparison);
    replace_file(options.folder + "/comparison.json", rows_json(comparison).dump(2) + "\n");
    replace_file(options.folder + "/comparison.md", markdown_table(comparison));
  }
  return comparison;
}

std::string to_json(const Comparison& comparison) { return rows_json(comparison).dump(); }

std::string markdown_table(const Comparison& comparison) {
  std::vector<ComparedModel> rows = rows_of(comparison);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ComparedModel& a, const ComparedModel& b) { return a.rank < b.rank; });
  std::vector<std::string> metrics;
  for (const char* name : {"accuracy", "auroc", "average_precision", "log_loss", "mse"}) {
    if (!rows.empty() && has_metric(rows[0].part.metrics, name)) metrics.emplace_back(name);
  }
  const bool ranked = !rows.empty() && rows[0].rank > 0 && rows[0].part.name != "validation";
  std::string text = "| model | parameters |", line = "|---|---|";
  if (ranked) {
    text += message(" validation ", comparison.metric, " |");
    line += "---|";
  }
  for (const std::string& name : metrics) {
    text += message(" ", rows[0].part.name, " ", name, " |");
    line += "---|";
  }
  text += " seconds per epoch | best epoch |\n" + line + "---|---|\n";
  for (const ComparedModel& row : rows) {
    text += message("| ", row.model, " | ", row.parameters, " |");
    if (ranked) text += " " + (row.validation ? cell(row.validation->metrics, comparison.metric) : "") + " |";
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

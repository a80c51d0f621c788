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
#include "train/run_set.h"
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

Metrics means_of(const std::vector<Spread>& spread) {
  Metrics means;
  for (const Spread& of : spread) means.emplace_back(of.name, of.mean);
  return means;
}

// mean and deviation over the seeds in a folder; epochs, too, are means
ComparedModel finished_seeds(const std::string& model, const RunSet& set, const RunsResult& result) {
  const RunsPart& part = result.parts.back();
  ComparedModel row = {.model = model, .part = part.runs.front()};
  for (const RunsPart& other : result.parts) {
    if (other.name != "validation") continue;
    row.validation = other.runs.front();
    row.validation->metrics = means_of(other.spread);
  }
  double epochs = 0, seconds = 0;
  const std::vector<SetRun> runs = set_runs(set.options);
  for (const SetRun& one : runs) {
    const ComparedModel run = finished(model, set.options.folder + "/" + one.name);
    row.parameters = run.parameters;
    epochs += static_cast<double>(run.best_epoch) / static_cast<double>(runs.size());
    seconds += run.seconds_per_epoch / static_cast<double>(runs.size());
  }
  row.best_epoch = std::llround(epochs);
  row.seconds_per_epoch = seconds;
  row.part.metrics = means_of(part.spread);
  for (const Spread& of : part.spread) row.deviations.emplace_back(of.name, of.deviation);
  return row;
}

// "98.1 %", or with several seeds "98.1 % (0.4)"
std::string cell(const Metrics& metrics, const Metrics& deviations, const std::string& name) {
  const double value = metric(metrics, name), deviation = metric(deviations, name);
  if (!std::isfinite(value)) return "";
  const bool percent = larger_is_better(name);
  char text[64];
  std::snprintf(text, sizeof text, percent ? "%.1f %%" : "%.4f", value * (percent ? 100 : 1));
  if (deviations.empty()) return text;
  char spread[32];
  std::snprintf(spread, sizeof spread, percent ? " (%.1f)" : " (%.4f)", deviation * (percent ? 100 : 1));
  return std::string(text) + spread;
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
    if (!row.deviations.empty()) json["deviations"] = metrics_json(row.deviations);
    rows.push_back(std::move(json));
  }
  return rows;
}

// the seeds of a model, resumed if they have begun
ComparedModel train_seeds(const RunSet& set, const Run& first, const std::string& model, const DataSet& data,
                          RunEnd& end) {
  try {
    fs::create_directories(set.options.folder);
    write_run_set(set);
    const RunsResult result = train_set(set, data, first);
    end = result.end;
    if (end == RunEnd::Finished) return finished_seeds(model, set, result);
  } catch (const std::exception& error) {
    return {.model = model, .failure = message("failed: ", error.what())};
  }
  return end == RunEnd::NotFinite ? ComparedModel{.model = model, .failure = "not finite"} : ComparedModel{};
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

RunSet seeds_of(const CompareOptions& options, const std::string& model, const RunSetup& setup,
                const Run& run) {
  return {.options = {.folder = options.folder + "/" + model,
                      .seeds = options.seeds,
                      .setup = setup,
                      .train = options.train},
          .fingerprint = run.data.fingerprint};
}

// what the folder of a model holds is of this comparison
void check_folder(const CompareOptions& options, const std::string& model, const Run& run) {
  const std::string folder = options.folder + "/" + model;
  const std::optional<RunSet> known = read_run_set(folder);
  const bool single = fs::exists(folder + "/config.json");
  FW_CHECK(options.seeds.empty() ? !known : !single && (!known || known->options.seeds == options.seeds),
           folder, " has runs with other seeds; choose another folder, or remove that one");
  if (single) check_same(folder, run);
  if (!known) return;
  for (const SetRun& one : set_runs(known->options)) {
    Run expected = run;
    expected.config = with_settings(run.config, one.settings);
    const std::string own = folder + "/" + one.name;
    if (fs::exists(own + "/config.json")) check_same(own, expected);
  }
}

}  // namespace

Comparison compare(const CompareOptions& options, const DataSet& data) {
  check_models(options.models);
  if (!options.seeds.empty()) check_runs({.seeds = options.seeds});
  const RunData divided = divide(config_of(options.setup), data);
  const std::vector<std::string> models =
      options.models.empty() ? models_for(divided.task.kind) : options.models;
  const bool any_trained = std::any_of(models.begin(), models.end(), [](const std::string& name) {
    return !is_fitted(named_model(name, {}));
  });
  // errors in settings are found before anything is trained
  std::vector<Run> runs;
  std::vector<RunSetup> setups;
  for (const std::string& model : models) {
    setups.push_back(setup_for(model, options, any_trained));
    runs.push_back(make_run(setups.back(), divided));
    check_folder(options, model, runs.back());
  }
  const TrainFunction train = options.train ? options.train : TrainFunction(train_run);
  fs::create_directories(options.folder);
  const RunLock lock(options.folder);
  Comparison comparison = {.metric = selection_metric(runs.front().config)};
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string folder = options.folder + "/" + models[i];
    RunEnd end = RunEnd::Finished;
    const ComparedModel row =
        !options.seeds.empty()
            ? train_seeds(seeds_of(options, models[i], setups[i], runs[i]), runs[i], models[i], data, end)
        : has_finished(folder) ? finished(models[i], folder)
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
  for (const char* name : {"accuracy", "auroc", "average_precision", "log_loss", "mse", "mase"}) {
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
    if (ranked)
      text += " " + (row.validation ? cell(row.validation->metrics, {}, comparison.metric) : "") + " |";
    for (const std::string& name : metrics) text += " " + cell(row.part.metrics, row.deviations, name) + " |";
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

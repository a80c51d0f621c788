#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "train_command.h"

/// One run after another with the same data, split and training loop, and a table of them.

namespace fastweights::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct CompareCommand {
  TrainCommand train;
  std::string models = "all";
};

std::vector<std::string> chosen_models(const std::string& list) {
  if (list == "all") return model_names();
  std::vector<std::string> found;
  std::istringstream in(list);
  for (std::string name; std::getline(in, name, ',');) {
    const std::vector<std::string>& known = model_names();
    FW_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "there is no model '", name,
             "'; the nearest is '", nearest(name, known), "'");
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  FW_CHECK(!found.empty(), "--models wants names with commas between them, or all");
  return found;
}

double median_seconds(const std::string& folder) {
  std::ifstream in(folder + "/metrics.jsonl");
  std::vector<double> seconds;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) seconds.push_back(json.value("seconds", 0.0));
  }
  if (seconds.empty()) return 0;
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<int64_t>(seconds.size() / 2),
                   seconds.end());
  return seconds[seconds.size() / 2];
}

Json row_of(const std::string& model, const std::string& folder) {
  const Json result = Json::parse(read_file(folder + "/result.json"));
  const char* part = result.contains("test")         ? "test"
                     : result.contains("validation") ? "validation"
                                                     : "train";
  return {{"model", model},
          {"parameters", Model(read_run_config(folder).model).parameter_count()},
          {"seconds_per_epoch", median_seconds(folder)},
          {"best_epoch", result.at("best_epoch")},
          {"part", part},
          {"metrics", result.at(part)}};
}

std::string cell(const Json& metrics, const char* name) {
  if (!metrics.contains(name) || !metrics[name].is_number()) return "";
  char text[32];
  const bool percent = std::string(name) != "mse" && std::string(name) != "log_loss";
  std::snprintf(text, sizeof text, percent ? "%.1f %%" : "%.4f",
                metrics[name].get<double>() * (percent ? 100 : 1));
  return text;
}

std::string table_of(const Json& rows, const Json& failed) {
  std::vector<const char*> metrics;
  for (const char* name : {"accuracy", "auroc", "average_precision", "log_loss", "mse"}) {
    if (!rows.empty() && rows[0]["metrics"].contains(name)) metrics.push_back(name);
  }
  std::string text = "| model | parameters |", line = "|---|---|";
  for (const char* name : metrics) {
    text += message(" ", rows[0]["part"].get<std::string>(), " ", name, " |");
    line += "---|";
  }
  text += " seconds per epoch | best epoch |\n" + line + "---|---|\n";
  for (const Json& row : rows) {
    text += message("| ", row["model"].get<std::string>(), " | ", row["parameters"].get<int64_t>(), " |");
    for (const char* name : metrics) text += " " + cell(row["metrics"], name) + " |";
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.2f", row["seconds_per_epoch"].get<double>());
    text += message(" ", seconds, " | ", row["best_epoch"].get<int64_t>(), " |\n");
  }
  for (const auto& [model, what] : failed.items())
    text += message("| ", model, " | ", what.get<std::string>(), " |\n");
  return text;
}

// the first setting that a run in the folder has otherwise, as "key: theirs, not ours"; "" if none
std::string difference(const Json& there, const Json& wanted, const std::string& where = "") {
  for (const auto& [key, value] : wanted.items()) {
    const Json other = there.contains(key) ? there[key] : Json();
    if (value.is_object() && other.is_object()) {
      const std::string inner = difference(other, value, where + key + ".");
      if (!inner.empty()) return inner;
    } else if (value != other) {
      return message(where, key, " is ", other.dump(), " there and ", value.dump(), " here");
    }
  }
  return "";
}

// a run that was made otherwise is not to stand in the table
void check_same(const std::string& folder, const RunConfig& wanted) {
  const Json there = Json::parse(to_json(read_run_config(folder)));
  const std::string found = difference(there, Json::parse(to_json(wanted)));
  FW_CHECK(found.empty(), folder, " has a run with other settings (", found,
           "); choose another folder, or remove that one");
}

// trains one, or goes on with it; "" or what went wrong
std::string train_model(const TrainCommand& train, const std::string& folder, const RunConfig& config,
                        const DataSet& data, const std::string& again, Session& session) {
  try {
    const RunEnd end = train_one(train, folder, config, data, "", again, session);
    return end == RunEnd::NotFinite ? "not finite" : "";
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fastweights: %s: %s\n", folder.c_str(), error.what());
    session.exit_status = 1;
    return "trouble";
  }
}

void run(const CompareCommand& command, Session& session) {
  const TrainCommand& train = command.train;
  FW_CHECK(!train.out.empty(), "say where the runs go: --out FOLDER");
  handle_interrupts();
  const std::vector<std::string> models = chosen_models(command.models);
  const DataConfig source = data_config(train.data, data_settings(train));
  const DataSet data = read(train.data, source);
  // settings that cannot be, or are not those of runs that are there, are found before anything is trained
  std::vector<RunConfig> configs;
  for (const std::string& model : models) {
    TrainCommand own = train;
    own.model = model;
    configs.push_back(new_config(model, settings_json(own), source, data));
    const std::string folder = train.out + "/" + model;
    if (!fs::exists(folder + "/config.json")) continue;
    check_same(folder, configs.back());
    split_of(folder, data);
  }
  Json rows = Json::array(), failed = Json::object();
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string folder = train.out + "/" + models[i];
    if (!fs::exists(folder + "/result.json")) {
      if (train.talks()) std::printf("\n%s (%zu of %zu)\n", models[i].c_str(), i + 1, models.size());
      const std::string trouble = train_model(train, folder, configs[i], data, folder, session);
      if (trouble.empty() && !fs::exists(folder + "/result.json")) return;  // interrupted
      if (!trouble.empty()) failed[models[i]] = trouble;
    }
    if (!failed.contains(models[i])) rows.push_back(row_of(models[i], folder));
    replace_file(train.out + "/comparison.json", rows.dump(2) + "\n");
    replace_file(train.out + "/comparison.md", table_of(rows, failed));
  }
  if (train.json) std::printf("%s\n", rows.dump().c_str());
  if (train.talks())
    std::printf("\n%s\nthe table is in %s/comparison.md\n", table_of(rows, failed).c_str(),
                train.out.c_str());
}

}  // namespace

void add_compare(CLI::App& program, Session& session) {
  auto command = std::make_shared<CompareCommand>();
  CLI::App* app = program.add_subcommand(
      "compare", "Train several models on the same data in the same way, and make a table of them");
  add_data_options(*app, command->train.data, "what to train on");
  app->add_option("--out,-o", command->train.out,
                  "folder of the runs, one for each model; runs that have finished are not done again");
  app->add_option("--models", command->models, "names with commas between them, or all; see 'models'")
      ->capture_default_str();
  add_run_options(*app, command->train);
  app->footer(
      "Examples:\n"
      "  fastweights compare spirals --out runs/spirals-compared --models delta-cde,ncde,gru --epochs 2\n"
      "Exit codes: 0 done, 1 trouble, 2 wrong command line, 3 something became infinite or NaN, 130 "
      "interrupted; then the same command goes on.");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli

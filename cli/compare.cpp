#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fastweights/error.h"
#include "fastweights/nearest.h"
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
    found.push_back(name);
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
  const Json result = Json::parse(file_text(folder + "/result.json"));
  const char* part = result.contains("test")         ? "test"
                     : result.contains("validation") ? "validation"
                                                     : "train";
  return {{"model", model},
          {"parameters", SequenceModel(read_run_config(folder).model).parameter_count()},
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

std::string table_of(const Json& rows) {
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
  return text;
}

void run(const CompareCommand& command, Session& session) {
  const TrainCommand& train = command.train;
  FW_CHECK(!train.out.empty(), "say where the runs go: --out FOLDER");
  handle_interrupts();
  const std::vector<std::string> models = chosen_models(command.models);
  const DataConfig source = data_config(train.data, data_settings(train));
  const DataSet data = read(train.data, source);
  // all that can be wrong with settings is found before anything is trained
  std::vector<RunConfig> configs;
  for (const std::string& model : models) {
    TrainCommand own = train;
    own.model = model;
    configs.push_back(new_config(model, settings_json(own), source, data));
  }
  Json rows = Json::array();
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string folder = train.out + "/" + models[i];
    if (!fs::exists(folder + "/result.json")) {
      if (train.talks()) std::printf("\n%s (%zu of %zu)\n", models[i].c_str(), i + 1, models.size());
      const bool known = fs::exists(folder + "/config.json");
      const RunConfig config = known ? read_run_config(folder) : configs[i];
      if (train_one(train, folder, config, data, "", folder, session) == RunEnd::Stopped) return;
    }
    if (!fs::exists(folder + "/result.json")) continue;  // it broke off and said so
    rows.push_back(row_of(models[i], folder));
    replace_file(train.out + "/comparison.json", rows.dump(2) + "\n");
    replace_file(train.out + "/comparison.md", table_of(rows));
  }
  if (train.json) std::printf("%s\n", rows.dump().c_str());
  if (train.talks())
    std::printf("\n%s\nthe table is in %s/comparison.md\n", table_of(rows).c_str(), train.out.c_str());
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

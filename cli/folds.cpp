#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// folds.json: what all runs have in common, and from which each makes its own configuration
struct Folds {
  int64_t count = 0;
  std::string model, settings, from, fingerprint;
  DataConfig source;
};

std::string path_of(const std::string& folder) { return folder + "/folds.json"; }

std::string fold_folder(const std::string& folder, int64_t fold) {
  return folder + "/fold-" + std::to_string(fold + 1);
}

void save(const std::string& folder, const Folds& folds) {
  RunConfig config;
  config.data = folds.source;
  const Json json = {{"folds", folds.count},
                     {"model", folds.model},
                     {"settings", Json::parse(folds.settings)},
                     {"from", folds.from},
                     {"fingerprint", folds.fingerprint},
                     {"data", Json::parse(to_json(config)).at("data")}};
  replace_file(path_of(folder), json.dump(2) + "\n");
}

Folds load(const std::string& folder) {
  try {
    const Json json = Json::parse(read_file(path_of(folder)));
    Folds folds;
    folds.count = json.at("folds").get<int64_t>();
    folds.model = json.at("model").get<std::string>();
    folds.settings = json.at("settings").dump();
    folds.from = json.at("from").get<std::string>();
    folds.fingerprint = json.at("fingerprint").get<std::string>();
    folds.source = run_config_from_json(Json{{"data", json.at("data")}}.dump()).data;
    return folds;
  } catch (const Json::exception&) {
    throw std::runtime_error(path_of(folder) + " is damaged; begin anew in another folder");
  }
}

RunConfig config_of(const Folds& folds, int64_t fold, const DataSet& data) {
  std::string settings = with_setting(folds.settings, "split.rule", "folds");
  settings = with_setting(settings, "split.folds", std::to_string(folds.count));
  settings = with_setting(settings, "split.fold", std::to_string(fold));
  return new_config(folds.model, settings, folds.source, data);
}

// all that can be wrong is found before anything is written
Folds begin(const TrainCommand& command, const DataConfig& source, const DataSet& data) {
  for (const char* name : {"config.json", "folds.json", "fold-1"})
    FW_CHECK(!fs::exists(command.out + "/" + name), "there is a run in ", command.out,
             " already: go on with --resume, or choose another folder");
  Folds folds = {command.folds, model_of(command), settings_json(command), "", fingerprint(data), source};
  if (!command.from.empty()) folds.from = fs::absolute(command.from).string();
  for (int64_t fold = 0; fold < folds.count; ++fold) {
    const RunConfig config = config_of(folds, fold, data);
    Model model(config.model);
    if (!folds.from.empty()) begin_with(model, folds.from);
  }
  fs::create_directories(command.out);
  save(command.out, folds);
  return folds;
}

// mean and deviation over the folds that have a number
Json summary_of(const Json& parts) {
  std::map<std::string, std::vector<double>> values;
  for (const Json& part : parts) {
    for (const auto& [name, value] : part.items()) {
      if (value.is_number() && name != "samples") values[name].push_back(value.get<double>());
    }
  }
  Json summary = Json::object();
  for (const auto& [name, list] : values) {
    const auto count = static_cast<double>(list.size());
    const double mean = std::accumulate(list.begin(), list.end(), 0.0) / count;
    double squares = 0;
    for (const double x : list) squares += (x - mean) * (x - mean);
    const double deviation = list.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
    summary[name] = {{"mean", mean}, {"deviation", deviation}, {"folds", list.size()}};
  }
  return summary;
}

void finish(const TrainCommand& command, const std::string& folder, int64_t count) {
  Json parts = Json::array();
  for (int64_t fold = 0; fold < count; ++fold)
    parts.push_back(Json::parse(read_file(fold_folder(folder, fold) + "/result.json")).at("test"));
  const Json summary = summary_of(parts);
  replace_file(folder + "/result.json", Json{{"summary", summary}, {"folds", parts}}.dump(2) + "\n");
  if (command.json) std::printf("%s\n", Json{{"run", folder}, {"summary", summary}}.dump().c_str());
  if (!command.talks()) return;
  std::printf("\n%lld folds, each tested on series that it did not see\n", static_cast<long long>(count));
  for (const auto& [name, of] : summary.items())
    std::printf("  %-18s %.4f +- %.4f\n", name.c_str(), of["mean"].get<double>(),
                of["deviation"].get<double>());
}

}  // namespace

bool has_folds(const std::string& folder) { return fs::exists(path_of(folder)); }

void cross_validate(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  const std::string folder = resume ? command.resume : command.out;
  Folds folds = resume ? load(folder) : Folds{};
  const DataConfig source = data_config(command.data, resume ? folds.source : data_settings(command));
  const DataSet data = read(command.data, source);
  if (!resume) folds = begin(command, source, data);
  if (folds.fingerprint != fingerprint(data))
    throw std::runtime_error("the data have changed since " + folder + " began: they were " +
                             folds.fingerprint + ", they are " + fingerprint(data));
  for (int64_t fold = 0; fold < folds.count; ++fold) {
    const std::string own = fold_folder(folder, fold);
    if (fs::exists(own + "/result.json") && fs::exists(own + "/report.html")) continue;
    const RunConfig config =
        fs::exists(own + "/config.json") ? read_run_config(own) : config_of(folds, fold, data);
    try {
      if (train_one(command, own, config, data, folds.from, folder, session) != RunEnd::Finished) return;
    } catch (...) {
      // settings that no run can begin with leave nothing behind
      if (!fs::exists(fold_folder(folder, 0) + "/config.json")) fs::remove(path_of(folder));
      throw;
    }
  }
  finish(command, folder, folds.count);
}

}  // namespace fastweights::cli

#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "fastweights/train.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/settings.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// folds.json: what all runs share, and the data they were made for
struct Folds {
  FoldsOptions options;
  std::string fingerprint;
};

std::string path_of(const std::string& folder) { return folder + "/folds.json"; }

std::string fold_folder(const std::string& folder, int64_t fold) {
  return folder + "/fold-" + std::to_string(fold + 1);
}

void save(const Folds& folds) {
  const RunSetup& setup = folds.options.setup;
  const Json json = {{"folds", folds.options.folds},
                     {"model", setup.model},
                     {"settings", settings_json(all_settings(setup))},
                     {"from", setup.initialise_from},
                     {"fingerprint", folds.fingerprint},
                     {"data", json_of(setup.source)}};
  replace_file(path_of(folds.options.folder), json.dump(2) + "\n");
}

Folds load(const std::string& folder) {
  return read_json_file(path_of(folder), [&](const Json& json) {
    const int64_t count = json.at("folds").get<int64_t>();
    FW_CHECK(count >= 2 && count <= 1000, "folds must be 2 to 1000, got ", count);
    return Folds{.options = {.folder = folder,
                             .folds = count,
                             .setup = {.model = json.at("model").get<std::string>(),
                                       .settings = settings_from_json(json.at("settings")),
                                       .source = read_fields(json.at("data"), DataConfig{}),
                                       .initialise_from = json.at("from").get<std::string>()}},
                 .fingerprint = json.at("fingerprint").get<std::string>()};
  });
}

Run fold_run(const Folds& folds, int64_t fold, const DataSet& data) {
  RunSetup setup = folds.options.setup;
  setup.settings.push_back({"split.rule", "folds"});
  setup.settings.push_back({"split.folds", std::to_string(folds.options.folds)});
  setup.settings.push_back({"split.fold", std::to_string(fold)});
  return make_run(setup, data);
}

// mean and deviation over the folds in which a metric is finite
std::vector<FoldsResult::Summary> summary_of(const std::vector<PartResult>& tests) {
  std::map<std::string, std::vector<double>> values;
  for (const PartResult& test : tests) {
    for (const auto& [name, value] : test.metrics) {
      if (std::isfinite(value)) values[name].push_back(value);
    }
  }
  std::vector<FoldsResult::Summary> summary;
  for (const auto& [name, list] : values) {
    const auto count = static_cast<double>(list.size());
    const double mean = std::accumulate(list.begin(), list.end(), 0.0) / count;
    double squares = 0;
    for (const double x : list) squares += (x - mean) * (x - mean);
    const double deviation = list.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
    summary.push_back({name, mean, deviation, static_cast<int64_t>(list.size())});
  }
  return summary;
}

Json summary_json(const std::vector<FoldsResult::Summary>& summary) {
  Json json = Json::object();
  for (const FoldsResult::Summary& of : summary)
    json[of.name] = {{"mean", of.mean}, {"deviation", of.deviation}, {"folds", of.folds}};
  return json;
}

// results of all folds, which have finished
FoldsResult collect(const Folds& folds) {
  FoldsResult result;
  Json parts = Json::array();
  for (int64_t fold = 0; fold < folds.options.folds; ++fold) {
    // each fold has a test part, which is the last one
    result.tests.push_back(read_result(fold_folder(folds.options.folder, fold)).parts.back());
    parts.push_back(result_json(result.tests.back()));
  }
  result.summary = summary_of(result.tests);
  const Json json = {{"summary", summary_json(result.summary)}, {"folds", parts}};
  replace_file(folds.options.folder + "/result.json", json.dump(2) + "\n");
  return result;
}

bool has_finished(const std::string& folder) {
  return fs::exists(folder + "/result.json") && fs::exists(folder + "/report.html");
}

// `first` is the run of the first fold, if it has been made
FoldsResult train_folds(const Folds& folds, const DataSet& data, std::optional<Run> first) {
  const std::string& folder = folds.options.folder;
  const TrainFunction train = folds.options.train ? folds.options.train : TrainFunction(train_run);
  for (int64_t fold = 0; fold < folds.options.folds; ++fold) {
    const std::string own = fold_folder(folder, fold);
    if (has_finished(own)) continue;
    const bool begun = fs::exists(own + "/config.json");
    const Run run = begun ? open_run(own, data) : first ? std::move(*first) : fold_run(folds, fold, data);
    first.reset();
    try {
      const RunResult result =
          train(run, {.folder = own, .start = begun ? RunStart::Resume : RunStart::Fresh});
      if (result.end != RunEnd::Finished) return {.end = result.end};
    } catch (const std::exception&) {
      // settings with which no run can begin leave no file
      if (!fs::exists(fold_folder(folder, 0) + "/config.json")) fs::remove(path_of(folder));
      throw;
    }
  }
  return collect(folds);
}

}  // namespace

std::optional<FoldsOptions> read_folds(const std::string& folder) {
  if (!fs::exists(path_of(folder))) return std::nullopt;
  return load(folder).options;
}

namespace {

void check_no_run(const std::string& folder) {
  for (const char* name : {"config.json", "folds.json", "fold-1"})
    FW_CHECK(!fs::exists(folder + "/" + name), "there is a run in ", folder,
             " already: resume it with --resume, or choose another folder");
}

}  // namespace

FoldsResult cross_validate(const FoldsOptions& options, const DataSet& data) {
  check_no_run(options.folder);
  Folds folds = {options, fingerprint(data)};
  std::string& from = folds.options.setup.initialise_from;
  if (!from.empty()) from = fs::absolute(from).string();
  // errors are found before anything is written
  Run first = fold_run(folds, 0, data);
  const Model model(first.config.model);
  if (!from.empty()) initialise_from(model, from);
  fs::create_directories(options.folder);
  const RunLock lock(options.folder);
  // another process may have been faster
  check_no_run(options.folder);
  save(folds);
  return train_folds(folds, data, std::move(first));
}

FoldsResult resume_folds(const std::string& folder, const DataSet& data, const TrainFunction& train) {
  Folds folds = load(folder);
  folds.options.train = train;
  const std::string now = fingerprint(data);
  if (folds.fingerprint != now)
    throw std::runtime_error("the data have changed since " + folder + " began: they were " +
                             folds.fingerprint + ", they are " + now);
  const RunLock lock(folder);
  return train_folds(folds, data, std::nullopt);
}

std::string to_json(const std::vector<FoldsResult::Summary>& summary) { return summary_json(summary).dump(); }

}  // namespace fastweights

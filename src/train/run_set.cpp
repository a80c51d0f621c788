#include "train/run_set.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "train/run_fields.h"
#include "train/run_split.h"
#include "train/settings.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRuns = 1000;

std::string set_path(const std::string& folder, const std::string& kind) {
  return folder + "/" + kind + "s.json";
}

RunSet load_set(const std::string& folder, const std::string& kind) {
  const std::string path = set_path(folder, kind);
  return read_json_file(path, [&](const Json& json) {
    // member by member: g++ 12 destroys nested members twice if a later initialiser throws
    RunSet set;
    set.options.folder = folder;
    RunSetup& setup = set.options.setup;
    setup.model = json.at("model").get<std::string>();
    setup.settings = settings_from_json(json.at("settings"));
    setup.source = read_fields(json.at("data"), DataConfig{});
    setup.initialise_from = json.at("from").get<std::string>();
    set.fingerprint = json.at("fingerprint").get<std::string>();
    if (kind == "fold") {
      set.options.folds = json.at("folds").get<int64_t>();
    } else {
      set.options.seeds = json.at("seeds").get<std::vector<int64_t>>();
    }
    check_runs(set.options);
    return set;
  });
}

}  // namespace

std::string kind_of(const RunsOptions& options) { return options.seeds.empty() ? "fold" : "seed"; }

std::string tests_text(const RunsOptions& options) {
  if (options.folds == 0)
    return message(options.seeds.size(),
                   " seeds with the same split; the ensemble is the mean of their models");
  const bool rolling = divides_time(config_of(options.setup).split.rule);
  return message(
      options.folds,
      rolling ? " folds with a rolling origin, each tested on the rows after those that it was trained on"
              : " folds, each tested on series that it was not trained on");
}

std::optional<RunSet> read_run_set(const std::string& folder) {
  for (const char* kind : {"fold", "seed"}) {
    if (fs::exists(set_path(folder, kind))) return load_set(folder, kind);
  }
  return std::nullopt;
}

void write_run_set(const RunSet& set) {
  const RunSetup& setup = set.options.setup;
  Json json = Json::object();
  if (set.options.seeds.empty()) {
    json["folds"] = set.options.folds;
  } else {
    json["seeds"] = set.options.seeds;
  }
  json.update({{"model", setup.model},
               {"settings", settings_json(all_settings(setup))},
               {"from", setup.initialise_from},
               {"fingerprint", set.fingerprint},
               {"data", json_of(setup.source)}});
  replace_file(set_path(set.options.folder, kind_of(set.options)), json.dump(2) + "\n");
}

void remove_run_set(const RunSet& set) { fs::remove(set_path(set.options.folder, kind_of(set.options))); }

std::vector<SetRun> set_runs(const RunsOptions& options) {
  std::vector<SetRun> runs;
  const std::string rule =
      options.folds == 0 ? "" : name_of(rule_of_folds(config_of(options.setup).split.rule));
  for (int64_t fold = 0; fold < options.folds; ++fold)
    runs.push_back(
        {message("fold-", fold + 1),
         {{"split.rule", rule}, {"split.folds", message(options.folds)}, {"split.fold", message(fold)}}});
  for (const int64_t seed : options.seeds)
    runs.push_back({message("seed-", seed), {{"training.seed", message(seed)}}});
  return runs;
}

void check_runs(const RunsOptions& options) {
  const bool folds = options.folds != 0;
  FW_CHECK(folds == options.seeds.empty(), "runs are either folds or seeds, not ",
           folds ? "both" : "neither");
  FW_CHECK(!folds || (options.folds >= 2 && options.folds <= kMostRuns), "folds must be 2 to ", kMostRuns,
           ", got ", options.folds);
  std::set<int64_t> known;
  for (const int64_t seed : options.seeds) {
    FW_CHECK(seed >= 0, "seeds must not be negative, got ", seed);
    FW_CHECK(known.insert(seed).second, "seed ", seed, " is given twice");
  }
  FW_CHECK(folds || (known.size() >= 2 && known.size() <= kMostRuns), "seeds must be 2 to ", kMostRuns,
           " numbers, got ", known.size());
}

void check_set_data(const RunSet& set, const DataSet& data) {
  const std::string now = fingerprint(data);
  if (set.fingerprint != now)
    throw std::runtime_error("the data have changed since " + set.options.folder + " began: they were " +
                             set.fingerprint + ", they are " + now);
}

std::optional<RunsOptions> read_runs(const std::string& folder) {
  const std::optional<RunSet> set = read_run_set(folder);
  return set ? std::optional(set->options) : std::nullopt;
}

}  // namespace fastweights

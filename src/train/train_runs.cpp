#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "train/fold_calibration.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/run_set.h"
#include "train/run_split.h"
#include "train/settings.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

Run run_of_set(const RunSet& set, const SetRun& one, const DataSet& data, const std::optional<Run>& first) {
  RunSetup setup = set.options.setup;
  setup.settings.insert(setup.settings.end(), one.settings.begin(), one.settings.end());
  return first ? make_run(setup, first->data) : make_run(setup, data);
}

void check_no_run(const RunsOptions& options) {
  // a first run without a configuration failed before it began
  for (const std::string& name : {std::string("config.json"), std::string("folds.json"),
                                  std::string("seeds.json"), set_runs(options).front().name + "/config.json"})
    FW_CHECK(!fs::exists(options.folder + "/" + name), "there is a run in ", options.folder,
             " already: resume it with --resume, or choose another folder");
}

Json spread_json(const std::vector<Spread>& spread, const std::string& kind) {
  Json json = Json::object();
  for (const Spread& of : spread)
    json[of.name] = {{"mean", of.mean},
                     {"deviation", of.deviation},
                     {"min", of.least},
                     {"max", of.largest},
                     {kind + "s", of.runs}};
  return json;
}

// {"summary": ..., "ensemble": ..., "seeds": [...]} of the last part, the other parts inside by their names
Json runs_json(const RunsResult& result, const RunsOptions& options) {
  const std::string kind = kind_of(options);
  const auto part_json = [&](const RunsPart& part) {
    Json json = {{"summary", spread_json(part.spread, kind)}};
    if (!part.together.metrics.empty())
      json[kind == "fold" ? "out_of_fold" : "ensemble"] = result_json(part.together);
    Json& list = json[kind + "s"] = Json::array();
    for (const PartResult& run : part.runs) list.push_back(result_json(run));
    return json;
  };
  Json json = part_json(result.parts.back());
  for (size_t i = 0; i + 1 < result.parts.size(); ++i)
    json[result.parts[i].name] = part_json(result.parts[i]);
  json["part"] = result.parts.back().name;
  return json;
}

// parts of the runs' results but the training part, which is of no interest beside others
std::vector<RunsPart> parts_of(const RunsOptions& options) {
  std::vector<RunsPart> parts;
  for (const SetRun& one : set_runs(options)) {
    const RunResult run = read_result(options.folder + "/" + one.name);
    for (const PartResult& part : run.parts) {
      if (part.name == "train" && run.parts.size() > 1) continue;
      auto known = std::find_if(parts.begin(), parts.end(),
                                [&](const RunsPart& other) { return other.name == part.name; });
      if (known == parts.end()) known = parts.insert(parts.end(), {.name = part.name});
      known->runs.push_back(part);
    }
  }
  for (RunsPart& part : parts) part.spread = spread_of(part.runs);
  return parts;
}

PartResult together(const RunSet& set, const TrainedModel& trained, const DataSet& data,
                    const std::string& part) {
  // folds have different validation parts
  if (set.options.folds > 0 && part != "test") return {};
  const PartSamples chosen = choose_part(set.options.folder, data, "", part);
  const Evaluation found = evaluate(trained, series_of(data, chosen), {.members = chosen.members});
  return {
      .name = chosen.name, .samples = static_cast<int64_t>(chosen.samples.size()), .metrics = found.metrics};
}

}  // namespace

std::vector<Spread> spread_of(const std::vector<PartResult>& runs) {
  std::vector<Spread> spread;
  for (const auto& [name, unused] : runs.front().metrics) {
    std::vector<double> values;
    for (const PartResult& run : runs) {
      const double value = metric(run.metrics, name);
      if (std::isfinite(value)) values.push_back(value);
    }
    if (values.empty()) continue;
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double squares = 0;
    for (const double x : values) squares += (x - mean) * (x - mean);
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    spread.push_back({.name = name,
                      .mean = mean,
                      .deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0,
                      .least = *least,
                      .largest = *largest,
                      .runs = static_cast<int64_t>(values.size())});
  }
  return spread;
}

RunsResult collect_runs(const RunSet& set, const DataSet& data) {
  if (set.options.folds > 0) calibrate_folds(set, data);
  // all runs have finished, or this is an error
  const TrainedModel trained = load_trained(set.options.folder);
  RunsResult result = {.parts = parts_of(set.options)};
  for (RunsPart& part : result.parts) part.together = together(set, trained, data, part.name);
  replace_file(set.options.folder + "/result.json", runs_json(result, set.options).dump(2) + "\n");
  write_runs_report(set, result, data, trained);
  return result;
}

RunsResult train_set(const RunSet& set, const DataSet& data, std::optional<Run> first) {
  const std::string& folder = set.options.folder;
  const TrainFunction train = set.options.train ? set.options.train : TrainFunction(train_run);
  const std::vector<SetRun> runs = set_runs(set.options);
  for (const SetRun& one : runs) {
    const std::string own = folder + "/" + one.name;
    if (has_finished(own)) continue;
    const bool begun = fs::exists(own + "/config.json");
    const Run run = begun ? open_run(own, data) : run_of_set(set, one, data, first);
    if (set.options.folds > 0) {
      first.reset();
    } else if (!first) {
      first = run;
    }
    try {
      const RunResult result =
          train(run, {.folder = own, .start = begun ? RunStart::Resume : RunStart::Fresh});
      if (result.end != RunEnd::Finished) return {.end = result.end};
    } catch (const std::exception&) {
      // settings with which no run can begin leave no file
      if (!fs::exists(folder + "/" + runs.front().name + "/config.json")) remove_run_set(set);
      throw;
    }
  }
  return collect_runs(set, data);
}

RunsResult train_runs(const RunsOptions& options, const DataSet& data) {
  check_runs(options);
  check_no_run(options);
  RunSet set = {options, fingerprint(data)};
  if (options.folds > 0) {
    const RunConfig config = config_of(options.setup);
    if (rule_of_folds(data, config.split, config.task, options.folds) == SplitRule::Rolling)
      set.options.setup.settings.push_back({"split.rule", name_of(SplitRule::Rolling)});
  }
  std::string& from = set.options.setup.initialise_from;
  if (!from.empty()) from = fs::absolute(from).string();
  // errors are found before anything is written
  Run first = run_of_set(set, set_runs(set.options).front(), data, std::nullopt);
  const Model model(first.config.model);
  if (!from.empty()) initialise_from(model, from);
  fs::create_directories(options.folder);
  const RunLock lock(options.folder);
  // another process may have been faster
  check_no_run(options);
  write_run_set(set);
  return train_set(set, data, std::move(first));
}

RunsResult resume_runs(const std::string& folder, const DataSet& data, const TrainFunction& train) {
  std::optional<RunSet> set = read_run_set(folder);
  if (!set) throw std::runtime_error(folder + " holds neither folds nor seeds");
  set->options.train = train;
  check_set_data(*set, data);
  const RunLock lock(folder);
  return train_set(*set, data);
}

std::string to_json(const RunsResult& result, const RunsOptions& options) {
  return runs_json(result, options).dump();
}

}  // namespace fastweights

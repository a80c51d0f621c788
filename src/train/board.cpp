#include "train/board.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "train/advice.h"
#include "train/clock.h"
#include "train/report_data.h"
#include "train/run_fields.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/settings.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;
using report::BoardRun;

// bounds of what a folder can make a page hold
constexpr size_t kMostRuns = 300, kMostEntries = 200'000, kMostPoints = 20'000;
constexpr int kDeepest = 8;
constexpr uintmax_t kLargestFile = 64 << 20;

bool is_own_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error));
}

// folders with a configuration, in the order of their names
struct Found {
  std::vector<std::string> runs;  // from the folder of the board
  std::vector<std::string> notes;
};
Found find_runs(const std::string& folder) {
  Found found;
  std::error_code error;
  size_t entries = 0;
  const auto skip = fs::directory_options::skip_permission_denied;
  if (is_own_file(fs::path(folder) / "config.json")) found.runs.emplace_back(".");
  // links to folders are not entered
  for (auto it = fs::recursive_directory_iterator(folder, skip, error),
            end = fs::recursive_directory_iterator();
       it != end && !error; it.increment(error)) {
    if (++entries > kMostEntries) {
      found.notes.push_back(message("only the first ", kMostEntries, " files and folders were searched"));
      break;
    }
    std::error_code unknown;
    if (!fs::is_directory(it->symlink_status(unknown))) continue;
    const bool run = is_own_file(it->path() / "config.json");
    if (run) found.runs.push_back(it->path().lexically_relative(folder).string());
    if (run || it.depth() >= kDeepest) it.disable_recursion_pending();
  }
  std::sort(found.runs.begin(), found.runs.end());
  if (found.runs.size() > kMostRuns) {
    found.notes.push_back(message("the first ", kMostRuns, " of ", found.runs.size(), " runs"));
    found.runs.resize(kMostRuns);
  }
  return found;
}

std::string state_of(const std::string& folder) {
  if (is_locked(folder)) return "running";
  if (is_own_file(folder + "/result.json")) return "finished";
  return is_own_file(folder + "/not_finite.safetensors") ? "failed" : "stopped";
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// a run with what its charts need
struct Entry {
  BoardRun run;
  std::vector<TrainEpoch> epochs;
  std::map<std::string, std::string> settings;
};

void read_run(Entry& entry, const std::string& folder) {
  for (const char* name : {"config.json", "environment.json", "metrics.jsonl", "result.json"}) {
    std::error_code error;
    const fs::path path = fs::path(folder) / name;
    FW_CHECK(!fs::exists(fs::symlink_status(path, error)) || is_own_file(path), name,
             " is not a regular file");
    const uintmax_t size = fs::file_size(path, error);
    FW_CHECK(error || size <= kLargestFile, name, " is too large to show");
  }
  BoardRun& run = entry.run;
  const RunConfig config = read_run_config(folder);
  run.state = state_of(folder);
  run.task = name_of(config.task.kind);
  run.model = text_at(environment_of(folder), "model");
  if (run.model.empty()) run.model = model_text(config.model);
  run.data = config.data.absolute_path.empty() ? config.data.path : config.data.absolute_path;
  run.metric = selection_metric(config);
  run.larger_is_better = larger_is_better(run.metric);
  for (const Setting& setting : settings_from_json(json_of(config)))
    entry.settings[setting.key] = shown_value(setting);
  entry.epochs = read_epochs(folder).epochs;
  run.epochs = static_cast<int64_t>(entry.epochs.size());
  for (const TrainEpoch& epoch : entry.epochs) {
    if (std::isfinite(epoch.seconds)) run.seconds += epoch.seconds;
    if (!epoch.best) continue;
    run.best_epoch = epoch.epoch;
    run.validation = known(metric(epoch.validation, run.metric));
  }
  if (run.state != "finished") return;
  const RunResult result = read_result(folder);
  run.best_epoch = result.best_epoch;
  for (const PartResult& part : result.parts) {
    if (part.name == "validation") run.validation = known(metric(part.metrics, run.metric));
    if (part.name == "test") run.test = known(metric(part.metrics, run.metric));
  }
}

Entry entry_of(const std::string& root, const std::string& name, BoardLinks links) {
  Entry entry = {.run = {.name = name, .state = "unreadable"}, .epochs = {}, .settings = {}};
  const std::string folder = root + "/" + name;
  try {
    read_run(entry, folder);
  } catch (const std::exception& error) {
    // of a run that is being written, or damaged: the others are shown
    entry.run.state = "unreadable";
    entry.run.note = printable(error.what());
  }
  if (!board_report(root, name).empty())
    entry.run.link = links == BoardLinks::Server ? "reports/" + name : name + "/report.html";
  return entry;
}

// keys with several values; keys that only other architectures have follow from theirs, and where data lie is
// a column of its own
std::vector<std::string> differing_keys(const std::vector<Entry>& entries) {
  std::map<std::string, std::set<std::string>> values;
  for (const Entry& entry : entries) {
    for (const auto& [key, value] : entry.settings) values[key].insert(value);
  }
  std::vector<std::string> keys;
  for (const auto& [key, found] : values) {
    if (key != "data.path" && found.size() > 1) keys.push_back(key);
  }
  return keys;
}

// a chart per quantity, a line per run, thinned to what a page can hold
std::vector<report::Curve> board_curves(const std::vector<Entry>& entries) {
  const size_t most = std::max<size_t>(10, kMostPoints / std::max<size_t>(entries.size(), 1));
  std::vector<report::Curve> charts;
  const auto add = [&](const std::string& title, const std::string& label, const std::string& name,
                       const TrainEpoch& epoch, double y) {
    auto chart = std::find_if(charts.begin(), charts.end(), [&](const auto& c) { return c.title == title; });
    if (chart == charts.end()) chart = charts.insert(charts.end(), {title, "epoch", label, 0, {}});
    if (chart->lines.empty() || chart->lines.back().name != name) chart->lines.push_back({.name = name});
    chart->lines.back().x.push_back(epoch.epoch);
    chart->lines.back().y.push_back(y);
  };
  for (const Entry& entry : entries) {
    const size_t every = entry.epochs.size() / most + 1;
    for (size_t i = 0; i < entry.epochs.size(); ++i) {
      const TrainEpoch& epoch = entry.epochs[i];
      if (i % every != 0 && i + 1 != entry.epochs.size() && !epoch.best) continue;
      const double chosen = metric(epoch.validation, entry.run.metric);
      if (std::isfinite(chosen))
        add("Validation: " + entry.run.metric, entry.run.metric, entry.run.name, epoch, chosen);
      for (const auto& [name, value] : epoch.validation) {
        if (is_loss(name) && name != entry.run.metric)
          add("Validation: " + name, name, entry.run.name, epoch, value);
      }
      add("Training loss", "loss", entry.run.name, epoch, epoch.loss);
    }
  }
  return charts;
}

}  // namespace

report::BoardData read_board(const std::string& folder, BoardLinks links) {
  if (!fs::is_directory(folder)) throw std::runtime_error(message(printable(folder), ": no such folder"));
  const Found found = find_runs(folder);
  std::vector<Entry> entries;
  for (const std::string& name : found.runs) entries.push_back(entry_of(folder, name, links));
  report::BoardData board = {.title = fs::weakly_canonical(folder).filename().string(),
                             .written = utc_now("%Y-%m-%d %H:%M:%S UTC"),
                             .live = links == BoardLinks::Server,
                             .notes = found.notes,
                             .keys = differing_keys(entries),
                             .curves = board_curves(entries)};
  for (Entry& entry : entries) {
    for (const std::string& key : board.keys) {
      if (entry.settings.contains(key)) entry.run.settings.emplace_back(key, entry.settings[key]);
    }
    board.runs.push_back(std::move(entry.run));
  }
  return board;
}

std::string board_report(const std::string& folder, const std::string& name) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return "";
  const fs::path wanted = (root / name / "report.html").lexically_normal(),
                 real = fs::canonical(wanted, error);
  // links anywhere on the way, and steps upwards, make the two differ or leave the folder
  const fs::path inside = wanted.lexically_relative(root);
  if (error || real != wanted || inside.empty() || *inside.begin() == "..") return "";
  const bool run = is_own_file(wanted) && is_own_file(wanted.parent_path() / "config.json");
  return run ? wanted.string() : "";
}

}  // namespace fastweights

#include "train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "train/ensemble.h"
#include "train/fit.h"
#include "train/run_fields.h"
#include "train/run_set.h"
#include "train/run_split.h"

namespace fastweights {
namespace {

// FNV-1a
class Hash {
 public:
  void add(const void* bytes, size_t count) {
    const auto* p = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < count; ++i) hash_ = (hash_ ^ p[i]) * 1099511628211ULL;
  }
  void add(const std::vector<int64_t>& list) { add(list.data(), list.size() * sizeof(int64_t)); }
  std::string text() const { return message(std::hex, hash_); }

 private:
  uint64_t hash_ = 1469598103934665603ULL;
};

std::string fingerprint(const Split& parts) {
  Hash hash;
  for (const std::vector<int64_t>* part : {&parts.train, &parts.validation, &parts.test}) {
    const auto size = static_cast<int64_t>(part->size());
    hash.add(&size, sizeof size);
    hash.add(*part);
  }
  for (const Window& window : parts.windows) hash.add({window.sample, window.first, window.last});
  return hash.text();
}

// data.json
struct KnownData {
  std::string fingerprint, split;
};

KnownData known_data(const std::string& folder) {
  return read_json_file(folder + "/data.json", [](const Json& json) {
    // runs of an earlier version have no fingerprint of the split
    return KnownData{json.at("fingerprint").get<std::string>(),
                     json.contains("split") ? json.at("split").get<std::string>() : ""};
  });
}

void check_fingerprint(const std::string& folder, const std::string& now) {
  const std::string before = known_data(folder).fingerprint;
  if (before == now) return;
  throw std::runtime_error(
      message("the data have changed since ", folder, " began: they were ", before, ", they are ", now));
}

// an error if the file that lists the parts has changed
void check_split(const std::string& folder, const Split& parts, const SplitConfig& config) {
  const std::string known = known_data(folder).split;
  if (known.empty() || known == fingerprint(parts)) return;
  throw std::runtime_error(message("the split has changed since ", folder, " began",
                                   config.indices.empty() ? "" : "; " + config.indices + " has changed"));
}

bool has_part(const DataSet& data, Part part) {
  return std::find(data.parts.begin(), data.parts.end(), part) != data.parts.end();
}

std::vector<int64_t> all_samples(const DataSet& data) {
  std::vector<int64_t> all(static_cast<size_t>(data.samples()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

// whether a path is where the data of a run were read from
bool is_source(const DataConfig& source, const std::string& path) {
  return source.path == path ||
         (!source.absolute_path.empty() && source.absolute_path == absolute_path(path));
}

// of the run's own data as it divided them, of other data by the automatic rule
Split parts_for(const std::string& folder, const DataSet& data, bool own) {
  if (!own) return split_data(data, {});
  const SplitConfig config = read_run_config(folder).split;
  Split parts = split_data(data, config);
  check_split(folder, parts, config);
  return parts;
}

PartSamples whole_set(const DataSet& data) { return {"all", all_samples(data)}; }

PartSamples part_named(const std::string& name, const Split& parts) {
  FW_CHECK(name == "train" || name == "validation" || name == "test" || name == "all", "unknown part '", name,
           "'; expected train, validation, test or all");
  PartSamples part = {.name = name};
  for (const auto& [own, samples] :
       {std::pair("train", &parts.train), std::pair("validation", &parts.validation),
        std::pair("test", &parts.test)}) {
    if (name == "all" || name == own)
      part.samples.insert(part.samples.end(), samples->begin(), samples->end());
  }
  std::sort(part.samples.begin(), part.samples.end());
  if (parts.windows.empty()) return part;
  for (const int64_t i : part.samples) part.windows.push_back(parts.windows[static_cast<size_t>(i)]);
  return part;
}

// Of folds and the data that they were trained on: the series or windows of all their tests, in the order of
// the data.
std::optional<PartSamples> out_of_fold(const std::string& run, const DataSet& data) {
  const std::vector<PartSamples> parts = fold_tests(run, data);
  if (parts.empty()) return std::nullopt;
  struct Tested {
    Window window;
    int64_t sample = 0, member = 0;
  };
  std::vector<Tested> tests;
  bool windows = false;
  for (size_t m = 0; m < parts.size(); ++m) {
    const PartSamples& part = parts[m];
    windows = !part.windows.empty();
    for (size_t i = 0; i < part.samples.size(); ++i) {
      const Window whole = {part.samples[i], 0, 0};
      tests.push_back({windows ? part.windows[i] : whole, part.samples[i], static_cast<int64_t>(m)});
    }
  }
  std::sort(tests.begin(), tests.end(), [](const Tested& a, const Tested& b) {
    return std::pair(a.window.sample, a.window.first) < std::pair(b.window.sample, b.window.first);
  });
  const auto is_tested_once = [&](int64_t b) { return tests[static_cast<size_t>(b)].sample == b; };
  const std::vector<int64_t> all = all_samples(data);
  if (!windows && (tests.size() != all.size() || !std::all_of(all.begin(), all.end(), is_tested_once)))
    throw std::runtime_error(run +
                             ": a series is in the test part of no fold; config.json of a fold has changed");
  PartSamples part = {.name = "out-of-fold"};
  for (const Tested& test : tests) {
    part.samples.push_back(windows ? static_cast<int64_t>(part.samples.size()) : test.sample);
    part.members.push_back(test.member);
    if (windows) part.windows.push_back(test.window);
  }
  return part;
}

Run reopened(const std::string& folder, const DataSet& data, const Preparation* preparation) {
  const RunConfig config = read_run_config(folder);
  check_fingerprint(folder, fingerprint(data));
  Run run = {.config = config, .data = divide(config, data, preparation)};
  check_split(folder, run.data.split, config.split);
  use_plain_data(config.model, run.data.preparation);
  return run;
}

}  // namespace

std::string fingerprint(const DataSet& data) {
  Hash hash;
  hash.add(data.offsets);
  hash.add(data.labels);
  hash.add(data.step_labels);
  // large sets: a sample of the values
  for (const std::vector<double>* list : {&data.values, &data.times, &data.statics, &data.targets}) {
    const size_t step = list->size() / 100000 + 1;
    for (size_t i = 0; i < list->size(); i += step) hash.add(&(*list)[i], sizeof(double));
  }
  return message(data.samples(), " series, ", data.rows(), " rows, ", hash.text());
}

RunData divide(const RunConfig& config, const DataSet& given, const Preparation* preparation) {
  FW_CHECK(is_utf8(config.data.path),
           "[train] the path of the data must be UTF-8 to be stored in the run, got '",
           printable(config.data.path), "'; rename the file");
  RunData out = {.fingerprint = fingerprint(given), .task = config.task};
  out.task.kind = task_kind(given, config.task);
  const SplitPlan plan = plan_split(given, config.split, out.task);
  out.task = plan.task;
  out.split_config = plan.split;
  out.split = split_data(given, plan.split);
  out.split_note = split_note(given, out.split, plan, config.split.rule);
  const Split& parts = out.split;
  const bool texts = !given.head.channel_texts.empty() || !given.head.static_texts.empty();
  DataSet own;
  if (!parts.windows.empty()) own = cut_series(given, parts.windows);
  const DataSet& divided = parts.windows.empty() ? given : own;
  if (texts) own = with_texts_of(divided, parts.train);
  const DataSet& data = texts ? own : divided;
  out.head = data.head;
  FW_CHECK(!parts.train.empty(), "[split] no series of '", data.head.name,
           "' is left to train on: ", parts.validation.size(), " are for validation and ", parts.test.size(),
           " for the test", parts.rule == SplitRule::Grouped ? "; there are too few groups" : "");
  out.preparation = preparation ? *preparation : fit_preparation(data, parts.train, config.prepare, out.task);
  out.preparation.window = parts.windows.empty() ? 0 : out.split_config.window;
  out.train = prepare(data, parts.train, out.preparation);
  out.validation = prepare(data, parts.validation, out.preparation);
  out.test = prepare(data, parts.test, out.preparation);
  return out;
}

void write_run_data(const std::string& folder, const RunData& data) {
  const Json json = {{"fingerprint", data.fingerprint}, {"split", fingerprint(data.split)}};
  replace_file(folder + "/data.json", json.dump() + "\n");
}

void check_run_data(const std::string& folder, const Run& run) {
  check_fingerprint(folder, run.data.fingerprint);
  check_split(folder, run.data.split, run.config.split);
}

Run open_run(const std::string& folder, const DataSet& data) { return reopened(folder, data, nullptr); }

Run open_run(const std::string& folder, const DataSet& data, const Preparation& preparation) {
  return reopened(folder, data, &preparation);
}

RunConfig read_run_config(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/config.json"))
    throw std::runtime_error(message(folder, " is not the folder of a run: it has no config.json"));
  return read_json_file(folder + "/config.json", [](Json json) {
    // runs of an earlier version: model time was time
    if (json.contains("prepare") && json["prepare"].is_object() && !json["prepare"].contains("usual_gaps"))
      json["prepare"]["usual_gaps"] = 0;
    // and models predicted values, not differences
    if (json.contains("prepare") && json["prepare"].is_object() && !json["prepare"].contains("first_guess"))
      json["prepare"]["first_guess"] = "none";
    // nor were outputs calibrated
    if (json.contains("training") && json["training"].is_object()) {
      Json& training = json["training"];
      if (!training.contains("calibration")) training["calibration"] = "none";
      if (!training.contains("interval")) training["interval"] = 0;
    }
    return run_config_of(json);
  });
}

std::string run_folder(const std::string& path) {
  namespace fs = std::filesystem;
  if (const std::vector<std::string> members = member_folders(path); !members.empty()) return members.front();
  if (fs::is_directory(path)) return path;
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const bool model = fs::path(path).filename() == "model.safetensors" && fs::exists(folder + "/config.json");
  return model ? folder : "";
}

std::vector<PartSamples> fold_tests(const std::string& run, const DataSet& data) {
  const std::optional<RunSet> set = read_run_set(run);
  if (!set || set->options.folds == 0 || set->fingerprint != fingerprint(data)) return {};
  std::vector<PartSamples> parts;
  for (const std::string& folder : member_folders(run))
    parts.push_back(part_named("test", parts_for(folder, data, /*own=*/true)));
  return parts;
}

std::vector<int64_t> out_of_fold_members(const std::string& run, const DataSet& data) {
  std::optional<PartSamples> tested = out_of_fold(run, data);
  return tested && tested->windows.empty() ? std::move(tested->members) : std::vector<int64_t>{};
}

DataSet series_of(const DataSet& data, const PartSamples& part) {
  return part.windows.empty() ? select_series(data, part.samples) : cut_series(data, part.windows);
}

std::string absolute_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  const std::string whole = fs::weakly_canonical(path, error).string();
  // config.json must be UTF-8
  return error || !is_utf8(whole) ? "" : whole;
}

PartSamples choose_part(const std::string& run, const DataSet& data, const std::string& path,
                        const std::string& name) {
  const std::string folder = run_folder(run);
  if (std::optional<PartSamples> tested = out_of_fold(run, data)) {
    if (name == "all") return whole_set(data);
    FW_CHECK(name.empty() || name == "test", "the folds of ", run, " have different ", name,
             " parts; evaluate one of them, such as ", folder);
    return *std::move(tested);
  }
  // whole series need no split
  if (name == "all" && (folder.empty() || !divides_time(read_run_config(folder).split.rule)))
    return whole_set(data);
  const bool own = !folder.empty() && known_data(folder).fingerprint == fingerprint(data);
  if (name == "all") return own ? part_named(name, parts_for(folder, data, own)) : whole_set(data);
  FW_CHECK(own || folder.empty() || !is_source(read_run_config(folder).data, path), path,
           " has changed since ", folder,
           " was trained on it, so its parts are unknown; --part all uses all series");
  if (name.empty() && !own && !has_part(data, Part::Test)) return whole_set(data);
  PartSamples chosen = part_named(name.empty() ? "test" : name, parts_for(folder, data, own));
  FW_CHECK(!chosen.samples.empty(), "there are no series for ", chosen.name, " in ", data.head.name,
           "; --part all uses all of them");
  return chosen;
}

}  // namespace fastweights

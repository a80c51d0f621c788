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
  out.split = split_data(given, config.split);
  const Split& parts = out.split;
  const bool texts = !given.head.channel_texts.empty() || !given.head.static_texts.empty();
  const DataSet seen = texts ? with_texts_of(given, parts.train) : DataSet{};
  const DataSet& data = texts ? seen : given;
  out.head = data.head;
  FW_CHECK(!parts.train.empty(), "[split] no series of '", data.head.name,
           "' is left to train on: ", parts.validation.size(), " are for validation and ", parts.test.size(),
           " for the test", parts.rule == SplitRule::Grouped ? "; there are too few groups" : "");
  out.preparation = preparation ? *preparation : fit_preparation(data, parts.train, config.prepare, out.task);
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

std::vector<Split> fold_parts(const std::string& run, const DataSet& data) {
  const std::optional<RunSet> set = read_run_set(run);
  if (!set || set->options.folds == 0 || set->fingerprint != fingerprint(data)) return {};
  std::vector<Split> parts;
  for (const std::string& folder : member_folders(run))
    parts.push_back(parts_for(folder, data, /*own=*/true));
  return parts;
}

std::vector<int64_t> out_of_fold_members(const std::string& run, const DataSet& data) {
  const std::vector<Split> parts = fold_parts(run, data);
  if (parts.empty()) return {};
  std::vector<int64_t> members(static_cast<size_t>(data.samples()), -1);
  for (size_t m = 0; m < parts.size(); ++m) {
    for (const int64_t b : parts[m].test) members[static_cast<size_t>(b)] = static_cast<int64_t>(m);
  }
  if (std::find(members.begin(), members.end(), -1) != members.end())
    throw std::runtime_error(run +
                             ": a series is in the test part of no fold; config.json of a fold has changed");
  return members;
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
  if (name == "all") return {name, all_samples(data)};
  if (std::vector<int64_t> members = out_of_fold_members(run, data); !members.empty()) {
    FW_CHECK(name.empty() || name == "test", "the folds of ", run, " have different ", name,
             " parts; evaluate one of them, such as ", run_folder(run));
    return {"out-of-fold", all_samples(data), std::move(members)};
  }
  const std::string folder = run_folder(run);
  const bool own = !folder.empty() && known_data(folder).fingerprint == fingerprint(data);
  FW_CHECK(own || folder.empty() || !is_source(read_run_config(folder).data, path), path,
           " has changed since ", folder,
           " was trained on it, so its parts are unknown; --part all uses all series");
  if (name.empty() && !own && !has_part(data, Part::Test)) return {"all", all_samples(data)};
  const Split parts = parts_for(folder, data, own);
  PartSamples chosen = {name.empty() ? "test" : name, {}};
  FW_CHECK(chosen.name == "train" || chosen.name == "validation" || chosen.name == "test", "unknown part '",
           chosen.name, "'; expected train, validation, test or all");
  chosen.samples = chosen.name == "train"        ? parts.train
                   : chosen.name == "validation" ? parts.validation
                                                 : parts.test;
  FW_CHECK(!chosen.samples.empty(), "there are no series for ", chosen.name, " in ", data.head.name,
           "; --part all uses all of them");
  return chosen;
}

}  // namespace fastweights

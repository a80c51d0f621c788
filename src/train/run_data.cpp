#include "train/run_data.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "train/fit.h"
#include "train/run_fields.h"

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
  use_data_time(config.model, run.data.preparation);
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

RunData divide(const RunConfig& config, const DataSet& data, const Preparation* preparation) {
  FW_CHECK(is_utf8(config.data.path),
           "[train] the path of the data must be UTF-8 to be stored in the run, got '",
           printable(config.data.path), "'; rename the file");
  RunData out = {.head = data.head, .fingerprint = fingerprint(data), .task = config.task};
  out.task.kind = task_kind(data, config.task);
  out.split = split_data(data, config.split);
  const Split& parts = out.split;
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
    throw std::runtime_error(message(folder, " is not the folder of a run: there is no config.json in it"));
  return read_json_file(folder + "/config.json", [](Json json) {
    // runs of an earlier version: model time was time
    if (json.contains("prepare") && json["prepare"].is_object() && !json["prepare"].contains("usual_gaps"))
      json["prepare"]["usual_gaps"] = 0;
    return run_config_of(json);
  });
}

std::string run_folder(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::is_directory(path)) return path;
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const bool model = fs::path(path).filename() == "model.safetensors" && fs::exists(folder + "/config.json");
  return model ? folder : "";
}

PartSamples choose_part(const std::string& run, const DataSet& data, const std::string& path,
                        const std::string& name) {
  if (name == "all") return {name, all_samples(data)};
  const std::string folder = run_folder(run);
  const bool own = !folder.empty() && known_data(folder).fingerprint == fingerprint(data);
  FW_CHECK(own || folder.empty() || read_run_config(folder).data.path != path, path, " has changed since ",
           folder, " was trained on it, so its parts are unknown; --part all uses all series");
  if (name.empty() && !own && !has_part(data, Part::Test)) return {"all", all_samples(data)};
  const Split parts = parts_for(folder, data, own);
  PartSamples chosen = {name.empty() ? "test" : name, {}};
  FW_CHECK(chosen.name == "train" || chosen.name == "validation" || chosen.name == "test",
           "there is no part '", chosen.name, "'; there are train, validation, test and all");
  chosen.samples = chosen.name == "train"        ? parts.train
                   : chosen.name == "validation" ? parts.validation
                                                 : parts.test;
  FW_CHECK(!chosen.samples.empty(), "there are no series for ", chosen.name, " in ", data.head.name,
           "; --part all uses all of them");
  return chosen;
}

}  // namespace fastweights

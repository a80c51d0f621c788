#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "fastweights/run.h"
#include "train/run_data.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

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

Json known_data(const std::string& folder) { return parse_json(read_file(folder + "/data.json")); }

}  // namespace

std::string fingerprint(const DataSet& data) {
  Hash hash;
  hash.add(data.offsets);
  hash.add(data.labels);
  hash.add(data.step_labels);
  // of large sets some values
  for (const std::vector<double>* list : {&data.values, &data.times, &data.statics, &data.targets}) {
    const size_t step = list->size() / 100000 + 1;
    for (size_t i = 0; i < list->size(); i += step) hash.add(&(*list)[i], sizeof(double));
  }
  return message(data.samples(), " series, ", data.rows(), " rows, ", hash.text());
}

void write_run_data(const std::string& folder, const DataSet& data, const SplitConfig& config) {
  const Json json = {{"fingerprint", fingerprint(data)}, {"split", fingerprint(split_data(data, config))}};
  replace_file(folder + "/data.json", json.dump() + "\n");
}

bool is_data_of(const std::string& folder, const DataSet& data) {
  return known_data(folder).at("fingerprint").get<std::string>() == fingerprint(data);
}

Split split_of(const std::string& folder, const DataSet& data) {
  const Json known = known_data(folder);
  const std::string before = known.at("fingerprint").get<std::string>();
  if (before != fingerprint(data))
    throw std::runtime_error(message("the data have changed since ", folder, " began: they were ", before,
                                     ", they are ", fingerprint(data)));
  const SplitConfig config = read_run_config(folder).split;
  Split parts = split_data(data, config);
  // runs of an earlier version did not write it down
  if (known.contains("split") && known.at("split").get<std::string>() != fingerprint(parts))
    throw std::runtime_error(
        message("the split has changed since ", folder, " began",
                config.indices.empty() ? "" : "; " + config.indices + " is another file than then"));
  return parts;
}

std::string run_folder(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::is_directory(path)) return path;
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const bool model = fs::path(path).filename() == "model.safetensors" && fs::exists(folder + "/config.json");
  return model ? folder : "";
}

}  // namespace fastweights

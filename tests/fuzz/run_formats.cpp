#include "base/files.h"
#include "data/cache.h"
#include "fastweights/model_config.h"
#include "fastweights/run.h"
#include "fastweights/tensor.h"
#include "fastweights/train.h"
#include "formats.h"
#include "train/run_files.h"

/// What a run's folder contains. These readers need LibTorch.

namespace fuzz {
namespace {

using namespace fastweights;

void read_config(std::string_view bytes) {
  const ModelConfig config = config_from_json(std::string(bytes));
  require(config_from_json(to_json(config)) == config);
  check_config(config);
}

void read_run_config(std::string_view bytes) {
  const std::string text = to_json(run_config_from_json(std::string(bytes)));
  require(to_json(run_config_from_json(text)) == text);
}

// --config
void read_settings_file(std::string_view bytes) {
  const Settings settings = read_settings(write_scratch("settings.json", bytes));
  const std::string text = to_json(with_settings({}, settings));
  require(to_json(run_config_from_json(text)) == text);
}

void read_folds_file(std::string_view bytes) {
  write_scratch("folds/folds.json", bytes);
  const std::optional<RunsOptions> folds = read_runs((scratch_folder() / "folds").string());
  require(folds && folds->folds >= 2);
  with_settings({}, folds->setup.settings);
}

// metrics.jsonl and result.json
void read_run(std::string_view bytes) {
  const auto files = parts(bytes, 2);
  write_scratch("run/metrics.jsonl", files[0]);
  write_scratch("run/result.json", files[1]);
  const std::string folder = (scratch_folder() / "run").string();
  const size_t kept = keep_epochs(folder, 3).epochs.size();
  require(read_epochs(folder).epochs.size() == kept);
  if (!files[1].empty()) read_result(folder);
}

void read_model(std::string_view bytes) { load_trained(write_scratch("model.safetensors", bytes)); }

void read_tensors(std::string_view bytes) {
  const NamedTensors file = load_safetensors(write_scratch("tensors.safetensors", bytes));
  const std::string again = (scratch_folder() / "again.safetensors").string();
  save_safetensors(again, file);
  require(load_safetensors(again).tensors.size() == file.tensors.size());
}

// three bytes per change of a valid cache: offset and value
void read_cache(std::string_view bytes) {
  static const std::string kWhole = [] {
    const std::string file = (scratch_folder() / "whole").string();
    data::save_prepared(file, read_data("spirals:samples=2"), "key");
    return read_file(file);
  }();
  std::string changed = kWhole;
  for (size_t i = 0; i + 2 < bytes.size(); i += 3) {
    const auto byte = [&](size_t j) { return static_cast<size_t>(static_cast<unsigned char>(bytes[j])); };
    changed[(byte(i) << 8 | byte(i + 1)) % changed.size()] = bytes[i + 2];
  }
  const auto found = data::load_prepared(write_scratch("cache", changed), "key");
  require(!found || found->values.size() == found->times.size() * found->head.channels.size());
}

}  // namespace

const std::vector<Format>& run_formats() {
  static const std::vector<Format> kFormats = {{"config", read_config},
                                               {"run-config", read_run_config},
                                               {"run", read_run},
                                               {"model", read_model},
                                               {"tensors", read_tensors},
                                               {"cache", read_cache},
                                               {"settings", read_settings_file},
                                               {"folds", read_folds_file}};
  return kFormats;
}

}  // namespace fuzz

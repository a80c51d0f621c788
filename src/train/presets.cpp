#include "base/error.h"
#include "fastweights/run.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

struct Preset {
  const char* name;
  Settings sizes;  // keys of a model
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = {
      {"small", {{"hidden_size", "32"}, {"heads", "8"}, {"feed_forward_size", "64"}}},
      {"standard", {}},
      {"large", {{"hidden_size", "128"}, {"heads", "32"}, {"feed_forward_size", "256"}}}};
  return kPresets;
}

}  // namespace

Settings preset_settings(const std::string& preset, const std::string& model) {
  if (preset.empty()) return {};
  std::string known;
  for (const Preset& one : presets()) {
    known += (known.empty() ? "" : ", ") + std::string(one.name);
    if (one.name != preset) continue;
    // sizes that the architecture has
    const Json own = json_of(named_model(model, {}));
    Settings settings;
    for (const auto& [key, value] : one.sizes) {
      if (own.contains(key)) settings.push_back({"model." + key, value});
    }
    return settings;
  }
  FW_CHECK(false, "unknown preset '", preset, "'; expected one of ", known);
}

std::vector<std::pair<std::string, std::string>> model_summary(const ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> summary = {{"architecture", config.architecture.name()}};
  const Json keys = json_of(config);
  const auto add = [&](const char* label, const char* key) {
    const Json::json_pointer pointer(key);
    if (!keys.contains(pointer)) return;
    const Json& value = keys.at(pointer);
    summary.emplace_back(label, value.is_string() ? value.get<std::string>() : value.dump());
  };
  add("rule", "/rule");
  add("drive", "/drive");
  add("method", "/solver/method");
  add("heads", "/heads");
  add("layers", "/layers");
  add("control", "/control/kind");
  add("hidden size", "/hidden_size");
  return summary;
}

}  // namespace fastweights

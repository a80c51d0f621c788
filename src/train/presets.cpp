#include "fastweights/error.h"
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
    // sizes that the model's defaults set
    const Json plain = json_of(ModelConfig{}), own = json_of(named_model(model, 1, 0, 1));
    Settings settings;
    for (const auto& [key, value] : one.sizes) {
      if (plain.at(key) != own.at(key)) settings.push_back({"model." + key, value});
    }
    return settings;
  }
  FW_CHECK(false, "there is no preset '", preset, "'; there are ", known);
}

std::vector<std::pair<std::string, std::string>> model_summary(const ModelConfig& c) {
  std::vector<std::pair<std::string, std::string>> summary = {{"system", name_of(c.system)}};
  if (c.system == System::FastWeights) {
    summary.insert(summary.end(), {{"rule", c.rule},
                                   {"drive", name_of(c.drive)},
                                   {"method", c.solver.method},
                                   {"heads", message(c.heads)},
                                   {"layers", message(c.layers)}});
  }
  summary.insert(summary.end(),
                 {{"control", name_of(c.control.kind)}, {"hidden size", message(c.hidden_size)}});
  return summary;
}

}  // namespace fastweights

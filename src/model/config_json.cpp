#include "model/config_fields.h"

namespace fastweights {

std::string to_json(const ModelConfig& config) {
  try {
    return json_of(config).dump(2);
  } catch (const Json::type_error&) {
    FW_CHECK(false, "[config] rule '", shown_json(config.rule), "' is not UTF-8 text");
  }
}

ModelConfig config_from_json(const std::string& text) { return read_fields(parse_json(text), ModelConfig{}); }

ModelConfig with_setting(const ModelConfig& config, const std::string& key, const std::string& value) {
  return read_fields(json_setting(key, value), config);
}

bool ModelConfig::operator==(const ModelConfig& other) const { return to_json(*this) == to_json(other); }

}  // namespace fastweights

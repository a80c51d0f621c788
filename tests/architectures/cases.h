#pragma once

#include <nlohmann/json.hpp>

#include "fastweights/model.h"
#include "support/support.h"

/// Small models of every name, and series to give to them.

namespace fastweights::testing {

inline constexpr int64_t kBaselineChannels = 3, kBaselineOutputs = 2, kBaselineStatics = 2;

/// Sizes that differ from each other, in float64, without dropout.
inline ModelConfig small_baseline(const std::string& name, int64_t static_features = 0) {
  ModelConfig config = named_model(
      name, {.channels = kBaselineChannels, .static_features = static_features, .outputs = kBaselineOutputs});
  const auto set = [&](const char* key, const char* value) {
    try {
      const ModelConfig changed = with_setting(config, key, value);
      check_config(changed);
      config = changed;
    } catch (const std::invalid_argument&) {
      // nothing of the kind in this architecture
    }
  };
  // heads first: the hidden size must be a multiple of them
  set("heads", "2");
  set("hidden_size", "6");
  set("feed_forward_size", "7");
  if (static_features > 0) set("static_hidden_size", "5");
  set("field.hidden_size", "8");
  set("latent.size", "4");
  set("rows.known_channels", "1");
  set("control.window_increments", "2");
  return config;
}

/// The text at a key of the configuration, for example "/control/kind".
inline std::string text_at(const ModelConfig& config, const std::string& key) {
  return nlohmann::json::parse(to_json(config)).at(nlohmann::json::json_pointer(key)).get<std::string>();
}

/// Those that are trained by steps; fitted ones have tests of their own.
inline std::vector<std::string> trained_models() {
  std::vector<std::string> names = model_names();
  std::erase_if(names,
                [](const auto& name) { return named_model(name, {}).architecture.type().fit != nullptr; });
  return names;
}

/// All but fast weight programmers in continuous time.
inline std::vector<std::string> trained_baselines() {
  std::vector<std::string> names = trained_models();
  std::erase_if(names, [](const auto& name) {
    return named_model(name, {}).architecture.template get_if<FastWeights>() != nullptr;
  });
  return names;
}

inline std::string name_of_test(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

inline Model small_model_of(const ModelConfig& config) {
  return Model(config, {.seed = 5, .type = at::kDouble});
}

/// Series of 7, 4 and 9 irregular rows with missing values; the first channel is time. Some rows have nothing
/// but their time.
inline std::vector<std::pair<Tensor, Tensor>> some_samples() {
  std::vector<std::pair<Tensor, Tensor>> samples;
  for (const int64_t length : {7, 4, 9}) {
    const auto seed = static_cast<uint64_t>(length);
    const Tensor times = irregular_times(length, seed);
    Tensor values = with_missing(random({length, kBaselineChannels}, seed + 20), 0.3, seed + 40);
    values.select(1, 0).copy_(0.5 * (times - times[0]));
    samples.emplace_back(times, values);
  }
  samples[0].second[3].slice(0, 1).fill_(NAN);
  samples[2].second[5].slice(0, 1).fill_(NAN);
  return samples;
}

inline ModelInput input_of_samples(const std::vector<std::pair<Tensor, Tensor>>& samples,
                                   const Tensor& statics = {}) {
  std::vector<Tensor> times, values;
  for (const auto& [t, x] : samples) {
    times.push_back(t);
    values.push_back(x);
  }
  ModelInput input = {.series = ragged(times, values)};
  input.static_features = statics;
  return input;
}

}  // namespace fastweights::testing

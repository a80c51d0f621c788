#pragma once

#include "fastweights/model.h"
#include "model/programmer_config.h"
#include "support/support.h"

/// A small model to give bad input to, and what it says.

namespace fastweights::testing {

inline constexpr int64_t kChannels = 3;

inline ProgrammerConfig small_config() {
  ProgrammerConfig config;
  config.channels = kChannels;
  config.outputs = 2;
  config.hidden_size = 10;
  config.heads = 2;
  config.feed_forward_size = 7;
  return config;
}

inline ProgrammerConfig with(const std::vector<std::pair<std::string, std::string>>& settings) {
  ProgrammerConfig config = small_config();
  for (const auto& [key, value] : settings) config = ProgrammerConfig(with_setting(config, key, value));
  return config;
}

// two series of 6 and 4 points
inline RaggedSeries some_series() {
  return ragged({irregular_times(6, 1), irregular_times(4, 2)},
                {random({6, kChannels}, 3), random({4, kChannels}, 4)});
}

inline Model small_model(const ModelConfig& config = small_config()) {
  return Model(config, {.type = at::kDouble});
}

inline std::string refusal(const ModelInput& input, const ModelConfig& config = small_config()) {
  return error_message([&] { small_model(config).forward(input); });
}

}  // namespace fastweights::testing

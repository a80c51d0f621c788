#pragma once

#include <string>

namespace fastweights {

/// The page of a training run: one HTML file that needs nothing else. README.md describes the JSON,
/// version 1. Throws std::invalid_argument, naming the key, where the JSON lacks something or the lengths of
/// lists disagree.
std::string report_page(const std::string& json);

}  // namespace fastweights

#pragma once

#include <nlohmann/json.hpp>

namespace fastweights {

using ReportJson = nlohmann::ordered_json;

/// Throws std::invalid_argument, naming the key, unless the page can draw all that is there.
void check_report(const ReportJson& report);

}  // namespace fastweights

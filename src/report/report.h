#pragma once

#include <string>

#include "report/report_data.h"

namespace fastweights::report {

/// report.json, version 1; README.md describes it.
std::string to_json(ReportData data);

/// One HTML file that needs nothing else, from the JSON of a report.
std::string page(const std::string& title, const std::string& json);

}  // namespace fastweights::report

#pragma once

#include <string>

#include "report/board_data.h"

namespace fastweights::report {

/// report.json, version 1; README.md describes it.
std::string to_json(ReportData data);

/// One HTML file that needs nothing else, from the JSON of a report.
std::string page(const std::string& title, const std::string& json);

/// board.json, version 1, and its page: a file, or live, which asks its server for board.json again and
/// again.
std::string to_json(BoardData data);
enum class BoardPage { File, Live };
std::string board_page(const std::string& title, const std::string& json, BoardPage kind);

/// A model card in Markdown: the same facts in words.
std::string model_card(const ReportData& data);

}  // namespace fastweights::report

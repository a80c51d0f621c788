#pragma once

#include <string>

#include "report/board_data.h"

namespace fastweights {

/// Where the links of a board lead.
enum class BoardLinks { Files, Server };

/// All runs below a folder: folds and comparisons, too. Symbolic links are not followed. Files of runs may be
/// incomplete while they are written; a run that cannot be read has a row that says so.
report::BoardData read_board(const std::string& folder, BoardLinks links);

/// The report of a run that a board has found, by its name there; "" unless it is a file inside of the folder
/// that is reached without symbolic links.
std::string board_report(const std::string& folder, const std::string& name);

}  // namespace fastweights

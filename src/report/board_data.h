#pragma once

#include "report/report_data.h"

/// What the page of several runs shows; README.md describes it as JSON.

namespace fastweights::report {

struct BoardRun {
  std::string name = {};   ///< the folder, from that of the board
  std::string state = {};  ///< running, finished, stopped, failed or unreadable
  std::string note = {};   ///< why it is unreadable
  std::string task = {}, model = {}, data = {}, metric = {};  ///< model: the name it began with
  std::string link = {};                                      ///< to its report; empty: no report
  std::optional<double> validation = {}, test = {};           ///< of the metric, at the best epoch
  bool larger_is_better = true;
  int64_t best_epoch = 0, epochs = 0;
  double seconds = 0;
  Pairs settings = {};  ///< keys in which runs differ
};

struct BoardData {
  int64_t version = 1;
  std::string title = {}, written = {};
  bool live = false;  ///< whether the page reloads its data
  std::vector<std::string> notes = {};
  std::vector<std::string> keys = {};  ///< in which runs differ
  std::vector<BoardRun> runs = {};
  std::vector<Curve> curves = {};  ///< a line per run
};

}  // namespace fastweights::report

#pragma once

#include "commands.h"
#include "fastweights/run.h"

/// Options of all commands that read data.

namespace fastweights::cli {

struct DataOptions {
  std::string path;
  std::string data_dir;  ///< where relative paths are looked for, too
  std::string cache_dir;
  bool no_cache = false;
  bool skip_bad = false;
  DataConfig config;
  std::string speech = "mfcc";
};

/// `what` says what the data are for.
void add_data_options(CLI::App& command, DataOptions& options, const std::string& what);

/// What the options say, as a run keeps it.
DataConfig data_config(const DataOptions& options);

/// Reads with a progress line on a terminal, by way of the cache; lists what was left out on stderr.
DataSet read(const DataOptions& options, const DataConfig& config);

/// $FASTWEIGHTS_DATA, or ./data.
std::string default_data_dir();

}  // namespace fastweights::cli

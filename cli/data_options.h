#pragma once

#include "commands.h"
#include "fastweights/run.h"

/// Options of all commands that read data.

namespace fastweights::cli {

/// Empty where nothing was given.
struct DataOptions {
  std::string path;
  std::string data_dir;  ///< where relative paths are looked for, too
  std::string cache_dir;
  bool no_cache = false;
  bool skip_bad = false;
  std::string format, id, time, label, group, time_unit, speech;
  std::vector<std::string> statics, targets;
  Answers answers = Answers::Wanted;
};

/// `what` says what the data are for.
void add_data_options(CLI::App& command, DataOptions& options, const std::string& what);

/// What the options say, as a run keeps it; where they say nothing, it is as in `otherwise`.
DataConfig data_config(const DataOptions& options, const DataConfig& otherwise = {});

/// Data for a model that is there: tables have the same columns as those that it was trained on, which are
/// taken if no others are named.
DataConfig data_for_model(const DataOptions& options, const std::string& run, const Preparation& preparation);

/// Reads with a progress line on a terminal, by way of the cache; lists what was left out on stderr.
DataSet read(const DataOptions& options, const DataConfig& config);

/// Whether all outputs are numbers; otherwise says of which series they are not, and sets the exit status.
bool check_finite(const Predictions& predictions, const DataSet& data, Session& session);

/// Moves a model to the device of that name; auto leaves it on the CPU where a GPU cannot be used for it.
void move_to_device(Model& model, const std::string& name);

/// $FASTWEIGHTS_DATA, or ./data.
std::string default_data_dir();

}  // namespace fastweights::cli

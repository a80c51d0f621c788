#pragma once

#include "commands.h"
#include "fastweights/run.h"

/// Options of all commands that read data.

namespace fastweights::cli {

struct DataOptions {
  std::string path;      ///< empty: not given
  std::string data_dir;  ///< relative paths are also searched here
  std::string cache_dir;
  bool no_cache = false;
  bool quiet = false;  ///< no notes, which the log of a run has, too
  LabelColumns label_columns = LabelColumns::Required;
  /// One for each reading option on the command line: sets its field.
  std::vector<std::function<void(ReadOptions&)>> changes;
};

/// `what` describes the positional argument.
void add_data_options(CLI::App& command, DataOptions& options, const std::string& what);

/// The defaults with everything that was given on the command line.
DataConfig data_config(const DataOptions& options, const DataConfig& defaults = {});

/// Data for a trained model: columns not given on the command line are those of its training data.
DataConfig data_for_model(const DataOptions& options, const std::string& run, const Preparation& preparation);

/// Reads through the cache with a progress line on a terminal; lists skipped files and notes on stderr.
DataSet read(const DataOptions& options, const DataConfig& config);

/// Whether all outputs are numbers; otherwise says of which series they are not, and sets the exit status.
bool check_finite(const Predictions& predictions, const DataSet& data, Session& session);

/// Notes on stderr, without empty ones, unless the command is quiet.
void print_notes(const DataOptions& options, std::vector<std::string> notes);

/// Moves a model, or all of an ensemble, to the device of that name; with "auto" a model stays on the CPU if
/// no GPU can run it.
void move_to_device(TrainedModel& trained, const std::string& name);

/// $FASTWEIGHTS_DATA, or ./data.
std::string default_data_dir();

}  // namespace fastweights::cli

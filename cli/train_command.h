#pragma once

#include "data_options.h"

/// Options of 'train', which 'compare' shares, and one run with progress.

namespace fastweights::cli {

struct TrainCommand {
  DataOptions data;
  std::string out, model, preset, config_file, resume, from;
  std::vector<std::string> settings;
  std::string epochs, batch_size, learning_rate, seed, seeds, task, split, memory_limit;
  std::string device = "auto";
  int64_t folds = 0;
  bool intensity = false, json = false, tf32 = false, tensorboard = false;

  /// Whether it prints text.
  bool verbose() const { return !json && !data.quiet; }
};

/// Options that 'train' and 'compare' share: settings, training, device and verbosity.
void add_run_options(CLI::App& app, TrainCommand& command);
/// Ctrl-C stops a run after its step, so that it can be resumed.
void handle_interrupts();

/// Model, data and settings: the file of --config, then options, then --set. The preset is added where the
/// model is known.
RunSetup setup_of(const TrainCommand& command);

/// Trains with progress and prints the result. If the run does not finish, says so on stderr and sets the
/// exit status; `resume` is the folder that --resume takes then.
RunResult train_one(const TrainCommand& command, const Run& run, RunOptions options, const DataSet& data,
                    const std::string& resume, Session& session);

/// Folds or seeds, new or resumed.
void run_set(const TrainCommand& command, Session& session);
/// Those of --seeds; empty: not given. An error if the settings have a seed, too.
std::vector<int64_t> seeds_of(const TrainCommand& command);
/// A sentence about the spread between seeds, if the part is a small test part; otherwise empty.
std::string seeds_advice(const PartResult& part);

/// Writes the table of 'predict' for the data of a folder of folds, each series predicted by the model that
/// was not trained on it, to predictions.csv in the folder.
void write_out_of_fold(const std::string& folder, const DataSet& data, Session& session);

}  // namespace fastweights::cli

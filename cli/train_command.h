#pragma once

#include "data_options.h"

/// What 'train' was asked for, and one run of it; a cross-validation is several.

namespace fastweights::cli {

struct TrainCommand {
  DataOptions data;
  std::string out, model, preset, config_file, resume, from;
  std::vector<std::string> settings;
  std::string epochs, batch_size, learning_rate, seed, task, split, memory_limit;
  std::string device = "auto";
  int64_t folds = 0;
  bool intensity = false, json = false, quiet = false, tf32 = false;

  bool talks() const { return !json && !quiet; }
};

/// What 'train' and 'compare' share: settings, training, device and how much is printed.
void add_run_options(CLI::App& app, TrainCommand& command);
/// Ctrl-C ends a run after its step, and can be taken up again.
void handle_interrupts();

/// Preset, then file, then options, then --set, as JSON.
std::string settings_json(const TrainCommand& command);
/// What these say about data.
DataConfig data_settings(const TrainCommand& command);
std::string model_of(const TrainCommand& command);

RunConfig new_config(const std::string& model, const std::string& settings, const DataConfig& source,
                     const DataSet& data);

/// Trains with progress, and writes report and result of a run that has finished; otherwise says so on stderr
/// and sets the exit status. `again` is the folder that --resume wants.
RunEnd train_one(const TrainCommand& command, const std::string& folder, const RunConfig& config,
                 const DataSet& data, const std::string& from, const std::string& again, Session& session);

/// Whether a folder holds a cross-validation.
bool has_folds(const std::string& folder);

/// One run after another, each tested on another part; those that have finished are not done again.
void cross_validate(const TrainCommand& command, Session& session);

}  // namespace fastweights::cli

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fastweights/data.h"
#include "fastweights/trained_model.h"
#include "fastweights/trainer.h"

/// A training run in a folder of its own, from which it can be resumed.
///
///     const Run run = make_run({.model = "delta-cde", .settings = {{"training.epochs", "20"}}}, data);
///     const RunResult result = train_run(run, {.folder = "runs/first"});
///     const Predictions predictions = load_trained("runs/first").predict(new_data);
///
///     config.json         all settings                     metrics.jsonl   a line per epoch
///     environment.json    program, libraries, machine      log.txt         events and times of the phases
///     checkpoint.safetensors   state to resume from        model.safetensors   the best model
///     result.json         metrics of all parts             report.html, report.json
///     data.json           fingerprints of data and split   not_finite.safetensors   if training diverged
///     model_card.md       what the model is and does       events.out.tfevents   curves for TensorBoard

namespace fastweights {

struct DataConfig {
  std::string path = {};
  std::string absolute_path = {};  ///< of the same file or folder; see absolute_path()
  ReadOptions read = {};
};

struct RunConfig {
  DataConfig data = {};
  SplitConfig split = {};
  PrepareConfig prepare = {};
  TaskConfig task = {};
  ModelConfig model = {};
  TrainConfig training = {};
};

std::string to_json(const RunConfig& config);
RunConfig run_config_from_json(const std::string& text);

/// A key of RunConfig, dots leading into inner structures ("model.heads"), and its value as text: JSON, or a
/// name without quotes. Later settings of a list override earlier ones.
struct Setting {
  std::string key, value;
};
using Settings = std::vector<Setting>;

/// The keys of a JSON object in a file.
Settings read_settings(const std::string& path);
RunConfig with_settings(const RunConfig& config, const Settings& settings);

/// The sizes of a preset (small, standard, large), as far as the named model has these keys.
Settings preset_settings(const std::string& preset, const std::string& model);

/// Names and values of the main options of an architecture: rule, drive, method, sizes.
std::vector<std::pair<std::string, std::string>> model_summary(const ModelConfig& config);

/// The inputs of make_run().
struct RunSetup {
  std::string model = "delta-cde";  ///< one of model_names()
  std::string preset = {};          ///< sizes, see preset_settings()
  Settings settings = {};           ///< override preset and defaults
  DataConfig source = {};           ///< path and columns of the data; without it, commands need DATA
  /// A run or a model file to copy parameters from, see initialise_from(); empty: random parameters.
  std::string initialise_from = {};
};

/// A data set as runs use it: split once, scaled once by its training part, as tensors.
struct RunData {
  DataHead head = {};
  std::string fingerprint = {};  ///< see fingerprint()
  TaskConfig task = {};          ///< never Automatic
  Split split = {};
  SplitConfig split_config = {};  ///< of the split, with the windows of a split by time
  std::string split_note = {};    ///< how series are divided by time, or why they are not; or empty
  Preparation preparation = {};
  PreparedData train = {}, validation = {}, test = {};
};

/// Duration of a phase of a run, written to log.txt.
struct RunPhase {
  std::string name;
  double seconds = 0;
};

/// Everything that training needs, computed once.
struct Run {
  std::string model = {};  ///< the name it began with; empty: not known
  RunConfig config = {};
  RunData data = {};
  std::string initialise_from = {};
  std::vector<RunPhase> phases = {};  ///< before training
};

Run make_run(const RunSetup& setup, const DataSet& data);
/// From data that are already split and scaled: those of another run whose settings differ only in the
/// model.
Run make_run(const RunSetup& setup, const RunData& data);
/// From a complete configuration.
Run make_run(const RunConfig& config, const DataSet& data);
/// The run of a folder. An error if the data or the split differ from those it began with.
Run open_run(const std::string& folder, const DataSet& data);

struct RunEvents {
  std::function<void(const Trainer&, const TrainStep&)> step = {};
  std::function<void(const std::string&)> note = {};  ///< a line of the log
  std::function<bool()> stop = {};                    ///< called after each step
};

enum class RunStart { Fresh, Resume };
enum class RunEnd { Finished, Stopped, NotFinite };

struct RunOptions {
  std::string folder = {};
  RunStart start = RunStart::Fresh;
  RunEvents events = {};
  at::Device device = at::kCPU;  ///< not a property of the run, which may be resumed elsewhere
  std::string command = {};      ///< kept in environment.json, for the report; empty: unknown
  /// Writes events.out.tfevents for TensorBoard; a run that has this file continues it.
  bool tensorboard = false;
  TrainerOptions trainer = {};  ///< custom loss, optimiser and callbacks; TF32
};

struct PartResult {
  std::string name;  ///< train, validation or test
  int64_t samples = 0;
  Metrics metrics = {};
  ConfidenceIntervals intervals = {};  ///< of the metrics
  std::vector<MetricsGroup> groups = {};
  std::optional<Predictions> predictions = {};
};

struct RunResult {
  RunEnd end = RunEnd::Finished;
  std::string message = {};
  std::vector<PartResult> parts = {};
  int64_t best_epoch = 0;
  double threshold = 0.5;
  Calibration calibration = {};
  std::vector<TrainEpoch> epochs = {};
  std::optional<TrainedModel> trained = {};
};
std::string to_json(const RunResult& result);

/// Trains in a new folder, or resumes in an existing one; writes result, model and report.
RunResult train_run(const Run& run, const RunOptions& options);

/// Regenerates report.json, report.html and model_card.md of a finished run, or the report of finished folds
/// or seeds. `series`: ids to show first.
void write_report(const std::string& folder, const DataSet& data,
                  const std::vector<std::string>& series = {});

RunConfig read_run_config(const std::string& folder);
/// The folder of a run: the path itself, or the folder of its model.safetensors; "" if it is neither. Of
/// folds or seeds: the folder of the first.
std::string run_folder(const std::string& path);
/// The absolute path of a file or folder; "" if it does not exist, or if its name is not UTF-8.
std::string absolute_path(const std::string& path);
/// Changes with nearly every change of the data: of large sets it covers a sample of the values.
std::string fingerprint(const DataSet& data);

/// Series of a data set to evaluate a run on: "train", "validation", "test" or "all". An empty name stands
/// for the test part of the data of the run; for other data, for their test part if they have one, or all.
/// `path` is where the data were read from. An error if the run was trained on other contents of that path.
/// The test part of folds is every series, or the windows of all their tests, predicted out-of-fold.
struct PartSamples {
  std::string name;
  std::vector<int64_t> samples = {};  ///< of the data, or of the windows of the split
  std::vector<int64_t> members = {};  ///< PredictOptions::members
  std::vector<Window> windows = {};   ///< these samples, if they are windows
};
PartSamples choose_part(const std::string& run, const DataSet& data, const std::string& path,
                        const std::string& name = {});
/// The series or windows of a part.
DataSet series_of(const DataSet& data, const PartSamples& part);
/// Of a folder of folds and the data that they were trained on: the index of the fold that tests each series;
/// otherwise, or if the folds divide series by time, empty.
std::vector<int64_t> out_of_fold_members(const std::string& run, const DataSet& data);

}  // namespace fastweights

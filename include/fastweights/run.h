#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fastweights/read.h"
#include "fastweights/split.h"
#include "fastweights/train.h"

/// A training run: everything it was made of in one folder, from which it can be taken up again.
///
///     config.json         all settings                     metrics.jsonl   a line per epoch
///     environment.json    program, libraries, machine      log.txt         what happened when
///     checkpoint.safetensors   to go on from               model.safetensors   the best model
///     result.json         metrics of all parts             report.html, report.json
///     data.json           how the data are recognised      not_finite.safetensors   if training broke off

namespace fastweights {

struct DataConfig {
  std::string path = {}, format = {}, time_unit = {};
  std::string id = "id", time = "time", label = "label", group = {};  ///< columns of tables
  std::vector<std::string> statics = {}, targets = {};
  SpeechForm speech = SpeechForm::Mfcc;
  bool skip_bad = false;
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

/// A system with its choices under a short name. Of fast weight programmers it is a rule (hebb, oja, delta)
/// and what drives it: -ode reads x(t), -cde makes keys of x'(t) as well, -rde reads log-signatures of
/// windows.
struct KnownModel {
  std::string name, sentence, reference;
};
const std::vector<KnownModel>& known_models();
const std::vector<std::string>& model_names();

/// The configuration that a name stands for, on data of median gap 1 and of a length that needs no windows.
ModelConfig named_model(const std::string& name, int64_t channels, int64_t static_features, int64_t outputs);

/// A configuration for these data from what was asked for: `settings` is JSON with any of RunConfig's keys,
/// applied to the defaults of the model of that name.
RunConfig make_run_config(const std::string& model_name, const std::string& settings, const DataSet& data);

/// Settings with one more: dots of the key are inner objects, a value that is no JSON is a name.
std::string with_setting(const std::string& settings, const std::string& key, const std::string& value);

/// A model with all that is needed to use it.
struct TrainedModel {
  Model model;
  Preparation preparation;
  TaskConfig task;
  double threshold = 0.5;  ///< of two classes
};
void save_trained(const std::string& path, const TrainedModel& trained);
/// A run's folder, or its model.safetensors.
TrainedModel load_trained(const std::string& path);

struct RunEvents {
  std::function<void(const Trainer&, const TrainStep&)> step = {};
  std::function<void(const std::string&)> note = {};  ///< a line of the log
  std::function<bool()> stop = {};                    ///< asked after each step
};

enum class RunStart { Fresh, Resume };
enum class RunEnd { Finished, Stopped, NotFinite };

struct RunResult {
  RunEnd end = RunEnd::Finished;
  std::string message = {};
  std::vector<std::pair<std::string, Metrics>> parts = {};  ///< train, validation, test
  int64_t best_epoch = 0;
  double threshold = 0.5;
};

/// Parameters of a run or its model.safetensors, as far as names and sizes are the same (a head for other
/// classes stays as it is); or all of those of a safetensors file with the names of the published code. Says
/// what was taken.
std::string begin_with(const Model& model, const std::string& path);

/// Trains in a new folder, or goes on in one that is there. `start_from`: see begin_with(); empty: random
/// parameters. The device is no property of a run: it may go on elsewhere.
RunResult train_run(const std::string& folder, const RunConfig& config, const DataSet& data, RunStart start,
                    const RunEvents& events = {}, const std::string& start_from = {},
                    const at::Device& device = at::kCPU, const TrainerOptions& options = {});

/// Enough of data to notice that they are others than before.
std::string fingerprint(const DataSet& data);
/// Whether these are the data that a run was trained on, wherever they lie.
bool is_data_of(const std::string& folder, const DataSet& data);
/// The parts into which a run divided its data; an error if these data, or the parts, are others.
Split split_of(const std::string& folder, const DataSet& data);
/// The folder of a run: the path itself, or the folder of its model.safetensors; "" if it is neither.
std::string run_folder(const std::string& path);

/// The configuration of a folder.
RunConfig read_run_config(const std::string& folder);

/// Writes report.json and report.html of a run anew.
void write_report(const std::string& folder, const DataSet& data);

/// Replaces a file as a whole or not at all, also if the machine stops meanwhile.
void replace_file(const std::string& path, const std::string& contents);
std::string file_text(const std::string& path);

}  // namespace fastweights

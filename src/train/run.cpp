#include "fastweights/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "fastweights/environment.h"
#include "fastweights/error.h"
#include "tensor/autograd.h"
#include "train/clock.h"
#include "train/run_data.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// seconds between two checkpoints, at least; an interrupted run does again what came after the last
constexpr double kBetweenCheckpoints = 5;

Json metrics_json(const Metrics& metrics) {
  Json out = Json::object();
  for (const auto& [name, value] : metrics) out[name] = std::isfinite(value) ? Json(value) : Json();
  return out;
}

Json environment_json() {
  const Environment e = environment();
  return {{"fastweights", e.version}, {"compiler", e.compiler},
          {"libtorch", e.libtorch},   {"blas", e.blas},
          {"threads", e.threads},     {"processor", e.processor},
          {"cores", e.cores},         {"instructions", e.instruction_set}};
}

class Folder {
 public:
  Folder(std::string path, const RunEvents& events) : path_(std::move(path)), events_(events) {}

  std::string operator/(const char* name) const { return path_ + "/" + name; }

  void note(const std::string& line) const {
    std::ofstream log(*this / "log.txt", std::ios::app);
    log << utc_now("%Y-%m-%d %H:%M:%S UTC") << "  " << line << "\n";
    if (events_.note) events_.note(line);
  }

 private:
  std::string path_;
  const RunEvents& events_;
};

// lines of epochs that the checkpoint has seen; what came after is done again
void cut_metrics(const std::string& path, int64_t epochs) {
  std::ifstream in(path);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.value("epoch", int64_t{0}) <= epochs) kept += line + "\n";
  }
  replace_file(path, kept);
}

void append_line(const std::string& path, const Json& json) {
  std::ofstream out(path, std::ios::app);
  out << json.dump() << "\n" << std::flush;
  if (!out) throw std::runtime_error("cannot write " + path + "; is the disk full?");
}

Json epoch_json(const TrainEpoch& e) {
  return {{"epoch", e.epoch},     {"loss", e.loss}, {"learning_rate", e.learning_rate},
          {"seconds", e.seconds}, {"best", e.best}, {"validation", metrics_json(e.validation)}};
}

struct Prepared {
  Preparation preparation;
  PreparedData train, validation, test;
};

Prepared prepare_all(const RunConfig& config, const DataSet& data) {
  const Split parts = split(data, config.split);
  const DataSet train = subset(data, parts.train);
  Prepared out;
  out.preparation = fit_preparation(train, config.prepare);
  out.train = prepare(train, out.preparation);
  out.validation = prepare(subset(data, parts.validation), out.preparation);
  out.test = prepare(subset(data, parts.test), out.preparation);
  return out;
}

// what somebody needs to see the trouble again: the model before the step, and the batch
std::string save_reproducer(const Folder& folder, const Trainer& trainer, const Prepared& data,
                            const TaskConfig& task, const TrainStep& step) {
  NamedTensors file = trainer.state();
  const Batch batch = make_batch(data.train, data.preparation, task, step.batch, 0);
  file.tensors["batch.values"] = batch.input.series.values;
  file.tensors["batch.times"] = batch.input.series.times;
  file.tensors["batch.offsets"] = batch.input.series.offsets;
  file.tensors["batch.samples"] = at::tensor(step.batch, at::kLong);
  file.metadata["trouble"] = step.trouble;
  const std::string path = folder / "not_finite.safetensors";
  save_safetensors(path, file);
  // the sample that the solver names is one of the batch
  std::string ids;
  for (size_t i = 0; i < step.batch.size() && i < 4; ++i)
    ids += (i ? ", " : "") + data.train.ids[static_cast<size_t>(step.batch[i])];
  if (step.batch.size() > 4) ids += ", ...";
  return message("epoch ", step.epoch, ", step ", step.step, ": ", step.trouble, ". The batch holds ", ids,
                 ". The state before the step and the batch are in ", path,
                 "; try a smaller learning rate, clipping of gradients, or prepare.clip");
}

double chosen_threshold(const Model& model, const Prepared& data, const RunConfig& config) {
  const bool two =
      data.preparation.classes.size() == 2 && output_count(config.task.kind, data.preparation) == 1;
  const bool classes =
      config.task.kind == TaskKind::Classification || config.task.kind == TaskKind::StepClassification;
  if (!two || !classes || config.training.threshold_for == "none" || data.validation.samples() == 0)
    return 0.5;
  const Predictions p = predict(model, data.validation, data.preparation, config.task);
  if (!p.classes.defined()) return 0.5;
  return best_threshold(class_probabilities(p.outputs), p.classes, config.training.threshold_for);
}

RunResult finish(const Folder& folder, Trainer& trainer, const Prepared& data, const RunConfig& config) {
  trainer.restore_best();
  RunResult result = {.best_epoch = trainer.best_epoch()};
  result.threshold = chosen_threshold(trainer.model(), data, config);
  Json json = {{"best_epoch", result.best_epoch}, {"threshold", result.threshold}};
  for (const auto& [name, part] :
       {std::pair("train", &data.train), {"validation", &data.validation}, {"test", &data.test}}) {
    if (part->samples() == 0) continue;
    const Predictions p = predict(trainer.model(), *part, data.preparation, config.task);
    result.parts.emplace_back(name, evaluate(p, config.task, data.preparation));
    json[name] = metrics_json(result.parts.back().second);
    json[name]["samples"] = part->samples();
  }
  save_trained(folder / "model.safetensors",
               {trainer.model(), data.preparation, config.task, result.threshold});
  replace_file(folder / "result.json", json.dump(2) + "\n");
  return result;
}

void open_fresh(const std::string& path, const RunConfig& config, const DataSet& data,
                const Trainer& trainer) {
  if (fs::exists(path + "/config.json"))
    throw std::runtime_error(
        message("there is a run in ", path, " already: go on with --resume, or choose another folder"));
  fs::create_directories(path);
  replace_file(path + "/environment.json", environment_json().dump(2) + "\n");
  write_run_data(path, data, config.split);
  replace_file(path + "/metrics.jsonl", "");
  // whatever the parameters are to begin with, a run that is killed at once goes on from them
  save_safetensors(path + "/checkpoint.safetensors", trainer.state());
  // last: a folder with a configuration is a run
  replace_file(path + "/config.json", to_json(config) + "\n");
}

void open_again(const std::string& path, Trainer& trainer, const DataSet& data) {
  split_of(path, data);
  const std::string checkpoint = path + "/checkpoint.safetensors";
  const NamedTensors state = load_safetensors(checkpoint);
  try {
    trainer.set_state(state);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(message(checkpoint, ": ", error.what()));
  }
  cut_metrics(path + "/metrics.jsonl", trainer.epochs_done());
}

// whether there is a class or a number to compare with
bool knows_anything(const PreparedData& data, const Preparation& preparation, const TaskConfig& task) {
  constexpr int64_t kAtOnce = 64;
  for (int64_t first = 0; first < data.samples(); first += kAtOnce) {
    std::vector<int64_t> samples(static_cast<size_t>(std::min(kAtOnce, data.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    const Batch batch = make_batch(data, preparation, task, samples, 1);
    if (batch.targets.defined() && batch.targets.isfinite().any().item<bool>()) return true;
    if (batch.classes.defined() && batch.classes.ge(0).any().item<bool>()) return true;
  }
  return false;
}

// of a step on the longest series
std::string memory_message(const Model& model, const Prepared& data, const TaskConfig& task,
                           int64_t batch_size) {
  const int64_t* offsets = data.train.offsets.data_ptr<int64_t>();
  std::vector<int64_t> longest(static_cast<size_t>(data.train.samples()));
  std::iota(longest.begin(), longest.end(), int64_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&](int64_t a, int64_t b) {
    return offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b];
  });
  longest.resize(static_cast<size_t>(std::min(batch_size, data.train.samples())));
  const std::optional<MemoryPlan> plan =
      model.plan(make_batch(data.train, data.preparation, task, longest, 1).input);
  return plan ? "memory of a training step: " + plan->message()
              : "computed by the definition, without a plan";
}

}  // namespace

RunConfig read_run_config(const std::string& folder) {
  if (!fs::exists(folder + "/config.json"))
    throw std::runtime_error(message(folder, " is not the folder of a run: there is no config.json in it"));
  return run_config_from_json(file_text(folder + "/config.json"));
}

RunResult train_run(const std::string& path, const RunConfig& config, const DataSet& data, RunStart start,
                    const RunEvents& events, const std::string& start_from, const at::Device& device,
                    const TrainerOptions& options) {
  const Folder folder(path, events);
  const Prepared prepared = prepare_all(config, data);
  FW_CHECK(knows_anything(prepared.train, prepared.preparation, config.task), "[train] '", data.head.name,
           "' has nothing to learn from: no value that is to be predicted is known in the training part");
  Model model(config.model, {.seed = static_cast<uint64_t>(config.training.seed), .device = device});
  const std::string taken = start_from.empty() ? "" : begin_with(model, start_from);
  Trainer trainer(model, {prepared.train, prepared.validation, prepared.preparation, config.task},
                  config.training, options);
  if (start == RunStart::Fresh) {
    open_fresh(path, config, data, trainer);
    folder.note(message("a new run: ", prepared.train.samples(), " series to train on, ",
                        prepared.validation.samples(), " for validation, ", prepared.test.samples(),
                        " for the test; ", model.parameter_count(), " parameters"));
    if (!taken.empty()) folder.note(taken);
  } else {
    open_again(path, trainer, data);
    folder.note(
        message("going on after ", trainer.epochs_done(), " of ", trainer.config().epochs, " epochs"));
  }
  folder.note(memory_message(model, prepared, config.task, trainer.config().batch_size));
  Clock::time_point saved = Clock::now();
  while (!trainer.finished()) {
    const TrainStep step = trainer.step();
    if (!step.trouble.empty()) {
      const std::string what = save_reproducer(folder, trainer, prepared, config.task, step);
      folder.note(what);
      return {.end = RunEnd::NotFinite, .message = what};
    }
    if (!step.note.empty()) folder.note(step.note);
    if (step.epoch_record) append_line(folder / "metrics.jsonl", epoch_json(*step.epoch_record));
    if (events.step) events.step(trainer, step);
    const bool stop = events.stop && events.stop();
    const bool due = std::chrono::duration<double>(Clock::now() - saved).count() > kBetweenCheckpoints;
    if (stop || due || trainer.finished()) {
      save_safetensors(folder / "checkpoint.safetensors", trainer.state());
      saved = Clock::now();
    }
    if (stop && !trainer.finished()) {
      folder.note(message("stopped in epoch ", step.epoch, " after step ", step.step));
      return {.end = RunEnd::Stopped};
    }
  }
  const RunResult result = finish(folder, trainer, prepared, config);
  folder.note(message("finished; the best epoch was ", result.best_epoch));
  return result;
}

}  // namespace fastweights

#include "fastweights/run.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "train/clock.h"
#include "train/event_file.h"
#include "train/first_guess.h"
#include "train/fit.h"
#include "train/model_time.h"
#include "train/report_data.h"
#include "train/run_data.h"
#include "train/run_files.h"
#include "train/run_lock.h"
#include "train/trained_file.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// least seconds between two checkpoints; a run that is killed repeats the steps since the last one
constexpr double kBetweenCheckpoints = 5;

// what reproduces the failure: the state before the step, and the batch
std::string save_reproducer(const RunFolder& folder, const Trainer& trainer, const RunData& data,
                            const TrainStep& step) {
  NamedTensors file = trainer.state();
  const Batch batch = make_batch(data.train, data.preparation, data.task, step.batch, 0);
  file.tensors["batch.values"] = batch.input.series.values;
  file.tensors["batch.times"] = batch.input.series.times;
  file.tensors["batch.offsets"] = batch.input.series.offsets;
  file.tensors["batch.samples"] = at::tensor(step.batch, at::kLong);
  file.metadata["reason"] = step.not_finite;
  const std::string path = folder / "not_finite.safetensors";
  save_safetensors(path, file);
  // the sample that the solver names is one of the batch
  std::string ids;
  for (size_t i = 0; i < step.batch.size() && i < 4; ++i)
    ids += (i ? ", " : "") + data.train.ids[static_cast<size_t>(step.batch[i])];
  if (step.batch.size() > 4) ids += ", ...";
  return message("epoch ", step.epoch, ", step ", step.step, ": ", step.not_finite, ". The batch holds ", ids,
                 ". The state before the step and the batch are in ", path,
                 "; try a smaller learning rate, clipping of gradients, or prepare.clip");
}

// as the model returns them
void predict_parts(RunResult& result, Trainer& trainer, const RunData& data) {
  const auto add = [&](const char* name, const PreparedData& part, const auto& predict_part) {
    if (part.samples() == 0) return;
    result.parts.push_back({.name = name, .samples = part.samples()});
    result.parts.back().predictions = predict_part();
  };
  add("train", data.train, [&] { return trainer.predict_training(); });
  add("validation", data.validation, [&] { return trainer.predict_validation(); });
  add("test", data.test, [&] { return predict(trainer.model(), data.test, data.preparation, data.task); });
}

std::string three_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

struct FitNotes {
  std::string log = {}, warning = {};
};

// what the validation part says about probabilities, intervals and the threshold
FitNotes fit_on_validation(TrainedModel& trained, const Predictions& validation, const Run& run,
                           int64_t epochs) {
  const RunData& data = run.data;
  const TrainConfig& config = run.config.training;
  FitNotes notes;
  if (is_classification(data.task.kind)) {
    const Tensor& labels =
        data.task.kind == TaskKind::StepClassification ? data.train.step_labels : data.train.labels;
    const Tensor counts = class_counts(labels, static_cast<int64_t>(data.preparation.classes.size()));
    trained.calibration = fit_calibration(validation, counts, {config.calibration, epochs});
    const auto loss = [&](const Predictions& p) {
      return metric(evaluate(p, data.task, data.preparation), "log_loss");
    };
    if (!trained.calibration.is_identity())
      notes.log = message("calibrated on validation: log loss ", three_digits(loss(validation)), " before, ",
                          three_digits(loss(trained.finished(validation))), " after, temperature ",
                          three_digits(1 / trained.calibration.scale));
  } else {
    trained.intervals = fit_intervals(validation, data.task, config.interval);
    const int64_t fewest = fewest_for_level(config.interval);
    if (trained.intervals.level > 0 && data.validation.samples() < fewest)
      notes.warning = message("prediction intervals of level ", three_digits(config.interval), " need ",
                              fewest, " validation series, there are ", data.validation.samples(),
                              ": they may contain fewer values");
  }
  trained.threshold = fit_threshold(trained.finished(validation), config.threshold_for);
  return notes;
}

// predictions of the best model, files, report
void finish(const RunFolder& folder, Trainer& trainer, const Run& run, RunResult& result) {
  Stopwatch watch;
  trainer.restore_best();
  result.best_epoch = trainer.best_epoch();
  predict_parts(result, trainer, run.data);
  folder.clock("final predictions", watch.lap());
  const Model model = trainer.model().device().is_cpu() ? trainer.model() : trainer.model().to(at::kCPU);
  result.trained = TrainedModel{model, run.data.preparation, run.data.task};
  TrainedModel& trained = *result.trained;
  for (const PartResult& part : result.parts) {
    if (part.name != "validation") continue;
    const FitNotes notes = fit_on_validation(trained, *part.predictions, run, trainer.epochs_done());
    if (!notes.log.empty()) folder.log(notes.log);
    if (!notes.warning.empty()) folder.note(notes.warning);
  }
  result.threshold = trained.threshold;
  result.calibration = trained.calibration;
  for (PartResult& part : result.parts) {
    part.predictions = trained.finished(std::move(*part.predictions));
    part.metrics = evaluate(*part.predictions, trained.task, trained.preparation);
    part.intervals = bootstrap(*part.predictions, trained.task, trained.preparation);
    part.groups = metrics_by_group(*part.predictions, trained.task, trained.preparation);
  }
  folder.clock("calibration and metrics", watch.lap());
  save_trained(folder / "model.safetensors", *result.trained);
  replace_file(folder / "result.json", to_json(result) + "\n");
  folder.clock("saving", watch.lap());
  folder.note(message("finished; the best epoch was ", result.best_epoch));
  write_report(folder.path(), run, result);
  folder.clock("report", watch.lap());
}

// with the settings of the run, which a damaged config.json is compared with
NamedTensors checkpoint_of(const Trainer& trainer, const RunConfig& config) {
  NamedTensors state = trainer.state();
  state.metadata["run"] = to_json(config);
  return state;
}

// all that is written at the end, before anything is trained: names and scales that a file cannot hold must
// not cost a training
void try_files(const Run& run, const Model& model) {
  check_trained({model, run.data.preparation, run.data.task});
  try {
    parse_json(to_json(run.config));
  } catch (const Json::exception& error) {
    FW_CHECK(is_utf8(run.config.data.path), "[train] the path '", printable(run.config.data.path),
             "' is not valid UTF-8, which config.json needs; rename the file or folder");
    FW_CHECK(false, "[train] the settings cannot be written: ", json_error(error));
  }
}

void open_fresh(const RunOptions& options, const Run& run, const Trainer& trainer) {
  const std::string& path = options.folder;
  if (fs::exists(path + "/config.json"))
    throw std::runtime_error(
        message("there is a run in ", path, " already: resume it with --resume, or choose another folder"));
  Json environment = environment_json();
  if (!options.command.empty()) environment["command"] = options.command;
  if (!run.model.empty()) environment["model"] = run.model;
  replace_file(path + "/environment.json", shown_dump(environment, 2) + "\n");
  write_run_data(path, run.data);
  replace_file(path + "/metrics.jsonl", "");
  // a run that is killed at once resumes from its initial parameters, whatever they came from
  save_safetensors(path + "/checkpoint.safetensors", checkpoint_of(trainer, run.config));
  // last: a folder with a configuration is a run
  replace_file(path + "/config.json", to_json(run.config) + "\n");
}

std::vector<TrainEpoch> open_again(const RunFolder& folder, const Run& run, Trainer& trainer) {
  const std::string checkpoint = folder / "checkpoint.safetensors";
  const NamedTensors state = load_safetensors(checkpoint);
  try {
    trainer.set_state(state);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(message(checkpoint, ": ", error.what()));
  }
  const auto settings = state.metadata.find("run");
  if (settings != state.metadata.end() && settings->second != to_json(run.config))
    folder.note("warning: config.json has changed since the run began");
  const EpochsFile kept = keep_epochs(folder.path(), trainer.epochs_done());
  if (!kept.warning().empty()) folder.note(kept.warning());
  return kept.epochs;
}

// whether any class or target is known
bool has_targets(const RunData& data) {
  constexpr int64_t kAtOnce = 64;
  for (int64_t first = 0; first < data.train.samples(); first += kAtOnce) {
    std::vector<int64_t> samples(static_cast<size_t>(std::min(kAtOnce, data.train.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    const Batch batch = make_batch(data.train, data.preparation, data.task, samples, 1);
    if (batch.targets.defined() && batch.targets.isfinite().any().item<bool>()) return true;
    if (batch.classes.defined() && batch.classes.ge(0).any().item<bool>()) return true;
  }
  return false;
}

// of a step on the longest series
std::string memory_message(const Model& model, const RunData& data, int64_t batch_size) {
  const int64_t* offsets = data.train.offsets.data_ptr<int64_t>();
  std::vector<int64_t> longest(static_cast<size_t>(data.train.samples()));
  std::iota(longest.begin(), longest.end(), int64_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&](int64_t a, int64_t b) {
    return offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b];
  });
  longest.resize(static_cast<size_t>(std::min(batch_size, data.train.samples())));
  const std::optional<MemoryPlan> plan =
      model.plan(make_batch(data.train, data.preparation, data.task, longest, 1).input);
  return plan ? "memory of a training step: " + plan->message()
              : "computed by the definition, without a plan";
}

void append_event(EventFile& file, const TrainEpoch& epoch) {
  EventFile::Scalars scalars = {{"loss/train", epoch.loss}, {"learning_rate", epoch.learning_rate}};
  for (const auto& [name, value] : epoch.validation) scalars.emplace_back("validation/" + name, value);
  file.append(epoch.epoch, static_cast<double>(std::time(nullptr)), scalars);
}

// with the epochs so far, if the run has or is to have one
std::optional<EventFile> open_events(const RunFolder& folder, const RunOptions& options,
                                     const RunResult& result) {
  const std::string path = folder / "events.out.tfevents";
  if (!options.tensorboard && !fs::exists(path)) return std::nullopt;
  EventFile file(path, result.epochs.empty() ? 0 : result.epochs.back().epoch);
  for (const TrainEpoch& epoch : result.epochs) {
    if (epoch.epoch > file.last_step()) append_event(file, epoch);
  }
  return file;
}

// what is done without validation or test part
std::vector<std::string> notes_on_parts(const RunData& data) {
  std::vector<std::string> notes;
  if (data.validation.samples() == 0)
    notes.push_back(
        "there is no validation part, for which there are too few series or none was asked for: the training "
        "loss selects the epoch, and probabilities and intervals are not fitted");
  if (data.test.samples() == 0)
    notes.push_back(
        message("there is no test part, for which there are too few series or none was asked for: results "
                "are those of "
                "the ",
                data.validation.samples() > 0 ? "validation" : "training", " part, which are too good"));
  return notes;
}

// epoch by epoch, until training ends or is stopped
void train(const RunFolder& folder, Trainer& trainer, const RunOptions& options, const Run& run,
           RunResult& result) {
  std::optional<EventFile> events = open_events(folder, options, result);
  Stopwatch watch;
  double since_checkpoint = 0;
  while (!trainer.finished()) {
    const TrainStep step = trainer.step();
    if (!step.not_finite.empty()) {
      result.end = RunEnd::NotFinite;
      result.message = save_reproducer(folder, trainer, run.data, step);
      folder.note(result.message);
      return;
    }
    if (!step.note.empty()) folder.note(step.note);
    if (step.epoch_record) {
      folder.append_epoch(*step.epoch_record);
      if (events) append_event(*events, *step.epoch_record);
      result.epochs.push_back(*step.epoch_record);
    }
    if (options.events.step) options.events.step(trainer, step);
    const bool stop = options.events.stop && options.events.stop();
    since_checkpoint += watch.lap();
    if (stop || since_checkpoint > kBetweenCheckpoints || trainer.finished()) {
      save_safetensors(folder / "checkpoint.safetensors", checkpoint_of(trainer, run.config));
      since_checkpoint = 0;
    }
    if (stop && !trainer.finished()) {
      result.end = RunEnd::Stopped;
      folder.note(message("stopped in epoch ", step.epoch, " after step ", step.step));
      return;
    }
  }
}

}  // namespace

RunResult train_run(const Run& run, const RunOptions& options) {
  Stopwatch watch;
  const RunFolder folder(options.folder, options.events);
  const RunData& data = run.data;
  FW_CHECK(has_targets(data), "[train] '", data.head.name,
           "' has nothing to learn from: no class or target is known in the training part");
  const Model model(run.config.model,
                    {.seed = static_cast<uint64_t>(run.config.training.seed), .device = options.device});
  const bool fresh = options.start == RunStart::Fresh;
  try_files(run, model);
  const std::string copied =
      fresh && !run.initialise_from.empty() ? initialise_from(model, run.initialise_from) : "";
  Trainer trainer(model, {data.train, data.validation, data.preparation, data.task}, run.config.training,
                  options.trainer);
  if (fresh) {
    fs::create_directories(options.folder);
  } else {
    check_run_data(options.folder, run);
  }
  const RunLock lock(options.folder);
  RunResult result;
  if (fresh) {
    open_fresh(options, run, trainer);
    folder.note(message("a new run: ", data.train.samples(),
                        data.split.windows.empty() ? " series" : " windows", " to train on, ",
                        data.validation.samples(), " for validation, ", data.test.samples(),
                        " for the test; ", model.parameter_count(), " parameters"));
    if (!data.split_note.empty()) folder.note(data.split_note);
    for (const std::string& note : notes_on_parts(data)) folder.note(note);
    for (const std::string& note : data.head.notes) folder.log(note);
    for (const std::string& file : data.head.skipped) folder.log("skipped: " + file);
    if (!copied.empty()) folder.note(copied);
    if (const std::string guess = guess_note(data.preparation); !guess.empty()) folder.note(guess);
    if (const std::string gaps = gap_note(run); !gaps.empty()) folder.note(gaps);
  } else {
    result.epochs = open_again(folder, run, trainer);
    folder.note(
        message("resuming after ", trainer.epochs_done(), " of ", trainer.config().epochs, " epochs"));
  }
  if (!is_fitted(run.config.model)) folder.note(memory_message(model, data, trainer.config().batch_size));
  for (const RunPhase& phase : run.phases) folder.clock(phase.name, phase.seconds);
  folder.clock("model", watch.lap());
  train(folder, trainer, options, run, result);
  folder.clock("epochs", watch.lap());
  if (result.end == RunEnd::Finished) finish(folder, trainer, run, result);
  return result;
}

}  // namespace fastweights

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "errors.h"
#include "fastweights/environment.h"
#include "fastweights/tensor.h"
#include "fastweights/train.h"
#include "progress.h"
#include "seed_list.h"
#include "train/advice.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

// for the parser of the command line
std::string seed_list_error(const std::string& text) {
  try {
    seed_list(text);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

// of the parts before their metrics
constexpr size_t kNameWidth = 11;

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int signal) {
  interrupted = 1;
  // a second one terminates the program
  std::signal(signal, SIG_DFL);
}

Style style_of(const TrainCommand& command) {
  return command.json ? Style::Json : command.data.quiet ? Style::Quiet : style_for_stdout();
}

// the file of --config, then options, then --set
Settings settings_of(const TrainCommand& command) {
  Settings settings = command.config_file.empty() ? Settings{} : read_settings(command.config_file);
  const std::pair<const char*, const std::string&> short_forms[] = {
      {"training.epochs", command.epochs},
      {"training.batch_size", command.batch_size},
      {"training.learning_rate", command.learning_rate},
      {"training.seed", command.seed},
      {"task.kind", command.task},
      {"split.rule", command.split},
      {"model.solver.memory_limit", command.memory_limit}};
  for (const auto& [key, value] : short_forms) {
    if (!value.empty()) settings.push_back({key, value});
  }
  if (command.intensity) settings.push_back({"prepare.intensity", "true"});
  for (const std::string& setting : command.settings) {
    const size_t equals = setting.find('=');
    FW_CHECK(equals != std::string::npos, "--set expects KEY=VALUE, got '", setting, "'");
    settings.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
  }
  return settings;
}

void print_result(const TrainCommand& command, const std::string& folder, const RunResult& result) {
  if (command.json) {
    std::printf("{\"run\": %s, \"best_epoch\": %lld, \"result\": %s}\n", shown_dump(folder).c_str(),
                static_cast<long long>(result.best_epoch), parse_json(to_json(result)).dump().c_str());
    return;
  }
  if (command.data.quiet) return;
  std::printf("\nbest epoch %lld\n", static_cast<long long>(result.best_epoch));
  for (const PartResult& part : result.parts) {
    std::string name = part.name;
    name.resize(std::max<size_t>(name.size(), kNameWidth), ' ');
    print_wrapped(name + " " + shown(part.metrics), kNameWidth + 1);
  }
  std::printf("\nmodel   %s/model.safetensors\nreport  %s/report.html\n", folder.c_str(), folder.c_str());
}

void print_plan(const Run& run, const DataSet& data, Progress& progress) {
  progress.note(message(data.head.name, " (", data.head.origin, "): ", data.samples(), " series, ",
                        data.rows(), " rows, ", data.channels(), " channels",
                        data.classes() > 0 ? message(", ", data.classes(), " classes") : ""));
  progress.note(task_note(data, run.config.task.kind));
  if (const std::string note = positive_note(data, run.config.task.kind); !note.empty()) progress.note(note);
  const ModelConfig& model = run.config.model;
  progress.note(message("model  ", shown(model_summary(model)), "  ", model.channels, " channels in, ",
                        model.outputs, " out"));
}

// an error if a folder holds a run or several
void check_unused(const std::string& folder) {
  FW_CHECK(!read_runs(folder), "there are runs in ", folder,
           " already: resume them with --resume, or choose another folder");
  FW_CHECK(!std::filesystem::exists(folder + "/config.json"), "there is a run in ", folder,
           " already: resume it with --resume, or choose another folder");
}

void run_one(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  const std::string folder = resume ? command.resume : command.out;
  RunSetup setup;
  if (resume) {
    setup.source = data_config(command.data, read_run_config(folder).data);
  } else {
    check_unused(folder);
    setup = setup_of(command);
  }
  // a GPU needs some tenths of a second to start, which pass while the data are read; what is wrong with it
  // is said when it is used
  const auto starting = std::async(std::launch::async, [&] { at::empty({1}, find_device(command.device)); });
  const auto start = std::chrono::steady_clock::now();
  const DataSet data = read(command.data, setup.source);
  const std::chrono::duration<double> reading = std::chrono::steady_clock::now() - start;
  Run run = resume ? open_run(folder, data) : make_run(setup, data);
  run.phases.insert(run.phases.begin(), {"reading", reading.count()});
  const RunOptions options = {.folder = folder, .start = resume ? RunStart::Resume : RunStart::Fresh};
  const RunResult result = train_one(command, run, options, data, folder, session);
  if (!command.verbose() || result.parts.empty()) return;
  const std::string advice = seeds_advice(result.parts.back());
  if (advice.empty()) return;
  std::printf("\n");
  print_wrapped(advice);
}

// settings of a new run, which --resume cannot change
bool has_settings(const TrainCommand& command) {
  return !command.out.empty() || !command.from.empty() || !command.model.empty() || command.folds != 0 ||
         !command.seeds.empty() || !command.preset.empty() || !settings_of(command).empty();
}

void run(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  FW_CHECK(resume || !command.out.empty(), "no folder for the run; use --out FOLDER");
  FW_CHECK(!resume || !has_settings(command),
           "--resume continues a run with its own settings; other settings need a new run, which --from can "
           "initialise with the parameters of this one");
  handle_interrupts();
  if (command.folds > 0 || !command.seeds.empty() || (resume && read_runs(command.resume))) {
    run_set(command, session);
  } else {
    run_one(command, session);
  }
}

// the GPU if there is one that can run this model, unless another device is requested
at::Device device_for(const TrainCommand& command, const RunConfig& config, Progress& progress) {
  const at::Device device = find_device(command.device);
  if (device.is_cpu()) return device;
  try {
    const Model model(config.model, {.device = device});
    model.check_device();
    progress.note(message("on ", environment().backends.back().detail));
    return device;
  } catch (const std::invalid_argument& refusal) {
    if (command.device != "auto") throw;
    progress.note(message("on the CPU: ", refusal.what()));
    return at::kCPU;
  }
}

}  // namespace

void handle_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

RunSetup setup_of(const TrainCommand& command) {
  RunSetup setup = {.preset = command.preset, .initialise_from = command.from};
  if (!command.model.empty()) setup.model = command.model;
  setup.settings = settings_of(command);
  Settings about_data = setup.settings;
  std::erase_if(about_data, [](const Setting& setting) { return setting.key.rfind("data", 0) != 0; });
  setup.source = data_config(command.data, with_settings({}, about_data).data);
  return setup;
}

RunResult train_one(const TrainCommand& command, const Run& run, RunOptions options, const DataSet& data,
                    const std::string& resume, Session& session) {
  Progress progress(style_of(command));
  print_plan(run, data, progress);
  options.events.step = [&](const Trainer& trainer, const TrainStep& step) { progress.step(trainer, step); };
  options.events.note = [&](const std::string& line) { progress.note(line); };
  options.events.stop = [] { return interrupted != 0; };
  options.device = device_for(command, run.config, progress);
  options.tensorboard = command.tensorboard;
  options.command = session.command_line;
  options.trainer.tf32 = command.tf32 ? Tf32::Yes : Tf32::No;
  RunResult result = within_memory("training", [&] { return train_run(run, options); });
  progress.end();
  if (result.end == RunEnd::Stopped) {
    std::fprintf(stderr, "stopped; resume with: fastweights train --resume %s\n", resume.c_str());
    session.exit_status = 130;
  } else if (result.end == RunEnd::NotFinite) {
    std::fprintf(stderr, "fastweights: %s\n", printable(result.message).c_str());
    session.exit_status = 3;
  } else {
    print_result(command, options.folder, result);
  }
  return result;
}

void add_run_options(CLI::App& app, TrainCommand& command) {
  app.add_option("--preset", command.preset,
                 "sizes of the model: small, standard or large; default: standard");
  app.add_option("--config", command.config_file, "JSON file with any keys of a run's config.json");
  app.add_option("--set", command.settings, "set any key: KEY=VALUE, such as model.heads=4; may be repeated")
      ->take_all();
  app.add_option("--epochs", command.epochs, "number of epochs; default: about 2,000 steps");
  app.add_option("--batch-size", command.batch_size,
                 "series per batch; default: a sixteenth of the series, 16 to 256");
  app.add_option("--learning-rate", command.learning_rate, "peak learning rate; default: 0.001");
  CLI::Option* seed =
      app.add_option("--seed", command.seed, "seed of parameters, batches and dropout; default: 1");
  app.add_option(
         "--seeds", command.seeds,
         "one run per seed with the same split, such as 1..5 or 1,2,7; shows the spread of the metrics")
      ->check(CLI::Validator(seed_list_error, ""))
      ->excludes(seed);
  app.add_option(
      "--task", command.task,
      "classification, regression, step_classification, forecast or imputation; default: by the labels and "
      "targets of the data");
  app.add_option(
      "--split", command.split,
      "given, random, stratified, grouped, folds, indices, or along the time of each series: time, "
      "rolling; default: automatic");
  app.add_flag("--intensity", command.intensity, "add channels that count the observations of each channel");
  app.add_option("--device", command.device, "cpu, cuda, or auto: cuda if it is usable; default: auto");
  app.add_flag("--tf32", command.tf32, "allow TF32 matrix products on a GPU: faster, 11-bit mantissa");
  app.add_option("--memory-limit", command.memory_limit,
                 "limit the memory of a training step, in bytes beyond the data");
  app.add_flag("--tensorboard", command.tensorboard,
               "also write the curves to events.out.tfevents in the folder of the run, for TensorBoard");
  app.add_flag("--json", command.json, "print a JSON object per epoch and one at the end");
  app.add_flag("--quiet,-q", command.data.quiet, "print nothing but errors; notes are in log.txt");
}

void add_train(CLI::App& program, Session& session) {
  auto command = std::make_shared<TrainCommand>();
  CLI::App* app = program.add_subcommand("train", "Train a model on time series");
  add_data_options(*app, command->data, "data to train on");
  app->add_option("--out,-o", command->out, "folder for the new run; must not contain one already");
  app->add_option("--model", command->model, "a name that 'fastweights models' lists; default: delta-cde");
  app->add_option(
         "--folds", command->folds,
         "number of cross-validation folds; prints the spread of the test metrics, and predicts each "
         "series by the model that was not trained on it; with --split time a rolling origin")
      ->check(CLI::Range(2, 1000));
  app->add_option(
      "--from", command->from,
      "copy initial parameters from a run, a model file, or a safetensors file of the published code");
  app->add_option("--resume", command->resume, "folder of an interrupted run, folds or seeds to continue");
  add_run_options(*app, *command);
  app->get_option("--folds")->excludes("--seeds");
  app->footer(
      "Examples:\n"
      "  fastweights train spirals --out runs/spirals --epochs 2\n"
      "  fastweights train table.csv --out runs/table --label-column outcome --epochs 2\n"
      "  fastweights train --resume runs/spirals\n"
      "  fastweights train spirals --out runs/seeds --seeds 1..3 --epochs 2\n"
      "Exit codes: 0 done, 1 error, 2 wrong command line, 3 a loss or gradient is not finite, 130 "
      "interrupted.");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli

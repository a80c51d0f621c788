#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fastweights/device.h"
#include "fastweights/environment.h"
#include "fastweights/error.h"
#include "progress.h"
#include "train_command.h"

namespace fastweights::cli {
namespace {

using Json = nlohmann::ordered_json;

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int signal) {
  interrupted = 1;
  // a second one ends the program at once
  std::signal(signal, SIG_DFL);
}

const std::vector<std::pair<std::string, std::string>>& presets() {
  static const std::vector<std::pair<std::string, std::string>> kPresets = {
      {"small", R"({"model": {"hidden_size": 32, "heads": 8, "feed_forward_size": 64}})"},
      {"standard", "{}"},
      {"large", R"({"model": {"hidden_size": 128, "heads": 32, "feed_forward_size": 256}})"}};
  return kPresets;
}

// sizes that the model has
Json preset_json(const std::string& name, const std::string& model) {
  if (name.empty()) return Json::object();
  std::string known;
  for (const auto& [key, text] : presets()) {
    if (key == name) {
      const Json plain = Json::parse(to_json(ModelConfig{})),
                 own = Json::parse(to_json(named_model(model, 1, 0, 1)));
      const Json preset = Json::parse(text);
      if (preset.empty()) return preset;
      Json kept = Json::object();
      for (const auto& [size, value] : preset.at("model").items()) {
        if (plain[size] != own[size]) kept[size] = value;
      }
      return Json{{"model", kept}};
    }
    known += (known.empty() ? "" : ", ") + key;
  }
  throw std::invalid_argument("there is no preset '" + name + "'; there are " + known);
}

Style style_of(const TrainCommand& command) {
  return command.json ? Style::Json : command.quiet ? Style::Quiet : style_for_stdout();
}

void print_result(const TrainCommand& command, const std::string& folder, const RunResult& result) {
  if (command.json) {
    std::printf("{\"run\": %s, \"best_epoch\": %lld, \"result\": %s}\n", Json(folder).dump().c_str(),
                static_cast<long long>(result.best_epoch),
                Json::parse(file_text(folder + "/result.json")).dump().c_str());
    return;
  }
  if (command.quiet) return;
  std::printf("\nbest epoch %lld\n", static_cast<long long>(result.best_epoch));
  for (const auto& [part, metrics] : result.parts)
    std::printf("%-11s %s\n", part.c_str(), shown(metrics).c_str());
  std::printf("\nmodel   %s/model.safetensors\nreport  %s/report.html\n", folder.c_str(), folder.c_str());
}

void print_plan(const RunConfig& config, const DataSet& data, Progress& progress) {
  progress.note(message(data.head.name, " (", data.head.origin, "): ", data.samples(), " series, ",
                        data.rows(), " rows, ", data.channels(), " channels",
                        data.classes() > 0 ? message(", ", data.classes(), " classes") : ""));
  const ModelConfig& model = config.model;
  const bool fast = model.system == System::FastWeights;
  progress.note(
      message("model ", fast ? model.rule : Json::parse(to_json(model)).at("system").get<std::string>(),
              ", hidden size ", model.hidden_size, ", ", fast ? message(model.heads, " heads, ") : "",
              model.channels, " channels in, ", model.outputs, " out"));
}

void run_one(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  const std::string folder = resume ? command.resume : command.out;
  FW_CHECK(resume || !has_folds(folder), "there are runs in ", folder,
           " already: go on with --resume, or choose another folder");
  const RunConfig known = resume ? read_run_config(folder) : RunConfig{};
  const DataConfig source = data_config(command.data, resume ? known.data : data_settings(command));
  const DataSet data = read(command.data, source);
  const RunConfig config =
      resume ? known : new_config(model_of(command), settings_json(command), source, data);
  FW_CHECK(resume || !std::filesystem::exists(folder + "/config.json"), "there is a run in ", folder,
           " already: go on with --resume, or choose another folder");
  train_one(command, folder, config, data, command.from, folder, session);
}

void run(const TrainCommand& command, Session& session) {
  const bool resume = !command.resume.empty();
  FW_CHECK(resume || !command.out.empty(), "say where the run goes: --out FOLDER");
  FW_CHECK(!resume || (command.out.empty() && command.from.empty() && command.model.empty() &&
                       command.folds == 0 && settings_json(command) == "{}"),
           "--resume goes on with a run as it began; other settings need a new run, which --from lets begin "
           "with its parameters");
  handle_interrupts();
  if (command.folds > 0 || (resume && has_folds(command.resume))) {
    cross_validate(command, session);
  } else {
    run_one(command, session);
  }
}

}  // namespace

void handle_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

std::string settings_json(const TrainCommand& command) {
  Json json = preset_json(command.preset, model_of(command));
  if (!command.config_file.empty()) {
    const Json given = Json::parse(file_text(command.config_file), nullptr, false);
    FW_CHECK(given.is_object(), command.config_file, ": this is not a JSON object { ... }");
    json.merge_patch(given);
  }
  std::string settings = json.dump();
  const std::pair<const char*, const std::string&> short_forms[] = {
      {"training.epochs", command.epochs},
      {"training.batch_size", command.batch_size},
      {"training.learning_rate", command.learning_rate},
      {"training.seed", command.seed},
      {"task.kind", command.task},
      {"split.rule", command.split},
      {"model.solver.memory_limit", command.memory_limit}};
  for (const auto& [key, value] : short_forms) {
    if (!value.empty()) settings = with_setting(settings, key, value);
  }
  if (command.intensity) settings = with_setting(settings, "prepare.intensity", "true");
  for (const std::string& setting : command.settings) {
    const size_t equals = setting.find('=');
    FW_CHECK(equals != std::string::npos, "--set wants KEY=VALUE, got '", setting, "'");
    settings = with_setting(settings, setting.substr(0, equals), setting.substr(equals + 1));
  }
  return settings;
}

DataConfig data_settings(const TrainCommand& command) {
  const Json settings = Json::parse(settings_json(command));
  if (!settings.contains("data")) return {};
  return run_config_from_json(Json{{"data", settings["data"]}}.dump()).data;
}

std::string model_of(const TrainCommand& command) {
  return command.model.empty() ? "delta-cde" : command.model;
}

RunConfig new_config(const std::string& model, const std::string& settings, const DataConfig& source,
                     const DataSet& data) {
  RunConfig config = make_run_config(model, settings, data);
  config.data = source;
  return config;
}

namespace {

// the GPU if there is one that can do this, unless somebody wants another
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

RunEnd train_one(const TrainCommand& command, const std::string& folder, const RunConfig& config,
                 const DataSet& data, const std::string& from, const std::string& again, Session& session) {
  Progress progress(style_of(command));
  print_plan(config, data, progress);
  RunEvents events;
  events.step = [&](const Trainer& trainer, const TrainStep& step) { progress.step(trainer, step); };
  events.note = [&](const std::string& line) { progress.note(line); };
  events.stop = [] { return interrupted != 0; };
  const bool known = std::filesystem::exists(folder + "/config.json");
  const RunResult result = train_run(folder, config, data, known ? RunStart::Resume : RunStart::Fresh, events,
                                     known ? "" : from, device_for(command, config, progress),
                                     {.tf32 = command.tf32 ? Tf32::Yes : Tf32::No});
  progress.end();
  if (result.end == RunEnd::Stopped) {
    std::fprintf(stderr, "stopped; go on with: fastweights train --resume %s\n", again.c_str());
    session.exit_status = 130;
  } else if (result.end == RunEnd::NotFinite) {
    std::fprintf(stderr, "fastweights: %s\n", result.message.c_str());
    session.exit_status = 3;
  } else {
    write_report(folder, data);
    print_result(command, folder, result);
  }
  return result.end;
}

void add_run_options(CLI::App& app, TrainCommand& command) {
  app.add_option("--preset", command.preset, "small, standard or large");
  app.add_option("--config", command.config_file, "JSON with any keys of a run's config.json");
  app.add_option("--set", command.settings, "KEY=VALUE for any key, such as model.heads=4; may be repeated")
      ->take_all();
  app.add_option("--epochs", command.epochs, "default: about 2,000 steps");
  app.add_option("--batch-size", command.batch_size, "default: a sixteenth of the series, 16 to 256");
  app.add_option("--learning-rate", command.learning_rate, "default: 0.001");
  app.add_option("--seed", command.seed, "of parameters, order and dropout; default: 1");
  app.add_option(
      "--task", command.task,
      "classification, regression, step_classification, forecast or imputation; default: what the data have");
  app.add_option("--split", command.split,
                 "given, random, stratified, grouped, folds or indices; default: automatic");
  app.add_flag("--intensity", command.intensity, "how often each channel was observed, as further channels");
  app.add_option("--device", command.device, "cpu, cuda, or auto: cuda where it can be used; default: auto");
  app.add_flag("--tf32", command.tf32, "let products of a GPU round to 11 bits: faster, less exact");
  app.add_option("--memory-limit", command.memory_limit,
                 "bytes that a training step may take beyond the data");
  app.add_flag("--json", command.json, "a JSON object per epoch and one at the end");
  app.add_flag("--quiet,-q", command.quiet, "print nothing");
}

void add_train(CLI::App& program, Session& session) {
  auto command = std::make_shared<TrainCommand>();
  CLI::App* app = program.add_subcommand("train", "Train a model on time series");
  add_data_options(*app, command->data, "what to train on");
  app->add_option("--out,-o", command->out, "folder of the run, which must not be one yet");
  app->add_option("--model", command->model, "a name that 'fastweights models' lists; default: delta-cde");
  app->add_option("--folds", command->folds,
                  "train so many times, each time testing on another part of the data, and print the mean")
      ->check(CLI::Range(2, 1000));
  app->add_option(
      "--from", command->from,
      "begin with the parameters of a run, a model file, or a safetensors file of the published code");
  app->add_option("--resume", command->resume, "go on with an interrupted run: its folder");
  add_run_options(*app, *command);
  app->footer(
      "Examples:\n"
      "  fastweights train spirals --out runs/spirals --epochs 2\n"
      "  fastweights train table.csv --out runs/table --label-column outcome --epochs 2\n"
      "  fastweights train --resume runs/spirals\n"
      "Exit codes: 0 done, 1 trouble, 2 wrong command line, 3 something became infinite or NaN, 130 "
      "interrupted.");
  app->callback([command, &session] { run(*command, session); });
}

}  // namespace fastweights::cli

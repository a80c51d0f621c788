#include "data_options.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fastweights/device.h"
#include "fastweights/error.h"

namespace fastweights::cli {
namespace {

namespace fs = std::filesystem;

std::string environment_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

std::string default_cache_dir() {
  const std::string home = environment_or("HOME", ".");
  return environment_or("FASTWEIGHTS_CACHE",
                        environment_or("XDG_CACHE_HOME", home + "/.cache") + "/fastweights");
}

// as given, or below the data folder
std::string found_path(const DataOptions& options, const std::string& path) {
  const std::string below = options.data_dir + "/" + path;
  return !fs::exists(path) && fs::exists(below) ? below : path;
}

ReadOptions read_options(const DataOptions& options, const DataConfig& config) {
  ReadOptions read;
  read.format = config.format;
  read.bad_files = config.skip_bad ? BadFiles::Skip : BadFiles::Stop;
  read.columns = {.id = config.id,
                  .time = config.time,
                  .label = config.label,
                  .group = config.group,
                  .statics = config.statics,
                  .targets = config.targets,
                  .answers = options.answers};
  read.time_unit = config.time_unit;
  read.speech = config.speech;
  if (isatty(STDERR_FILENO)) {
    read.progress = [](int64_t done, int64_t all) {
      std::fprintf(stderr, "\rreading %lld of %lld files%s", static_cast<long long>(done),
                   static_cast<long long>(all), done == all ? "\n" : "");
    };
  }
  return read;
}

}  // namespace

void move_to_device(Model& model, const std::string& name) {
  const at::Device device = find_device(name);
  if (device.is_cpu()) return;
  try {
    const Model moved = model.to(device);
    moved.check_device();
    model = moved;
  } catch (const std::invalid_argument&) {
    if (name != "auto") throw;
  }
}

std::string default_data_dir() { return environment_or("FASTWEIGHTS_DATA", "data"); }

void add_data_options(CLI::App& command, DataOptions& options, const std::string& what) {
  options.data_dir = default_data_dir();
  options.cache_dir = default_cache_dir();
  const std::string group = "Data";
  command.add_option("data", options.path, what + ": a file, a folder, or a built-in set such as spirals");
  command.add_option("--data-dir", options.data_dir, "where data are looked for, too (FASTWEIGHTS_DATA)")
      ->capture_default_str()
      ->group(group);
  const auto text = [&](const char* name, std::string& to, const char* help) {
    command.add_option(name, to, help)->group(group);
  };
  text("--format", options.format, "format of the data, if it cannot be seen");
  text("--id-column", options.id, "column of a table that names the series; default: id");
  text("--time-column", options.time, "column of times, numbers or dates; default: time");
  text("--label-column", options.label, "column of labels; default: label");
  text("--group-column", options.group, "column of patients, speakers, ...");
  command
      .add_option("--static-columns", options.statics, "columns that are the same in all rows of a series")
      ->group(group);
  command.add_option("--target-columns", options.targets, "columns of numbers to predict")->group(group);
  text("--time-unit", options.time_unit, "what a unit of time is called");
  command.add_option("--speech", options.speech, "speech as mfcc or as wave; default: mfcc")
      ->check(CLI::IsMember({"mfcc", "wave"}))
      ->group(group);
  command.add_flag("--skip-bad", options.skip_bad, "leave broken files out, and list them")->group(group);
  command
      .add_option("--cache-dir", options.cache_dir,
                  "where data are kept once they are read (FASTWEIGHTS_CACHE)")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--no-cache", options.no_cache, "read everything anew")->group(group);
}

DataConfig data_config(const DataOptions& options, const DataConfig& otherwise) {
  DataConfig config = otherwise;
  const auto take = [](const auto& given, auto& to) {
    if (!given.empty()) to = given;
  };
  if (!options.path.empty()) config.path = found_path(options, options.path);
  FW_CHECK(!config.path.empty(), "say which data: a file, a folder, or a built-in set such as spirals");
  config.skip_bad = config.skip_bad || options.skip_bad;
  take(options.format, config.format);
  take(options.id, config.id);
  take(options.time, config.time);
  take(options.label, config.label);
  take(options.group, config.group);
  take(options.time_unit, config.time_unit);
  take(options.statics, config.statics);
  take(options.targets, config.targets);
  if (!options.speech.empty()) config.speech = options.speech == "wave" ? SpeechForm::Wave : SpeechForm::Mfcc;
  return config;
}

DataConfig data_for_model(const DataOptions& options, const std::string& run,
                          const Preparation& preparation) {
  const std::string folder = run_folder(run);
  DataConfig known;
  if (!folder.empty()) known = read_run_config(folder).data;
  // dates are counted as the model has learned them
  known.time_unit = preparation.time_unit;
  // other data may come in another format
  if (!options.path.empty() && found_path(options, options.path) != known.path) known.format.clear();
  return data_config(options, known);
}

bool check_finite(const Predictions& predictions, const DataSet& data, Session& session) {
  if (!predictions.outputs.defined()) return true;
  const Tensor bad = predictions.outputs.isfinite().all(1).logical_not().nonzero();  // [N, 1]
  if (bad.size(0) == 0) return true;
  const int64_t row = bad[0][0].item<int64_t>(), sample = predictions.samples[row].item<int64_t>();
  std::fprintf(
      stderr,
      "fastweights: what the model says of series '%s' at time %g is not finite; is there a gap of many "
      "times "
      "the usual one? A model trained with --set model.solver.max_step=1 goes over it in shorter steps\n",
      data.ids[static_cast<size_t>(sample)].c_str(), predictions.times[row].item<double>());
  session.exit_status = 3;
  return false;
}

DataSet read(const DataOptions& options, const DataConfig& config) {
  const ReadOptions how = read_options(options, config);
  DataSet data =
      options.no_cache ? read_data(config.path, how) : read_cached(config.path, how, options.cache_dir);
  constexpr size_t kShown = 10;
  const std::vector<std::string>& skipped = data.head.skipped;
  for (size_t i = 0; i < skipped.size() && i < kShown; ++i)
    std::fprintf(stderr, "left out: %s\n", skipped[i].c_str());
  if (skipped.size() > kShown) std::fprintf(stderr, "left out: %zu more\n", skipped.size() - kShown);
  return data;
}

}  // namespace fastweights::cli

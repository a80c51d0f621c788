#include "data_options.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "errors.h"
#include "fastweights/tensor.h"

namespace fastweights::cli {
namespace {

namespace fs = std::filesystem;

std::string environment_or(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value && *value ? value : fallback;
}

std::string default_cache_dir() {
  const std::string home = environment_or("HOME", ".");
  return environment_or("FASTWEIGHTS_CACHE",
                        environment_or("XDG_CACHE_HOME", home + "/.cache") + "/fastweights");
}

// an option whose value is one of several names
template <typename E>
void add_choice(CLI::App& command, DataOptions& options, const char* name, E TableForm::*field,
                const std::map<std::string, E>& choices, const char* help) {
  const auto keep = [&options, field, choices](const std::string& value) {
    const E choice = choices.at(value);
    options.changes.emplace_back([=](ReadOptions& read) { read.table.*field = choice; });
  };
  std::vector<std::string> names;
  for (const auto& [choice, value] : choices) names.push_back(choice);
  command.add_option_function<std::string>(name, keep, help)->check(CLI::IsMember(names))->group("Data");
}

// the meaning of the columns of tables
void add_column_options(CLI::App& command, DataOptions& options) {
  const auto column = [&](const char* name, auto TableColumns::*field, const char* help) {
    using Value = std::remove_reference_t<decltype(std::declval<TableColumns&>().*field)>;
    const auto keep = [&options, field](const Value& value) {
      if (!value.empty())
        options.changes.emplace_back([=](ReadOptions& read) { read.columns.*field = value; });
    };
    command.add_option_function<Value>(name, keep, help)->group("Data");
  };
  column("--id-column", &TableColumns::id, "column that identifies the series; default: id");
  column("--time-column", &TableColumns::time, "column of times, numbers or dates; default: time");
  column("--label-column", &TableColumns::label, "column of labels; default: label");
  column("--group-column", &TableColumns::group, "column of groups such as patients or speakers");
  column("--static-columns", &TableColumns::statics, "columns that are constant within a series");
  column("--target-columns", &TableColumns::targets, "columns of values to predict");
  column("--columns", &TableColumns::channels, "columns that are channels; default: all other columns");
  column("--ignore-columns", &TableColumns::ignored, "columns that are not used");
  column("--text-columns", &TableColumns::texts, "columns that are text even if they look like numbers");
}

// how cells and rows of tables are read
void add_table_options(CLI::App& command, DataOptions& options) {
  const auto keep_missing = [&options](const std::vector<std::string>& words) {
    options.changes.emplace_back([=](ReadOptions& read) { read.table.missing = words; });
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--missing", keep_missing, "words for missing values, besides the usual ones such as NA")
      ->group("Data");
  add_choice<DecimalMark>(command, options, "--decimal", &TableForm::decimal,
                          {{"point", DecimalMark::Point}, {"comma", DecimalMark::Comma}},
                          "decimal point or comma; default: detected, unless commas separate columns");
  const auto sort = [&options] {
    options.changes.emplace_back([](ReadOptions& read) { read.table.order = UnsortedRows::Sort; });
  };
  command.add_flag_callback("--sort", sort, "sort the rows of each series by time")->group("Data");
  add_choice<Duplicates>(
      command, options, "--duplicates", &TableForm::duplicates,
      {{"error", Duplicates::Error}, {"first", Duplicates::First}, {"mean", Duplicates::Mean}},
      "rows of a series with the same time: error, keep the first, or the mean; default: error");
}

// the column of a channel or static feature of a model
std::string column_of(const std::string& name, const std::vector<TextColumn>& texts) {
  for (const TextColumn& text : texts) {
    for (const std::string& value : text.values) {
      if (name == text.column + "=" + value) return text.column;
    }
  }
  return name;
}

// a model reads its own channels; other columns, whatever they are, are kept as they are
void read_for(const Preparation& preparation, TableColumns& columns) {
  columns.channel_columns = LabelColumns::Optional;
  columns.channels = preparation.channels;
  for (const std::string& name : preparation.channels)
    columns.channels.push_back(column_of(name, preparation.channel_texts));
  for (const auto* texts : {&preparation.channel_texts, &preparation.static_texts}) {
    for (const TextColumn& text : *texts) {
      columns.texts.push_back(text.column);
      if (texts == &preparation.channel_texts) columns.channels.push_back(text.column);
    }
  }
}

// as given, or in the data folder
std::string found_path(const DataOptions& options, const std::string& path) {
  const std::string below = options.data_dir + "/" + path;
  return !fs::exists(path) && fs::exists(below) ? below : path;
}

ReadOptions read_options(const DataOptions& options, const DataConfig& config) {
  ReadOptions read = config.read;
  read.columns.label_columns = options.label_columns;
  if (!options.quiet && isatty(STDERR_FILENO)) {
    read.progress = [](int64_t done, int64_t all) {
      std::fprintf(stderr, "\rreading %lld of %lld files%s", static_cast<long long>(done),
                   static_cast<long long>(all), done == all ? "\n" : "");
    };
  }
  return read;
}

// the first lines of a list
void print_list(const char* word, const std::vector<std::string>& lines) {
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < lines.size() && i < kShown; ++i)
    std::fprintf(stderr, "%s: %s\n", word, printable(lines[i]).c_str());
  if (lines.size() > kShown) std::fprintf(stderr, "%s: %zu more\n", word, lines.size() - kShown);
}

}  // namespace

void move_to_device(TrainedModel& trained, const std::string& name) {
  for (TrainedModel& member : trained.members) move_to_device(member, name);
  const at::Device device = find_device(name);
  if (device.is_cpu()) return;
  try {
    const Model moved = trained.model.to(device);
    moved.check_device();
    trained.model = moved;
  } catch (const std::invalid_argument&) {
    if (name != "auto") throw;
  }
}

std::string default_data_dir() { return environment_or("FASTWEIGHTS_DATA", "data"); }

void add_data_options(CLI::App& command, DataOptions& options, const std::string& what) {
  options.data_dir = default_data_dir();
  options.cache_dir = default_cache_dir();
  const std::string group = "Data";
  command.add_option("data", options.path,
                     what + ": a file, a folder, - (the standard input), or a built-in set such as spirals");
  command.add_option("--data-dir", options.data_dir, "also search this folder for data (FASTWEIGHTS_DATA)")
      ->capture_default_str()
      ->group(group);
  // an option that sets one field; an empty value leaves it unchanged
  const auto text = [&](const char* name, std::string ReadOptions::*field, const char* help) {
    const auto keep = [&options, field](const std::string& value) {
      if (!value.empty()) options.changes.emplace_back([=](ReadOptions& read) { read.*field = value; });
    };
    command.add_option_function<std::string>(name, keep, help)->group(group);
  };
  text("--format", &ReadOptions::format, "data format; default: detected");
  add_column_options(command, options);
  add_table_options(command, options);
  text("--time-unit", &ReadOptions::time_unit, "unit of time; dates are converted to it");
  const auto take_speech = [&options](const std::string& form) {
    const SpeechForm speech = form == "wave" ? SpeechForm::Wave : SpeechForm::Mfcc;
    options.changes.emplace_back([=](ReadOptions& read) { read.speech = speech; });
  };
  command
      .add_option_function<std::string>("--speech", take_speech, "speech as mfcc or as wave; default: mfcc")
      ->check(CLI::IsMember({"mfcc", "wave"}))
      ->group(group);
  const auto skip_bad = [&options] {
    options.changes.emplace_back([](ReadOptions& read) { read.skip_bad = true; });
  };
  command.add_flag_callback("--skip-bad", skip_bad, "skip malformed files and list them")->group(group);
  const auto take_limit = [&options](const double& bytes) {
    options.changes.emplace_back([=](ReadOptions& read) { read.read_limit = static_cast<int64_t>(bytes); });
  };
  command
      .add_option_function<double>("--read-limit", take_limit,
                                   "bytes that the text of a file, and separately the data that it "
                                   "describes, may take, such as 8e9; default: half of the memory of the "
                                   "machine or control group")
      ->check(CLI::Range(1.0, 9e18))
      ->group(group);
  command.add_option("--cache-dir", options.cache_dir, "folder for cached data (FASTWEIGHTS_CACHE)")
      ->capture_default_str()
      ->group(group);
  command.add_flag("--no-cache", options.no_cache, "ignore the cache")->group(group);
}

DataConfig data_config(const DataOptions& options, const DataConfig& defaults) {
  DataConfig config = defaults;
  if (!options.path.empty()) {
    config.path = found_path(options, options.path);
    config.absolute_path = absolute_path(config.path);
  } else if (!config.absolute_path.empty() && absolute_path(config.path) != config.absolute_path &&
             fs::exists(config.absolute_path)) {
    // the run was trained from another folder
    config.path = config.absolute_path;
  }
  FW_CHECK(!config.path.empty(), "no data given: name a file, a folder, or a built-in set such as spirals");
  for (const auto& change : options.changes) change(config.read);
  return config;
}

DataConfig data_for_model(const DataOptions& options, const std::string& run,
                          const Preparation& preparation) {
  const std::string folder = run_folder(run);
  DataConfig known;
  if (!folder.empty()) known = read_run_config(folder).data;
  // dates are converted to the unit of the training data
  known.read.time_unit = preparation.time_unit;
  read_for(preparation, known.read.columns);
  // other data may have another format
  if (!options.path.empty() && found_path(options, options.path) != known.path) known.read.format.clear();
  return data_config(options, known);
}

bool check_finite(const Predictions& predictions, const DataSet& data, Session& session) {
  if (!predictions.outputs.defined()) return true;
  const Tensor bad = predictions.outputs.isfinite().all(1).logical_not().nonzero();  // [N, 1]
  if (bad.size(0) == 0) return true;
  const int64_t row = bad[0][0].item<int64_t>(), sample = predictions.samples[row].item<int64_t>();
  std::fprintf(stderr,
               "fastweights: the prediction for series '%s' at time %g is not finite; usually a Runge-Kutta "
               "method has crossed a long gap in one step: train with the default method, or with --set "
               "model.solver.max_step=1\n",
               printable(data.ids[static_cast<size_t>(sample)]).c_str(),
               predictions.times[row].item<double>());
  session.exit_status = 3;
  return false;
}

void print_notes(const DataOptions& options, std::vector<std::string> notes) {
  if (options.quiet) return;
  std::erase(notes, "");
  print_list("note", notes);
}

DataSet read(const DataOptions& options, const DataConfig& config) {
  const ReadOptions how = read_options(options, config);
  DataSet data = within_memory("reading " + config.path, [&] {
    return options.no_cache ? read_data(config.path, how) : read_cached(config.path, how, options.cache_dir);
  });
  // data to predict may be a few rows, in which much is missing
  if (options.label_columns == LabelColumns::Required) {
    const std::vector<std::string> warnings = data_warnings(data);
    data.head.notes.insert(data.head.notes.end(), warnings.begin(), warnings.end());
  }
  if (!options.quiet) print_list("skipped", data.head.skipped);
  print_notes(options, data.head.notes);
  return data;
}

}  // namespace fastweights::cli

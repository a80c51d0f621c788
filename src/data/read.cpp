#include "fastweights/data.h"

#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>

#include "base/nearest.h"
#include "data/files.h"
#include "data/gzip.h"
#include "data/parsers.h"
#include "data/readers.h"
#include "data/text_channels.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// a format: name, description, reader
struct Format {
  std::string name, sentence;
  DataSet (*read)(const std::string&, const ReadOptions&);
};

DataSet read_built_in(const std::string& name, const ReadOptions&) { return make_data(name); }

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {"ts", "UEA and UCR sets: a .ts file, or a folder <Name> with <Name>_TRAIN.ts and <Name>_TEST.ts",
       read_ts},
      {"arff", "UEA and UCR sets as .arff, plain or relational", read_arff},
      {"csv", "one table of all series: id, time, channels, label", read_csv},
      {"csv-folder", "a folder with a table <id>.csv per series, and labels.csv", read_csv_folder},
      {"npz", "numpy arrays: values, times, offsets, labels", read_npz},
      {"physionet2019", "the folder of the PhysioNet challenge 2019 with its .psv files", read_physionet2019},
      {"physionet2012", "the folder of the PhysioNet challenge 2012 with set-a and Outcomes-a.txt",
       read_physionet2012},
      {"speech", "Speech Commands: a folder of .wav files per word", read_speech},
      {"built-in", "generated sets, by name", read_built_in},
  };
  return kFormats;
}

const Format& format_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    if (format.name == name) return format;
    names.push_back(format.name);
  }
  throw std::invalid_argument("[read_data] unknown format " + in_quotes(name) + suggestion(name, names));
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.push_back(format.name);
  return listed(names);
}

bool is_built_in(const std::string& path) {
  const std::string name = path.substr(0, path.find(':'));
  const auto sets = built_in_sets();
  return std::any_of(sets.begin(), sets.end(), [&](const auto& set) { return set.first == name; });
}

// whether a folder has such a file; only the first entries are checked, since there may be a hundred thousand
bool has_file(const fs::path& folder, const std::string& ending) {
  constexpr int kLimit = 1000;
  int seen = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ending) return true;
    if (++seen == kLimit) break;
  }
  return false;
}

bool has_file_below(const fs::path& folder, const std::string& ending) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && has_file(entry.path(), ending)) return true;
  }
  return false;
}

// "" if no format fits
std::string format_of_folder(const std::string& path) {
  const fs::path folder = path;
  const std::string name = folder_name(path);
  for (const std::string format : {"ts", "arff"}) {
    for (const std::string part : {"_TRAIN.", "_TEST."}) {
      if (fs::exists(folder / (name + part + format))) return format;
    }
  }
  if (fs::exists(folder / "labels.csv")) return "csv-folder";
  if (fs::exists(folder / "set-a") || fs::exists(folder / "Outcomes-a.txt")) return "physionet2012";
  if (has_file(folder, ".psv") || has_file_below(folder, ".psv")) return "physionet2019";
  if (has_file_below(folder, ".wav")) return "speech";
  // read_csv_folder() reports what is missing
  return has_file(folder, ".csv") ? "csv-folder" : "";
}

// by extension, then by content
std::string format_of_file(const std::string& path, const ReadOptions& options) {
  const std::string ending = lowercase(fs::path(without_gz(path)).extension().string());
  for (const std::string format : {"ts", "arff", "csv", "npz"}) {
    if (ending == "." + format) return format;
  }
  if (!fs::is_regular_file(path))
    throw std::runtime_error(path + ": the format of a pipe cannot be detected; set it with --format");
  const std::string text = read_text(path, options).text;
  if (text.starts_with("PK\3\4")) return "npz";
  Lines lines(text);
  while (lines.next()) {
    const std::string line = lowercase(trimmed(lines.line()));
    if (line.empty() || line[0] == '#' || line[0] == '%') continue;
    if (line.starts_with("@relation") || line.starts_with("@attribute")) return "arff";
    if (line[0] == '@') return "ts";
    return line.find_first_of(",;\t|") == std::string::npos ? "" : "csv";
  }
  return "";
}

[[noreturn]] void refuse_path(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, sentence] : built_in_sets()) names.push_back(name);
  // a path is not the name of a built-in set
  if (path.find_first_of("./") != std::string::npos && path.find(':') == std::string::npos)
    throw std::runtime_error(message(path, ": no such file or folder"));
  const std::string close = nearest(path.substr(0, path.find(':')), names);
  throw std::runtime_error(message(path, ": no such file, folder or built-in set",
                                   close.empty() ? "" : "; the nearest set is '" + close + "'",
                                   "; the formats are ", format_names()));
}

}  // namespace
}  // namespace fastweights::data

namespace fastweights {

std::vector<std::pair<std::string, std::string>> data_formats() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const data::Format& format : data::formats()) result.emplace_back(format.name, format.sentence);
  return result;
}

namespace {

DataSet read_any(const std::string& path, const ReadOptions& options) {
  if (!options.format.empty()) data::format_named(options.format);
  // the standard input
  if (path == "-")
    return data::format_named(options.format.empty() ? "csv" : options.format).read("/dev/stdin", options);
  if (options.format == "built-in") return data::make_data(path);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // an existing file takes precedence over a built-in set
  if (!std::filesystem::exists(status)) {
    if (options.format.empty() && data::is_built_in(path)) return data::make_data(path);
    data::refuse_path(path);
  }
  if (!options.format.empty()) return data::format_named(options.format).read(path, options);
  const std::string format = std::filesystem::is_directory(status) ? data::format_of_folder(path)
                                                                   : data::format_of_file(path, options);
  if (format.empty())
    throw std::runtime_error(message(path, ": unknown format; expected one of ", data::format_names(),
                                     "; set the format explicitly"));
  return data::format_named(format).read(path, options);
}

// the channels that are asked for; tables have chosen theirs
DataSet with_columns(DataSet data, const TableColumns& columns) {
  const bool table = data.head.origin == "csv" || data.head.origin == "csv-folder";
  if (table || (columns.channels.empty() && columns.ignored.empty())) return data;
  const std::vector<std::string>& names = data.head.channels;
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const auto* list : {&columns.channels, &columns.ignored}) {
    for (const std::string& name : *list) {
      if (columns.channel_columns == LabelColumns::Required && !has(names, name))
        throw std::runtime_error(message(data.head.name, ": no channel ", data::in_quotes(name),
                                         "; the nearest is ", data::in_quotes(nearest(name, names))));
    }
  }
  std::vector<size_t> kept;
  std::vector<std::string> kept_names;
  for (size_t c = 0; c < names.size(); ++c) {
    const bool named = columns.channels.empty() || has(columns.channels, names[c]);
    if (!named || has(columns.ignored, names[c])) continue;
    kept.push_back(c);
    kept_names.push_back(names[c]);
  }
  if (kept.size() == names.size()) return data;
  data.values = data::take_columns(data.values, names.size(), kept);
  data.head.channels = kept_names;
  return data;
}

}  // namespace

DataSet read_data(const std::string& path, const ReadOptions& options) {
  try {
    return with_columns(read_any(path, options), options.columns);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(path + ": reading it needs more memory than there is");
  } catch (const std::length_error&) {
    throw std::runtime_error(path + ": reading it needs more memory than there is");
  }
}

}  // namespace fastweights

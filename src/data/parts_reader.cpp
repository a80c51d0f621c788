#include <algorithm>
#include <filesystem>
#include <iterator>

#include "data/files.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// the part of a file, by its name
Part part_of(const std::string& path) {
  const std::string stem = lowercase(fs::path(path).stem().string());
  if (stem.ends_with("_train")) return Part::Train;
  if (stem.ends_with("_test")) return Part::Test;
  return Part::Any;
}

std::string set_name(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  return part_of(path) == Part::Any ? stem : stem.substr(0, stem.rfind('_'));
}

Parsed read_part(const std::string& path, const ReadOptions& options, const ParsePart& parse) {
  const TextFile file = read_text(path, options);
  Parsed parsed = parse(file.text, path, read_limit(options));
  if (!file.note.empty()) parsed.head.notes.push_back(file.note);
  const Part part = part_of(path);
  const std::string prefix = part == Part::Train ? "train-" : part == Part::Test ? "test-" : "case-";
  for (size_t i = 0; i < parsed.series.size(); ++i) {
    parsed.series[i].part = part;
    parsed.series[i].id = prefix + std::to_string(i + 1);
  }
  return parsed;
}

// both parts must have the same channels and classes, in any order
void join(Parsed& first, Parsed second, const std::string& file) {
  const auto check = [&](const char* what, std::vector<std::string> a, std::vector<std::string> b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b)
      throw std::runtime_error(
          message(file, ": expected ", a.size(), " ", what, " as in the other part, got ", b.size()));
  };
  check("channels", first.head.channels, second.head.channels);
  check("classes", first.head.classes, second.head.classes);
  check("targets", first.head.targets, second.head.targets);
  first.axis.join(second.axis, file);
  first.head.notes.insert(first.head.notes.end(), second.head.notes.begin(), second.head.notes.end());
  first.series.insert(first.series.end(), std::make_move_iterator(second.series.begin()),
                      std::make_move_iterator(second.series.end()));
}

}  // namespace

std::string folder_name(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::vector<std::string> numbered_channels(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 1; i <= count; ++i) names.push_back("channel " + std::to_string(i));
  return names;
}

DataSet read_parts(const std::string& path, const std::string& extension, const ReadOptions& options,
                   const ParsePart& parse) {
  if (!fs::is_directory(path)) {
    Parsed parsed = read_part(path, options, parse);
    parsed.head.name = set_name(path);
    parsed.head.origin = extension.substr(1);
    return finished(std::move(parsed), options);
  }
  const std::string name = folder_name(path);
  std::vector<std::string> files;
  for (const char* part : {"_TRAIN", "_TEST"}) {
    const fs::path file = fs::path(path) / (name + part + extension);
    if (fs::exists(file)) files.push_back(file.string());
  }
  if (files.empty())
    throw std::runtime_error(message(path, ": expected ", name, "_TRAIN", extension, " or ", name, "_TEST",
                                     extension, ", got neither"));
  Parsed all = read_part(files[0], options, parse);
  if (files.size() > 1) join(all, read_part(files[1], options, parse), files[1]);
  all.head.name = name;
  all.head.origin = extension.substr(1);
  return finished(std::move(all), options);
}

}  // namespace fastweights::data

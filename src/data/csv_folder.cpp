#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "data/csv_table.h"
#include "data/readers.h"
#include "fastweights/nearest.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNone = CsvColumns::kNone;

// what labels.csv says: a series per row, still without values
struct LabelTable {
  std::vector<std::string> statics = {}, targets = {};
  std::vector<Series> series = {};
};

// in labels.csv there is no time, and columns that nobody asked for are static features
CsvColumns label_columns(TableRows& rows, const TableColumns& names) {
  if (!rows.next()) refuse({rows.place(1).file, 1, 1}, "found an empty file, expected a header");
  CsvColumns columns;
  for (const Field& field : rows.fields()) columns.names.emplace_back(field.text);
  const auto wanted = [&](const std::string& name) {
    const auto found = std::find(columns.names.begin(), columns.names.end(), name);
    if (found == columns.names.end())
      refuse(rows.place(1), "found no column '", name, "', expected it; the nearest is '",
             nearest(name, columns.names), "'");
    return static_cast<size_t>(found - columns.names.begin());
  };
  const auto has = [&](const std::string& name) {
    return std::find(columns.names.begin(), columns.names.end(), name) != columns.names.end();
  };
  columns.id = wanted(names.id);
  const bool optional = names.answers == Answers::Optional;
  for (const std::string& name : names.targets) {
    if (!optional || has(name)) columns.targets.push_back(wanted(name));
  }
  const bool label_is_target =
      std::find(names.targets.begin(), names.targets.end(), names.label) != names.targets.end();
  if (has(names.label) && !label_is_target) columns.label = wanted(names.label);
  const std::string group = names.group.empty() ? "group" : names.group;
  if (has(group) || (!names.group.empty() && !optional)) columns.group = wanted(group);
  for (const std::string& name : names.statics) columns.statics.push_back(wanted(name));
  if (!names.statics.empty()) return columns;
  for (size_t c = 0; c < columns.names.size(); ++c) {
    const bool target = std::find(columns.targets.begin(), columns.targets.end(), c) != columns.targets.end();
    if (c != columns.id && c != columns.label && c != columns.group && !target) columns.channels.push_back(c);
  }
  return columns;
}

LabelTable parse_labels(std::string_view text, const std::string& file, const TableColumns& names) {
  require_text(text, file);
  TableRows rows(text, file);
  CsvColumns columns = label_columns(rows, names);
  LabelTable table;
  std::set<std::string> ids;
  while (rows.next()) {
    check_width(rows, columns);
    if (ids.empty()) {
      columns.find_part(rows);
      if (names.statics.empty()) columns.statics = columns.channels;
    }
    const auto place = [&](size_t column) { return rows.place(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    const auto number = [&](size_t column) {
      return number_or_missing(field(column), place(column),
                               "a number or nothing in column '" + columns.names[column] + "'");
    };
    Series s;
    s.id = field(columns.id);
    if (s.id.empty()) refuse(place(columns.id), "found nothing, expected the id of a series");
    if (!ids.insert(s.id).second)
      refuse(place(columns.id), "found the series ", in_quotes(s.id), " twice, expected each once");
    if (columns.label != kNone && !is_missing(field(columns.label))) s.label = field(columns.label);
    if (columns.group != kNone && !is_missing(field(columns.group))) s.group = field(columns.group);
    if (columns.part != kNone) s.part = read_part(field(columns.part), place(columns.part));
    for (const size_t c : columns.statics) s.statics.push_back(number(c));
    for (const size_t c : columns.targets) s.targets.push_back(number(c));
    table.series.push_back(std::move(s));
  }
  for (const size_t c : columns.statics) table.statics.push_back(columns.names[c]);
  for (const size_t c : columns.targets) table.targets.push_back(columns.names[c]);
  if (table.series.empty()) refuse({file, 1, 1}, "found only a header, expected a row per series");
  return table;
}

// places of the channels in the rows, in the order of the first file
std::vector<size_t> channel_places(const CsvColumns& columns, const std::vector<std::string>& channels,
                                   const Place& header) {
  std::vector<size_t> places;
  for (const std::string& name : channels) {
    const auto found = std::find_if(columns.channels.begin(), columns.channels.end(),
                                    [&](size_t c) { return columns.names[c] == name; });
    if (found == columns.channels.end())
      refuse(header, "found no channel '", name, "', expected it as in the first file");
    places.push_back(*found);
  }
  if (columns.channels.size() != channels.size())
    refuse(header, "found ", columns.channels.size(), " channels, expected ", channels.size(),
           " as in the first file");
  return places;
}

// reads times, values and labels of steps of one series; the first file names the channels
void fill(Series& s, Parsed& parsed, const std::string& file, const TableColumns& names) {
  const std::string text = whole_file(file);
  require_text(text, file);
  TableRows rows(text, file);
  const CsvColumns columns = read_csv_columns(rows, names, CsvColumns::Ids::Optional);
  const std::vector<std::string> channels =
      parsed.head.channels.empty() ? columns.channel_names() : parsed.head.channels;
  const std::vector<size_t> places = channel_places(columns, channels, rows.place(1));
  TimeAxis axis = parsed.axis;
  while (rows.next()) {
    check_width(rows, columns);
    const auto place = [&](size_t column) { return rows.place(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    if (columns.id != kNone && field(columns.id) != s.id)
      refuse(place(columns.id), "found the series ", in_quotes(field(columns.id)), ", expected ",
             in_quotes(s.id), " as the file is called");
    const double time = axis.read(field(columns.time), place(columns.time));
    if (!s.times.empty() && time <= s.times.back())
      refuse(place(columns.time), "found the time ", in_quotes(field(columns.time)),
             ", expected a later one than in the row before");
    s.times.push_back(time);
    for (const size_t c : places)
      s.values.push_back(
          number_or_missing(field(c), place(c), "a number or nothing in column '" + columns.names[c] + "'"));
    if (columns.label != kNone)
      s.step_labels.emplace_back(is_missing(field(columns.label)) ? "" : field(columns.label));
  }
  if (s.times.empty()) refuse(rows.place(1), "found only a header, expected rows");
  s.where = file;
  parsed.head.channels = channels;
  parsed.axis = axis;
}

// ids of the tables in the folder
std::set<std::string> tables_in(const std::string& path) {
  std::set<std::string> ids;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".csv" && file.filename() != "labels.csv") ids.insert(file.stem().string());
  }
  return ids;
}

}  // namespace

DataSet read_csv_folder(const std::string& path, const ReadOptions& options) {
  if (!fs::is_directory(path)) throw std::runtime_error(path + ": this is no folder, expected one");
  const std::string labels = (fs::path(path) / "labels.csv").string();
  LabelTable table = parse_labels(whole_file(labels), labels, options.columns);
  std::set<std::string> tables = tables_in(path);
  Parsed parsed;
  parsed.head.name = folder_name(path);
  parsed.head.origin = "csv-folder";
  parsed.head.statics = table.statics;
  parsed.head.targets = table.targets;
  const auto trouble = [&](const std::string& what) {
    if (options.bad_files == BadFiles::Stop) throw std::runtime_error(what);
    parsed.head.skipped.push_back(what);
  };
  const auto count = static_cast<int64_t>(table.series.size());
  for (int64_t i = 0; i < count; ++i) {
    Series& s = table.series[static_cast<size_t>(i)];
    const std::string file = (fs::path(path) / (s.id + ".csv")).string();
    if (options.progress && i % 64 == 0) options.progress(i, count);
    try {
      if (tables.erase(s.id) == 0)
        throw std::runtime_error(file + ": there is no such file, but labels.csv names the series");
      fill(s, parsed, file, options.columns);
      parsed.series.push_back(std::move(s));
    } catch (const std::runtime_error& error) {
      trouble(error.what());
    }
  }
  for (const std::string& id : tables)
    trouble((fs::path(path) / (id + ".csv")).string() +
            ": the series has no label: labels.csv has no row for it");
  if (options.progress) options.progress(count, count);
  if (parsed.series.empty()) throw std::runtime_error(path + ": no series can be read");
  return finished(std::move(parsed), options);
}

}  // namespace fastweights

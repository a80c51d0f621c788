#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/nearest.h"
#include "data/counts.h"
#include "data/csv_table.h"
#include "data/files.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// the content of labels.csv: a series per row, still without values
struct LabelTable {
  std::vector<std::string> statics = {}, targets = {};
  std::vector<Series> series = {};
};

// labels.csv has no time column, and all columns not named otherwise are static features
CsvColumns label_columns(TableRows& rows, const TableColumns& names) {
  if (!rows.next()) refuse({rows.location(1).file, 1, 1}, "expected a header, got an empty file");
  CsvColumns columns;
  for (const Field& field : rows.fields()) columns.names.emplace_back(field.text);
  const auto required = [&](const std::string& name) {
    const auto found = std::find(columns.names.begin(), columns.names.end(), name);
    if (found == columns.names.end())
      refuse(rows.location(1), "no column ", in_quotes(name),
             suggestion(name, columns.names, [](const std::string& other) { return in_quotes(other); }));
    return static_cast<size_t>(found - columns.names.begin());
  };
  const auto has = [&](const std::string& name) {
    return std::find(columns.names.begin(), columns.names.end(), name) != columns.names.end();
  };
  columns.id = required(names.id);
  const bool optional = names.label_columns == LabelColumns::Optional;
  for (const std::string& name : names.targets) {
    if (!optional || has(name)) columns.targets.push_back(required(name));
  }
  const bool label_is_target =
      std::find(names.targets.begin(), names.targets.end(), names.label) != names.targets.end();
  if (has(names.label) && !label_is_target) columns.label = required(names.label);
  const std::string group = names.group.empty() ? "group" : names.group;
  if (has(group) || (!names.group.empty() && !optional)) columns.group = required(group);
  for (const std::string& name : names.statics) columns.statics.push_back(required(name));
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
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    const auto number = [&](size_t column) {
      return number_or_missing_in(columns.names[column], field(column), location(column));
    };
    Series s;
    s.id = field(columns.id);
    if (s.id.empty()) refuse(location(columns.id), "expected the id of a series, got nothing");
    if (!ids.insert(s.id).second) refuse(location(columns.id), "duplicate series ", in_quotes(s.id));
    if (columns.label != CsvColumns::kNone && !is_missing(field(columns.label)))
      s.label = field(columns.label);
    if (columns.group != CsvColumns::kNone && !is_missing(field(columns.group)))
      s.group = field(columns.group);
    if (columns.part != CsvColumns::kNone) s.part = read_part(field(columns.part), location(columns.part));
    for (const size_t c : columns.statics) s.statics.push_back(number(c));
    for (const size_t c : columns.targets) s.targets.push_back(number(c));
    table.series.push_back(std::move(s));
  }
  for (const size_t c : columns.statics) table.statics.push_back(columns.names[c]);
  for (const size_t c : columns.targets) table.targets.push_back(columns.names[c]);
  if (table.series.empty()) refuse({file, 1, 1}, "expected a row per series after the header, got nothing");
  return table;
}

// columns of the channels, in the order of the first file
std::vector<size_t> channel_positions(const CsvColumns& columns, const std::vector<std::string>& channels,
                                      const Location& header) {
  std::vector<size_t> positions;
  for (const std::string& name : channels) {
    const auto found = std::find_if(columns.channels.begin(), columns.channels.end(),
                                    [&](size_t c) { return columns.names[c] == name; });
    if (found == columns.channels.end())
      refuse(header, "no channel ", in_quotes(name), ", which the first file has");
    positions.push_back(*found);
  }
  if (columns.channels.size() != channels.size())
    refuse(header, "expected ", channels.size(), " channels as in the first file, got ",
           columns.channels.size());
  return positions;
}

// reads times, values and step labels of one series; the first file defines the channels
void fill(Series& s, Parsed& parsed, const std::string& file, const ReadOptions& options) {
  const TextFile table = read_text(file, options);
  require_text(table.text, file);
  TableRows rows(table.text, file);
  const CsvColumns columns = read_csv_columns(rows, options.columns, CsvColumns::Ids::Optional);
  const std::vector<std::string> channels =
      parsed.head.channels.empty() ? columns.channel_names() : parsed.head.channels;
  const std::vector<size_t> positions = channel_positions(columns, channels, rows.location(1));
  TimeAxis axis = parsed.axis;
  while (rows.next()) {
    check_width(rows, columns);
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    if (columns.id != CsvColumns::kNone && field(columns.id) != s.id)
      refuse(location(columns.id), "expected series ", in_quotes(s.id), ", as in the file name, got ",
             in_quotes(field(columns.id)));
    const double time = axis.read(field(columns.time), location(columns.time));
    if (!s.times.empty() && time <= s.times.back())
      refuse(location(columns.time), "expected a later time than in the previous row, got ",
             in_quotes(field(columns.time)));
    s.times.push_back(time);
    for (const size_t c : positions)
      s.values.push_back(number_or_missing_in(columns.names[c], field(c), location(c)));
    if (columns.label != CsvColumns::kNone)
      s.step_labels.emplace_back(is_missing(field(columns.label)) ? "" : field(columns.label));
  }
  if (s.times.empty()) refuse(rows.location(1), "expected rows after the header, got nothing");
  s.where = file;
  parsed.head.channels = channels;
  parsed.axis = axis;
  if (!table.note.empty()) parsed.head.notes.push_back(table.note);
}

// the tables in the folder by id
std::map<std::string, std::string> tables_in(const std::string& path) {
  std::map<std::string, std::string> tables;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".csv" && file.filename() != "labels.csv")
      tables.emplace(decoded(file.stem().string()).text, file.string());
  }
  return tables;
}

// a note per set: that of the first file, and the number of others
void join_notes(std::vector<std::string>& notes) {
  if (notes.size() < 2) return;
  const size_t others = notes.size() - 1;
  notes = {message(notes[0], ", and ", others, others == 1 ? " other file" : " other files", ", too")};
}

}  // namespace

DataSet read_csv_folder(const std::string& path, const ReadOptions& options) {
  if (!fs::is_directory(path)) throw std::runtime_error(path + ": expected a folder, got a file");
  const std::string labels = (fs::path(path) / "labels.csv").string();
  const TextFile list = read_text(labels, options);
  LabelTable table = parse_labels(list.text, labels, options.columns);
  std::map<std::string, std::string> tables = tables_in(path);
  Parsed parsed;
  if (!list.note.empty()) parsed.head.notes.push_back(list.note);
  parsed.head.name = folder_name(path);
  parsed.head.origin = "csv-folder";
  parsed.head.statics = table.statics;
  parsed.head.targets = table.targets;
  const auto report = [&](const std::string& what) {
    if (!options.skip_bad) throw std::runtime_error(what);
    parsed.head.skipped.push_back(what);
  };
  const auto count = static_cast<int64_t>(table.series.size());
  for (int64_t i = 0; i < count; ++i) {
    Series& s = table.series[static_cast<size_t>(i)];
    const auto found = tables.find(s.id);
    if (options.progress && i % 64 == 0) options.progress(i, count);
    try {
      if (found == tables.end())
        throw std::runtime_error((fs::path(path) / (s.id + ".csv")).string() +
                                 ": no such file, although labels.csv lists the series");
      const std::string file = found->second;
      tables.erase(found);
      fill(s, parsed, file, options);
      parsed.series.push_back(std::move(s));
    } catch (const std::runtime_error& error) {
      report(error.what());
    }
  }
  for (const auto& [id, file] : tables) report(file + ": labels.csv has no row for this series");
  if (options.progress) options.progress(count, count);
  if (parsed.series.empty()) throw std::runtime_error(path + ": no series could be read");
  if (!options.skip_bad) check_table_counts({labels, list.text}, parsed.series);
  join_notes(parsed.head.notes);
  return finished(std::move(parsed), options);
}

}  // namespace fastweights::data

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "base/checked.h"
#include "base/nearest.h"
#include "data/cells.h"
#include "data/counts.h"
#include "data/csv_table.h"
#include "data/files.h"
#include "data/readers.h"
#include "data/row_order.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

// the content of labels.csv: a series per row, still without values
struct LabelTable {
  std::vector<std::string> targets = {};
  Columns statics{{}, {}};
  std::vector<std::string> unused = {};              // names of unused columns
  std::vector<std::vector<std::string>> cells = {};  // of each series
  std::vector<Series> series = {};
  std::string note = {};  // about a column that may have labels; or ""
};

// labels.csv has no time column, and all columns not named otherwise are static features
CsvColumns label_columns(TableRows& rows, const TableColumns& names) {
  if (!rows.next()) refuse({rows.location(1).file, 1, 1}, "expected a header, got an empty file");
  CsvColumns columns;
  for (const Field& field : rows.fields())
    columns.names.emplace_back(field.text.empty() && columns.names.empty() ? kIndexColumn : field.text);
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto required = [&](const std::string& name) {
    const auto found = std::find(columns.names.begin(), columns.names.end(), name);
    if (found == columns.names.end())
      refuse(rows.location(1), "no column ", in_quotes(name),
             suggestion(name, columns.names, [](const std::string& other) { return in_quotes(other); }));
    return static_cast<size_t>(found - columns.names.begin());
  };
  columns.id = required(names.id);
  const bool optional = names.label_columns == LabelColumns::Optional;
  for (const std::string& name : names.targets) {
    if (!optional || has(columns.names, name)) columns.targets.push_back(required(name));
  }
  if (has(columns.names, names.label) && !has(names.targets, names.label) && !has(names.ignored, names.label))
    columns.label = required(names.label);
  const std::string group = names.group.empty() ? "group" : names.group;
  if (has(columns.names, group) || (!names.group.empty() && !optional)) columns.group = required(group);
  for (const std::string& name : names.statics) columns.statics.push_back(required(name));
  for (size_t c = 0; c < columns.names.size(); ++c) {
    const std::string& name = columns.names[c];
    const bool role = c == columns.id || c == columns.label || c == columns.group ||
                      has(names.targets, name) || has(names.statics, name);
    const bool unused = !names.statics.empty() || has(names.ignored, name) || name == kIndexColumn;
    if (!role) (unused ? columns.unused : columns.channels).push_back(c);
  }
  return columns;
}

// the roles of the columns when the first row is known
void finish_columns(CsvColumns& columns, LabelTable& table, const TableRows& first_row,
                    const TableColumns& names) {
  columns.find_part(first_row, names);
  if (names.statics.empty()) columns.statics = columns.channels;
  table.statics = Columns(columns.names_of(columns.statics), names.texts);
  table.targets = columns.names_of(columns.targets);
  table.unused = columns.names_of(columns.unused);
  if (columns.label == CsvColumns::kNone) table.note = label_note(names, columns.names_of(columns.channels));
}

LabelTable parse_labels(std::string_view text, const std::string& file, const ReadOptions& options) {
  require_text(text, file);
  const size_t limit = read_limit(options);
  TableRows rows(text, file, limit);
  CsvColumns columns = label_columns(rows, options.columns);
  Cells cells(options.table, rows.separator());
  LabelTable table;
  std::set<std::string> ids;
  while (rows.next()) {
    check_width(rows, columns);
    if (ids.empty()) finish_columns(columns, table, rows, options.columns);
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    Series s;
    s.id = field(columns.id);
    if (s.id.empty()) refuse(location(columns.id), "expected the id of a series, got nothing");
    if (!ids.insert(s.id).second) refuse(location(columns.id), "duplicate series ", in_quotes(s.id));
    if (columns.label != CsvColumns::kNone && !cells.is_missing_name(field(columns.label)))
      s.label = field(columns.label);
    if (columns.group != CsvColumns::kNone && !cells.is_missing_name(field(columns.group)))
      s.group = field(columns.group);
    if (columns.part != CsvColumns::kNone) s.part = read_part(field(columns.part), location(columns.part));
    for (size_t i = 0; i < columns.statics.size(); ++i)
      s.statics.push_back(
          table.statics.read(i, cells, field(columns.statics[i]), location(columns.statics[i])));
    for (const size_t c : columns.targets)
      s.targets.push_back(cells.number(columns.names[c], field(c), location(c)));
    table.cells.emplace_back();
    for (const size_t c : columns.unused) table.cells.back().emplace_back(field(c));
    table.series.push_back(std::move(s));
    require_parts(ids.size(), kSeriesBytes, limit, file, "its series");
  }
  if (table.series.empty()) refuse({file, 1, 1}, "expected a row per series after the header, got nothing");
  table.statics.check();
  table.statics.require_room(table.series.size(), limit, file);
  for (Series& s : table.series) table.statics.expand(s.statics);
  return table;
}

// columns of the channels, in the order of the first file
std::vector<size_t> channel_positions(const CsvColumns& columns, const Columns& channels,
                                      const Location& header) {
  std::vector<size_t> positions;
  std::unordered_map<std::string_view, size_t> known;
  for (const size_t c : columns.channels) known.emplace(columns.names[c], c);
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::string& name = channels.name(i);
    const auto found = known.find(name);
    if (found == known.end()) refuse(header, "no channel ", in_quotes(name), ", which the first file has");
    positions.push_back(found->second);
  }
  if (columns.channels.size() != channels.size())
    refuse(header, "expected ", channels.size(), " channels as in the first file, got ",
           columns.channels.size());
  return positions;
}

// a series whose table has text in columns of channels: its index, and its row in labels.csv
struct TextSeries {
  size_t series, row;
  Columns channels;
};

// what the tables of the series have in common
struct Tables {
  Columns channels{{}, {}};
  std::vector<std::string> unused = {};  // names of unused columns of the first file
  std::vector<TextSeries> texts = {};
  SourceColumns source = {};
  bool first = true;
};

// the first text of a table where others have numbers; "" if there is none
std::string conflict(const Tables& tables, const TextSeries& text) {
  for (size_t c = 0; c < text.channels.size(); ++c) {
    if (!text.channels.first_text(c).empty() && tables.channels.has_numbers(c))
      return text.channels.first_text(c);
  }
  return "";
}

// of unused columns, those that the first file has
void keep_unused(Series& s, const TableRows& row, const CsvColumns& columns, const Tables& tables,
                 const std::string& odd_date) {
  keep_texts(s, row, {}, odd_date);
  for (const std::string& name : tables.unused) {
    const auto found = std::find_if(columns.unused.begin(), columns.unused.end(),
                                    [&](size_t c) { return columns.names[c] == name; });
    s.unused.emplace_back(found == columns.unused.end() ? "" : row.fields()[*found].text);
  }
}

// the cells of labels.csv, which each row of the series then has; `used` is the memory of those so far
void add_cells(Series& s, const std::vector<std::string>& cells, size_t& used, size_t limit) {
  if (cells.empty()) return;
  size_t bytes = 0;
  for (const std::string& cell : cells) bytes += sizeof(std::string) + cell.size();
  const std::optional<size_t> more = checked_product({bytes, s.times.size()});
  require_memory(more && *more <= limit ? std::optional(used + *more) : std::nullopt, limit, s.where,
                 "the unused columns of labels.csv");
  used += *more;
  const auto width = static_cast<std::ptrdiff_t>(s.unused.size() / s.times.size());
  std::vector<std::string> all;
  auto own = s.unused.begin();
  for (size_t row = 0; row < s.times.size(); ++row, own += width) {
    std::move(own, own + width, std::back_inserter(all));
    all.insert(all.end(), cells.begin(), cells.end());
  }
  s.unused = std::move(all);
}

// reads times, values and step labels of one series; the first file defines the channels
void fill(Series& s, size_t row, Tables& tables, Parsed& parsed, const std::string& file,
          const ReadOptions& options) {
  const TextFile table = read_text(file, options);
  require_text(table.text, file);
  const size_t limit = read_limit(options);
  TableRows rows(table.text, file, limit);
  const CsvColumns columns = read_csv_columns(rows, options.columns, CsvColumns::Ids::Optional);
  const Columns own(columns.names_of(columns.channels), options.columns.texts);
  const std::vector<size_t> positions =
      channel_positions(columns, tables.first ? own : tables.channels, rows.location(1));
  if (tables.first) tables.unused = columns.names_of(columns.unused);
  // numbers or text is known when all files have been read
  Columns channels = (tables.first ? own : tables.channels).without_values();
  Cells cells(options.table, rows.separator());
  TimeAxis axis = parsed.axis;
  while (rows.next()) {
    check_width(rows, columns);
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    const auto field = [&](size_t column) { return rows.fields()[column].text; };
    if (columns.id != CsvColumns::kNone && field(columns.id) != s.id)
      refuse(location(columns.id), "expected series ", in_quotes(s.id), ", as in the file name, got ",
             in_quotes(field(columns.id)));
    const double time = axis.read(cells.with_point(field(columns.time)), location(columns.time));
    check_order(time, s, options.table, location(columns.time), field(columns.time), "");
    s.times.push_back(time);
    for (size_t i = 0; i < positions.size(); ++i)
      s.values.push_back(channels.read(i, cells, field(positions[i]), location(positions[i])));
    if (columns.label != CsvColumns::kNone)
      s.step_labels.emplace_back(cells.is_missing_name(field(columns.label)) ? "" : field(columns.label));
    keep_unused(s, rows, columns, tables, axis.odd_date());
    // times and labels, too
    require_parts(s.values.size() + (columns.label == CsvColumns::kNone ? 1 : 3) * s.times.size(),
                  kValueBytes, limit, file, "its values");
    require_memory(checked_product({s.times.size(), tables.unused.size(), sizeof(std::string)}), limit, file,
                   "its unused columns");
  }
  if (s.times.empty()) refuse(rows.location(1), "expected rows after the header, got nothing");
  channels.check();
  s.where = file;
  if (tables.first) {
    tables.channels = own;
    tables.source.separator = rows.separator();
  }
  // numbers of one table may have no mark
  if (cells.mark() != '.') tables.source.decimal = cells.mark();
  tables.first = false;
  const bool news = tables.channels.join_numbers(channels);
  if (channels.any_text()) tables.texts.push_back({parsed.series.size(), row, std::move(channels)});
  for (const TextSeries& text : tables.texts) {
    if (options.skip_bad || !(news || &text == &tables.texts.back())) continue;
    if (const std::string what = conflict(tables, text); !what.empty()) throw std::runtime_error(what);
  }
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

// the memory that a folder may take
struct FolderLimit {
  const std::string& path;
  size_t bytes;
};

// names of channels; a table with text where others have numbers is malformed
template <typename Report>
void join_tables(Tables& tables, std::vector<Series>& series, const FolderLimit& limit,
                 const Report& report) {
  std::set<size_t> bad;
  for (const TextSeries& text : tables.texts) {
    if (const std::string what = conflict(tables, text); !what.empty()) {
      bad.insert(text.series);
      report(text.row, what);
    } else {
      Series& s = series[text.series];
      tables.channels.join_texts(text.channels, s.values, s.where);
    }
  }
  for (auto at = bad.rbegin(); at != bad.rend(); ++at)
    series.erase(series.begin() + static_cast<std::ptrdiff_t>(*at));
  size_t rows = 0;
  for (const Series& s : series) rows += s.times.size();
  tables.channels.require_room(rows, limit.bytes, limit.path);
  for (Series& s : series) tables.channels.expand(s.values);
}

// what the head of the set takes from labels.csv and the tables
void fill_head(DataHead& head, const LabelTable& table, const Tables& tables) {
  head.statics = table.statics.names();
  head.static_texts = table.statics.texts();
  head.targets = table.targets;
  head.channels = tables.channels.names();
  head.channel_texts = tables.channels.texts();
  head.unused = tables.unused;
  head.unused.insert(head.unused.end(), table.unused.begin(), table.unused.end());
  head.source = tables.source;
}

}  // namespace

DataSet read_csv_folder(const std::string& path, const ReadOptions& options) {
  if (!fs::is_directory(path)) throw std::runtime_error(path + ": expected a folder, got a file");
  const std::string labels = (fs::path(path) / "labels.csv").string();
  const TextFile list = read_text(labels, options);
  LabelTable table = parse_labels(list.text, labels, options);
  std::map<std::string, std::string> files = tables_in(path);
  Parsed parsed;
  Tables tables = {.source = source_columns(options.columns)};
  if (!list.note.empty()) parsed.head.notes.push_back(list.note);
  parsed.head.name = folder_name(path);
  parsed.head.origin = "csv-folder";
  std::multimap<size_t, std::string> reasons;  // by the row in labels.csv
  const auto report = [&](size_t row, const std::string& what) {
    if (!options.skip_bad) throw std::runtime_error(what);
    reasons.emplace(row, what);
  };
  const size_t count = table.series.size(), limit = read_limit(options);
  size_t repeated = 0;
  for (size_t row = 0; row < count; ++row) {
    Series& s = table.series[row];
    const auto found = files.find(s.id);
    if (options.progress && row % 64 == 0)
      options.progress(static_cast<int64_t>(row), static_cast<int64_t>(count));
    try {
      if (found == files.end())
        throw std::runtime_error((fs::path(path) / (s.id + ".csv")).string() +
                                 ": no such file, although labels.csv lists the series");
      const std::string file = found->second;
      files.erase(found);
      fill(s, row, tables, parsed, file, options);
      add_cells(s, table.cells[row], repeated, limit);
      parsed.series.push_back(std::move(s));
    } catch (const std::runtime_error& error) {
      std::erase_if(tables.texts,
                    [&](const TextSeries& text) { return text.series == parsed.series.size(); });
      report(row, error.what());
    }
  }
  join_tables(tables, parsed.series, {path, limit}, report);
  for (const auto& [id, file] : files) report(count, file + ": labels.csv has no row for this series");
  for (auto& [row, what] : reasons) parsed.head.skipped.push_back(std::move(what));
  if (options.progress) options.progress(static_cast<int64_t>(count), static_cast<int64_t>(count));
  if (parsed.series.empty()) throw std::runtime_error(path + ": no series could be read");
  if (!options.skip_bad) check_table_counts({labels, list.text}, parsed.series);
  fill_head(parsed.head, table, tables);
  join_notes(parsed.head.notes);
  const bool steps = std::any_of(parsed.series.begin(), parsed.series.end(),
                                 [](const Series& s) { return !s.step_labels.empty(); });
  if (!steps && !table.note.empty()) parsed.head.notes.push_back(table.note);
  return finished(std::move(parsed), options);
}

}  // namespace fastweights::data

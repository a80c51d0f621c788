#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/checked.h"
#include "data/cells.h"
#include "data/counts.h"
#include "data/csv_table.h"
#include "data/files.h"
#include "data/gzip.h"
#include "data/readers.h"
#include "data/row_order.h"

namespace fastweights::data {
namespace {

// a value of the series, not of the row: the same or missing in all rows
void keep(double& kept, double found, const Location& location, const Series& series, const Columns& columns,
          size_t column) {
  if (std::isnan(found)) return;
  if (!std::isnan(kept) && kept != found) {
    columns.check();
    refuse(location, "column ", in_quotes(columns.name(column)), " of series ", in_quotes(series.id),
           ": expected ", columns.shown(column, kept), " as in earlier rows, got ",
           columns.shown(column, found));
  }
  kept = found;
}

void keep(std::string& kept, std::string_view found, const Location& location, const std::string& name,
          const Series& series) {
  if (found == kept) return;
  if (!kept.empty())
    refuse(location, "column ", in_quotes(name), " of series ", in_quotes(series.id), ": expected ",
           in_quotes(kept), " as in earlier rows, got ", in_quotes(found));
  kept = found;
}

// collects the rows of each series by id
class LongTable {
 public:
  LongTable(const CsvColumns& columns, const ReadOptions& options, char separator)
      : columns_(columns),
        names_(options.columns),
        form_(options.table),
        cells_(form_, separator),
        channels_(columns.names_of(columns.channels), names_.texts),
        statics_(names_.statics, names_.texts),
        targets_(columns.names_of(columns.targets), {}) {}

  void add(const TableRows& rows, TimeAxis& axis) {
    Series& s = series_of(rows);
    const auto text = [&](size_t column) { return rows.fields()[column].text; };
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    const double time = axis.read(cells_.with_point(text(columns_.time)), location(columns_.time));
    if (!s.times.empty() && time <= s.times.back())
      check_order(time, s, form_, location(columns_.time), text(columns_.time),
                  message(" of series ", in_quotes(s.id)));
    s.times.push_back(time);
    for (size_t i = 0; i < columns_.channels.size(); ++i) {
      const size_t c = columns_.channels[i];
      s.values.push_back(channels_.read(i, cells_, text(c), location(c)));
    }
    for (size_t i = 0; i < columns_.statics.size(); ++i) {
      const size_t c = columns_.statics[i];
      keep(s.statics[i], statics_.read(i, cells_, text(c), location(c)), location(c), s, statics_, i);
    }
    for (size_t i = 0; i < columns_.targets.size(); ++i) {
      const size_t c = columns_.targets[i];
      keep(s.targets[i], cells_.number(columns_.names[c], text(c), location(c)), location(c), s, targets_, i);
    }
    add_names(s, rows);
    keep_texts(s, rows, columns_, axis.odd_date());
  }

  size_t size() const { return series_.size(); }

  // names of channels and static features, and the decimal mark; text becomes channels
  void name_columns(DataHead& head, size_t rows, size_t limit, const std::string& file) {
    channels_.check();
    statics_.check();
    channels_.require_room(rows, limit, file);
    statics_.require_room(size(), limit, file);
    head.channels = channels_.names();
    head.statics = statics_.names();
    head.channel_texts = channels_.texts();
    head.static_texts = statics_.texts();
    head.unused = columns_.names_of(columns_.unused);
    head.source.decimal = cells_.mark();
    for (Series& s : series_) {
      channels_.expand(s.values);
      statics_.expand(s.statics);
    }
  }

  // labels that never vary within a series are labels of the series
  std::vector<Series> take_series() {
    const bool varies = std::any_of(series_.begin(), series_.end(), [](const Series& s) {
      std::string first;
      return std::any_of(s.step_labels.begin(), s.step_labels.end(), [&](const std::string& label) {
        if (first.empty()) first = label;
        return !label.empty() && label != first;
      });
    });
    for (Series& s : series_) {
      if (varies) break;
      for (const std::string& label : s.step_labels) {
        if (!label.empty()) s.label = label;
      }
      s.step_labels.clear();
    }
    return std::move(series_);
  }

 private:
  // group, part and label of a row
  void add_names(Series& s, const TableRows& rows) {
    const auto text = [&](size_t column) { return rows.fields()[column].text; };
    const auto location = [&](size_t column) { return rows.location(rows.fields()[column].column); };
    if (columns_.group != CsvColumns::kNone && !cells_.is_missing_name(text(columns_.group)))
      keep(s.group, text(columns_.group), location(columns_.group), names_.group, s);
    if (columns_.part != CsvColumns::kNone) {
      const Part part = read_part(text(columns_.part), location(columns_.part));
      if (s.times.size() > 1 && part != s.part)
        refuse(location(columns_.part), "expected the same part in all rows of series ", in_quotes(s.id),
               ", got ", in_quotes(text(columns_.part)));
      s.part = part;
    }
    if (columns_.label == CsvColumns::kNone) return;
    const std::string_view label = text(columns_.label);
    s.step_labels.emplace_back(cells_.is_missing_name(label) ? "" : label);
  }

  Series& series_of(const TableRows& rows) {
    const Field& id = rows.fields()[columns_.id];
    if (id.text.empty()) refuse(rows.location(id.column), "expected the id of a series, got nothing");
    if (!series_.empty() && series_[last_].id == id.text) return series_[last_];
    const auto [found, is_new] = indices_.emplace(id.text, series_.size());
    last_ = found->second;
    if (!is_new) return series_[last_];
    Series s;
    s.id = id.text;
    s.statics.assign(columns_.statics.size(), kNaN);
    s.targets.assign(columns_.targets.size(), kNaN);
    const Location location = rows.location(1);
    s.where = message(location.file, ":", location.row);
    series_.push_back(std::move(s));
    return series_.back();
  }

  const CsvColumns& columns_;
  const TableColumns& names_;
  const TableForm& form_;
  Cells cells_;
  Columns channels_, statics_, targets_;
  std::vector<Series> series_;
  std::unordered_map<std::string, size_t> indices_;
  size_t last_ = 0;
};

}  // namespace

Parsed parse_csv(std::string_view text, const std::string& file, const ReadOptions& options, size_t limit) {
  require_text(text, file);
  TableRows rows(text, file, limit);
  CsvColumns columns = read_csv_columns(rows, options.columns, CsvColumns::Ids::Required);
  Parsed parsed;
  parsed.head.targets = columns.names_of(columns.targets);
  parsed.head.source = source_columns(options.columns);
  parsed.head.source.separator = rows.separator();
  parsed.head.notes = columns.notes;
  if (!rows.next()) refuse(rows.location(1), "expected rows of series after the header, got nothing");
  check_width(rows, columns);
  columns.find_part(rows, options.columns);
  LongTable table(columns, options, rows.separator());
  size_t count = 0, values = 0;
  do {
    check_width(rows, columns);
    table.add(rows, parsed.axis);
    ++count;
    require_parts(table.size(), kSeriesBytes, limit, file, "its series");
    // times and labels, too
    values += columns.channels.size() + (columns.label == CsvColumns::kNone ? 1 : 3);
    require_parts(values, kValueBytes, limit, file, "its values");
    require_memory(checked_product({count, columns.unused.size(), sizeof(std::string)}), limit, file,
                   "its unused columns");
  } while (rows.next());
  table.name_columns(parsed.head, count, limit, file);
  parsed.series = table.take_series();
  return parsed;
}

DataSet read_csv(const std::string& path, const ReadOptions& options) {
  const TextFile file = read_text(path, options);
  Parsed parsed = parse_csv(file.text, path, options, read_limit(options));
  check_table_counts({path, file.text}, parsed.series);
  parsed.head.name = stem(without_gz(path));
  parsed.head.origin = "csv";
  if (!file.note.empty()) parsed.head.notes.push_back(file.note);
  return finished(std::move(parsed), options);
}

}  // namespace fastweights::data

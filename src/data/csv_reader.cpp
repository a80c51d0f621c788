#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "data/counts.h"
#include "data/csv_table.h"
#include "data/files.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

// a value of the series, not of the row: the same or missing in all rows
void keep(double& kept, double found, const Location& location, const std::string& name,
          const Series& series) {
  if (std::isnan(found)) return;
  if (!std::isnan(kept) && kept != found)
    refuse(location, "column ", in_quotes(name), " of series ", in_quotes(series.id), ": expected ",
           exact(kept), " as in earlier rows, got ", exact(found));
  kept = found;
}

void keep(std::string& kept, std::string_view found, const Location& location, const std::string& name,
          const Series& series) {
  if (is_missing(found) || found == kept) return;
  if (!kept.empty())
    refuse(location, "column ", in_quotes(name), " of series ", in_quotes(series.id), ": expected ",
           in_quotes(kept), " as in earlier rows, got ", in_quotes(found));
  kept = found;
}

// collects the rows of each series by id
class LongTable {
 public:
  LongTable(const CsvColumns& columns, const TableColumns& names) : columns_(columns), names_(names) {}

  void add(const TableRows& rows, TimeAxis& axis) {
    const std::vector<Field>& fields = rows.fields();
    const auto text = [&](size_t column) { return fields[column].text; };
    const auto location = [&](size_t column) { return rows.location(fields[column].column); };
    Series& s = series_of(rows);
    const double time = axis.read(text(columns_.time), location(columns_.time));
    if (!s.times.empty() && time <= s.times.back())
      refuse(location(columns_.time), "expected a later time than in the previous row of series ",
             in_quotes(s.id), ", got ", in_quotes(text(columns_.time)));
    s.times.push_back(time);
    const auto number = [&](size_t column) {
      return number_or_missing_in(columns_.names[column], text(column), location(column));
    };
    for (const size_t c : columns_.channels) s.values.push_back(number(c));
    for (size_t i = 0; i < columns_.statics.size(); ++i)
      keep(s.statics[i], number(columns_.statics[i]), location(columns_.statics[i]), names_.statics[i], s);
    for (size_t i = 0; i < columns_.targets.size(); ++i)
      keep(s.targets[i], number(columns_.targets[i]), location(columns_.targets[i]),
           columns_.names[columns_.targets[i]], s);
    if (columns_.group != CsvColumns::kNone)
      keep(s.group, text(columns_.group), location(columns_.group), names_.group, s);
    if (columns_.part != CsvColumns::kNone) {
      const Part part = read_part(text(columns_.part), location(columns_.part));
      if (s.times.size() > 1 && part != s.part)
        refuse(location(columns_.part), "expected the same part in all rows of series ", in_quotes(s.id),
               ", got ", in_quotes(text(columns_.part)));
      s.part = part;
    }
    if (columns_.label != CsvColumns::kNone)
      s.step_labels.emplace_back(is_missing(text(columns_.label)) ? "" : text(columns_.label));
  }

  size_t size() const { return series_.size(); }

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
  std::vector<Series> series_;
  std::unordered_map<std::string, size_t> indices_;
  size_t last_ = 0;
};

}  // namespace

Parsed parse_csv(std::string_view text, const std::string& file, const TableColumns& names, size_t limit) {
  require_text(text, file);
  TableRows rows(text, file, limit);
  CsvColumns columns = read_csv_columns(rows, names, CsvColumns::Ids::Required);
  Parsed parsed;
  parsed.head.statics = names.statics;
  for (const size_t c : columns.targets) parsed.head.targets.push_back(columns.names[c]);
  LongTable table(columns, names);
  bool first = true;
  size_t values = 0;
  while (rows.next()) {
    check_width(rows, columns);
    if (first) columns.find_part(rows);
    first = false;
    table.add(rows, parsed.axis);
    require_parts(table.size(), kSeriesBytes, limit, file, "its series");
    // times and labels, too
    values += columns.channels.size() + (columns.label == CsvColumns::kNone ? 1 : 3);
    require_parts(values, kValueBytes, limit, file, "its values");
  }
  if (first) refuse(rows.location(1), "expected rows of series after the header, got nothing");
  parsed.head.channels = columns.channel_names();
  parsed.series = table.take_series();
  return parsed;
}

DataSet read_csv(const std::string& path, const ReadOptions& options) {
  const TextFile file = read_text(path, options);
  Parsed parsed = parse_csv(file.text, path, options.columns, read_limit(options));
  check_table_counts({path, file.text}, parsed.series);
  parsed.head.name = std::filesystem::path(path).stem().string();
  parsed.head.origin = "csv";
  if (!file.note.empty()) parsed.head.notes.push_back(file.note);
  return finished(std::move(parsed), options);
}

}  // namespace fastweights::data

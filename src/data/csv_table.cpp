#include "data/csv_table.h"

#include <algorithm>
#include <set>

#include "base/nearest.h"

namespace fastweights::data {
namespace {

size_t position_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? CsvColumns::kNone : static_cast<size_t>(found - names.begin());
}

size_t required(const TableRows& rows, const std::vector<std::string>& names, const std::string& name,
                const char* what) {
  const size_t position = position_of(names, name);
  if (position == CsvColumns::kNone)
    refuse(rows.location(1), "no column ", in_quotes(name), " (", what, ")",
           suggestion(name, names, [](const std::string& other) { return in_quotes(other); }));
  return position;
}

std::vector<std::string> header_names(const TableRows& rows) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Field& field : rows.fields()) {
    if (field.text.empty() && !names.empty())
      refuse(rows.location(field.column), "expected the name of a column, got nothing");
    if (field.text.size() > kLongestName)
      refuse(rows.location(field.column), "expected the name of a column, of at most ", kLongestName,
             " bytes, got ", field.text.size(), " bytes");
    names.emplace_back(field.text.empty() ? kIndexColumn : field.text);
    if (!seen.insert(names.back()).second)
      refuse(rows.location(field.column), "duplicate column ", in_quotes(names.back()));
  }
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// columns without a role are channels, or unused
void divide_others(CsvColumns& columns, const TableColumns& names) {
  std::set<size_t> roles = {columns.id, columns.time, columns.label, columns.group};
  roles.insert(columns.statics.begin(), columns.statics.end());
  roles.insert(columns.targets.begin(), columns.targets.end());
  for (size_t c = 0; c < columns.names.size(); ++c) {
    if (roles.contains(c)) continue;
    const std::string& name = columns.names[c];
    const bool named = contains(names.channels, name);
    const bool index = name == kIndexColumn && names.channels.empty() && !contains(names.ignored, name);
    if (index)
      columns.notes.push_back(message("the column ", in_quotes(name),
                                      " is not read: it looks like an index; --columns can name it"));
    const bool used = named || (names.channels.empty() && !index);
    (used && !contains(names.ignored, name) ? columns.channels : columns.unused).push_back(c);
  }
}

// columns that are named must exist; data for a model may lack them
void check_named(const TableRows& rows, const std::vector<std::string>& found, const TableColumns& names) {
  for (const std::string& name : names.ignored) {
    if (name == names.id || name == names.time)
      refuse(rows.location(1), "the column ", in_quotes(name), " is needed and cannot be ignored");
    if (names.channel_columns == LabelColumns::Required) required(rows, found, name, "to be ignored");
  }
  if (names.channel_columns == LabelColumns::Optional) return;
  for (const std::string& name : names.channels) required(rows, found, name, "a channel");
  for (const std::string& name : names.texts) required(rows, found, name, "a text");
}

}  // namespace

void CsvColumns::find_part(const TableRows& first_row, const TableColumns& named) {
  const auto is_part = [&](size_t c) {
    const std::string_view text = first_row.fields()[c].text;
    return names[c] == "part" && !text.empty() && part_named(text) && !contains(named.ignored, "part");
  };
  for (std::vector<size_t>* list : {&channels, &unused}) {
    const auto found = std::find_if(list->begin(), list->end(), is_part);
    if (found == list->end()) continue;
    part = *found;
    list->erase(found);
  }
}

std::vector<std::string> CsvColumns::names_of(const std::vector<size_t>& columns) const {
  std::vector<std::string> result;
  for (const size_t c : columns) result.push_back(names[c]);
  return result;
}

CsvColumns read_csv_columns(TableRows& rows, const TableColumns& names, CsvColumns::Ids ids) {
  if (!rows.next()) refuse({rows.location(1).file, 1, 1}, "expected a header, got an empty file");
  CsvColumns columns = {.names = header_names(rows)};
  const std::vector<std::string>& found = columns.names;
  columns.id = ids == CsvColumns::Ids::Required
                   ? required(rows, found, names.id, "the id of a series, see --id-column")
                   : position_of(found, names.id);
  columns.time = required(rows, found, names.time, "the time");
  if (ids == CsvColumns::Ids::Required) check_named(rows, found, names);
  // labels are optional, unless the column was named explicitly
  const auto label_column = [&](const std::string& name, const char* what) {
    return names.label_columns == LabelColumns::Required ? required(rows, found, name, what)
                                                         : position_of(found, name);
  };
  columns.label = names.label == TableColumns().label || names.label.empty()
                      ? position_of(found, names.label)
                      : label_column(names.label, "the label");
  if (contains(names.ignored, names.label)) columns.label = CsvColumns::kNone;
  if (!names.group.empty() && ids == CsvColumns::Ids::Required)
    columns.group = label_column(names.group, "the group");
  // with a table per series, these are in labels.csv
  if (ids == CsvColumns::Ids::Required) {
    for (const std::string& name : names.statics)
      columns.statics.push_back(required(rows, found, name, "a static feature"));
    for (const std::string& name : names.targets) {
      const size_t position = label_column(name, "a target");
      if (position != CsvColumns::kNone) columns.targets.push_back(position);
    }
  }
  divide_others(columns, names);
  if (columns.label == CsvColumns::kNone && ids == CsvColumns::Ids::Required) {
    const std::string note = label_note(names, columns.names_of(columns.channels));
    if (!note.empty()) columns.notes.push_back(note);
  }
  // a label column named as a target is a number, not a class
  if (std::find(columns.targets.begin(), columns.targets.end(), columns.label) != columns.targets.end())
    columns.label = CsvColumns::kNone;
  return columns;
}

std::string label_note(const TableColumns& names, const std::vector<std::string>& others) {
  // data to predict, and those with targets, need no labels
  const bool expected = names.label_columns == LabelColumns::Required && names.targets.empty() &&
                        !contains(names.ignored, names.label);
  const std::string close = expected ? nearest(names.label, others) : "";
  if (close.empty()) return "";
  return message("no column ", in_quotes(names.label), ", so there are no labels; the nearest is ",
                 in_quotes(close), ", which --label-column ", in_quotes(close), " names");
}

SourceColumns source_columns(const TableColumns& names) {
  SourceColumns source = {.id = names.id, .time = names.time};
  if (!names.label.empty()) source.label = names.label;
  if (!names.group.empty()) source.group = names.group;
  return source;
}

void keep_texts(Series& series, const TableRows& row, const CsvColumns& columns,
                const std::string& odd_date) {
  for (const size_t c : columns.unused) series.unused.emplace_back(row.fields()[c].text);
  if (odd_date.empty() && series.dates.empty()) return;
  series.dates.resize(series.times.size());
  series.dates.back() = odd_date;
}

void check_width(const TableRows& row, const CsvColumns& columns) {
  const size_t found = row.fields().size(), expected = columns.names.size();
  if (found != expected)
    refuse(row.location(row.fields().back().column), "expected ", expected, " fields as in the header, got ",
           found);
}

std::optional<Part> part_named(std::string_view text) {
  const std::string word = lowercase(text);
  if (word == "train") return Part::Train;
  if (word == "validation") return Part::Validation;
  if (word == "test") return Part::Test;
  if (word.empty() || word == "any") return Part::Any;
  return std::nullopt;
}

Part read_part(std::string_view text, const Location& location) {
  const std::optional<Part> part = part_named(text);
  if (!part) refuse(location, "expected train, validation, test or nothing, got ", in_quotes(text));
  return *part;
}

}  // namespace fastweights::data

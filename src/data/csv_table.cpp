#include "data/csv_table.h"

#include <algorithm>
#include <set>

#include "fastweights/nearest.h"

namespace fastweights {
namespace {

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? CsvColumns::kNone : static_cast<size_t>(found - names.begin());
}

size_t wanted(const TableRows& rows, const std::vector<std::string>& names, const std::string& name,
              const char* what) {
  const size_t place = place_of(names, name);
  if (place == CsvColumns::kNone)
    refuse(rows.place(1), "found no column '", name, "', expected it as ", what, "; the nearest is '",
           nearest(name, names), "'");
  return place;
}

std::vector<std::string> header_names(const TableRows& rows) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const Field& field : rows.fields()) {
    if (field.text.empty()) refuse(rows.place(field.column), "found nothing, expected the name of a column");
    if (!seen.insert(field.text).second)
      refuse(rows.place(field.column), "found the column ", in_quotes(field.text),
             " twice, expected each once");
    names.emplace_back(field.text);
  }
  return names;
}

}  // namespace

void CsvColumns::find_part(const TableRows& first_row) {
  const auto is_part = [&](size_t c) {
    const std::string_view text = first_row.fields()[c].text;
    return names[c] == "part" && !text.empty() && part_named(text);
  };
  const auto found = std::find_if(channels.begin(), channels.end(), is_part);
  if (found == channels.end()) return;
  part = *found;
  channels.erase(found);
}

std::vector<std::string> CsvColumns::channel_names() const {
  std::vector<std::string> result;
  for (const size_t c : channels) result.push_back(names[c]);
  return result;
}

CsvColumns read_csv_columns(TableRows& rows, const TableColumns& names, CsvColumns::Ids ids) {
  if (!rows.next()) refuse({rows.place(1).file, 1, 1}, "found an empty file, expected a header");
  CsvColumns columns = {.names = header_names(rows)};
  const std::vector<std::string>& found = columns.names;
  columns.id = ids == CsvColumns::Ids::Wanted ? wanted(rows, found, names.id, "the id of a series")
                                              : place_of(found, names.id);
  columns.time = wanted(rows, found, names.time, "the time");
  // a table need not have labels, unless they were asked for by another name
  const auto answer = [&](const std::string& name, const char* what) {
    return names.answers == Answers::Wanted ? wanted(rows, found, name, what) : place_of(found, name);
  };
  columns.label = names.label == TableColumns().label || names.label.empty()
                      ? place_of(found, names.label)
                      : answer(names.label, "the label");
  if (!names.group.empty() && ids == CsvColumns::Ids::Wanted)
    columns.group = answer(names.group, "the group");
  // of a table per series, these stand in labels.csv
  if (ids == CsvColumns::Ids::Wanted) {
    for (const std::string& name : names.statics)
      columns.statics.push_back(wanted(rows, found, name, "a static feature"));
    for (const std::string& name : names.targets) {
      const size_t place = answer(name, "a target");
      if (place != CsvColumns::kNone) columns.targets.push_back(place);
    }
  }
  std::vector<size_t> others = {columns.id, columns.time, columns.label, columns.group};
  others.insert(others.end(), columns.statics.begin(), columns.statics.end());
  others.insert(others.end(), columns.targets.begin(), columns.targets.end());
  // the label may be asked for as a target: then it is a number and no class
  if (std::find(columns.targets.begin(), columns.targets.end(), columns.label) != columns.targets.end())
    columns.label = CsvColumns::kNone;
  for (size_t c = 0; c < found.size(); ++c) {
    if (std::find(others.begin(), others.end(), c) == others.end()) columns.channels.push_back(c);
  }
  return columns;
}

void check_width(const TableRows& row, const CsvColumns& columns) {
  const size_t found = row.fields().size(), expected = columns.names.size();
  if (found != expected)
    refuse(row.place(row.fields().back().column), "found ", found, " fields, expected ", expected,
           " as in the header");
}

std::optional<Part> part_named(std::string_view text) {
  const std::string word = lowercase(text);
  if (word == "train") return Part::Train;
  if (word == "validation") return Part::Validation;
  if (word == "test") return Part::Test;
  if (word.empty() || word == "any") return Part::Any;
  return std::nullopt;
}

Part read_part(std::string_view text, const Place& place) {
  const std::optional<Part> part = part_named(text);
  if (!part) refuse(place, "found ", in_quotes(text), ", expected train, validation, test or nothing");
  return *part;
}

}  // namespace fastweights

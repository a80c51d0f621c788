#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/parsers.h"

/// The meaning of the columns of a table, for one table of all series and for a table per series.

namespace fastweights::data {

/// Indices of columns in a row.
struct CsvColumns {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  enum class Ids { Required, Optional };

  std::vector<std::string> names = {};
  size_t id = kNone, time = kNone, label = kNone, group = kNone, part = kNone;
  std::vector<size_t> channels = {}, statics = {}, targets = {};
  std::vector<size_t> unused = {};      ///< not read, but kept as they are
  std::vector<std::string> notes = {};  ///< about a column that was left out, or labels that were not found

  /// A column named part holds parts instead of channel values if the first row has train, validation or
  /// test there.
  void find_part(const TableRows& first_row, const TableColumns& named);
  std::vector<std::string> names_of(const std::vector<size_t>& columns) const;
};

/// A note about a column that may hold the labels, if no column has the name; "" if no name is near in
/// spelling.
std::string label_note(const TableColumns& names, const std::vector<std::string>& others);

/// The name of a column without a name that is the first one: an index, as pandas writes it.
inline constexpr const char* kIndexColumn = "Unnamed: 0";

/// Reads the header of a table; a missing required column is an error.
CsvColumns read_csv_columns(TableRows& rows, const TableColumns& names, CsvColumns::Ids ids);

/// Names of the columns of a table, for those who write it again.
SourceColumns source_columns(const TableColumns& names);

/// Appends the unused cells of a row, and the text of its date if `odd_date` is one.
void keep_texts(Series& series, const TableRows& row, const CsvColumns& columns, const std::string& odd_date);

/// Rejects a row with more or fewer fields than the header.
void check_width(const TableRows& row, const CsvColumns& columns);

/// train, validation or test; "any" or empty: Any; otherwise nothing.
std::optional<Part> part_named(std::string_view text);
Part read_part(std::string_view text, const Location& location);

}  // namespace fastweights::data

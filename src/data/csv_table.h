#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/parsers.h"

/// What the columns of a table of series mean; used for one table of all and for a table per series.

namespace fastweights {

/// Places of columns in a row.
struct CsvColumns {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  enum class Ids { Wanted, Optional };

  std::vector<std::string> names = {};
  size_t id = kNone, time = kNone, label = kNone, group = kNone, part = kNone;
  std::vector<size_t> channels = {}, statics = {}, targets = {};

  /// A column that is called part is one, and no channel, if the first row says train, validation or test.
  void find_part(const TableRows& first_row);
  std::vector<std::string> channel_names() const;
};

/// Reads the header of a table; a column that is asked for and not there is an error.
CsvColumns read_csv_columns(TableRows& rows, const TableColumns& names, CsvColumns::Ids ids);

/// Refuses a row with more or fewer fields than the header.
void check_width(const TableRows& row, const CsvColumns& columns);

/// train, validation, test; any or nothing for Any.
std::optional<Part> part_named(std::string_view text);
Part read_part(std::string_view text, const Place& place);

}  // namespace fastweights

#pragma once

#include <string>
#include <vector>

#include "fastweights/data.h"

/// Text columns as channels "column=value", one for each value.

namespace fastweights::data {

/// Name, number of values and values of each column, for files; throws if a file has anything else.
std::vector<std::string> flattened(const std::vector<TextColumn>& columns);
std::vector<TextColumn> text_columns(const std::vector<std::string>& flat);

/// Some columns of a table of the given width.
std::vector<double> take_columns(const std::vector<double>& table, size_t width,
                                 const std::vector<size_t>& which);

/// A table of values with the names of its columns, and those that are text.
struct NamedTable {
  std::vector<std::string>& names;
  std::vector<TextColumn>& texts;
  std::vector<double>& values;
};

/// Adds the channels of values that the table lacks, of text columns that it has: 0, or missing.
void add_text_channels(const NamedTable& table, const std::vector<TextColumn>& known);

}  // namespace fastweights::data

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/data.h"

/// Counts of what a file must contain. Tables and .ts files that are cut at the end of a line are valid, so
/// their writer stores the counts, and their reader compares: in the file <table>.rows beside a table, which
/// leaves the table as other programs expect it, and in a comment of a .ts file.

namespace fastweights::data {

/// The beginning of the comment of a .ts file.
inline constexpr std::string_view kCountsComment = "written by fastweights with ";

/// "120 series, 5400 rows"
std::string counts_text(const DataSet& data);

/// A file with counts.
struct CountedFile {
  std::string path;
  std::string_view text;
};

/// An error if the series have other counts, or if the text ends within a line; `where` is where the counts
/// stand.
void check_counts(std::string_view counts, const std::vector<Series>& series, const CountedFile& file,
                  const std::string& where);

/// The same with the counts of <table>.rows, if there is such a file.
void check_table_counts(const CountedFile& table, const std::vector<Series>& series);

/// <table>.rows
std::string counts_file(const std::string& table);

}  // namespace fastweights::data

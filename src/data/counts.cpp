#include "data/counts.h"

#include <filesystem>

#include "base/error.h"
#include "data/files.h"
#include "data/text.h"

namespace fastweights::data {
namespace {

std::string counts_text(size_t series, size_t rows) { return message(series, " series, ", rows, " rows"); }

}  // namespace

std::string counts_text(const DataSet& data) {
  return counts_text(data.ids.size(), static_cast<size_t>(data.rows()));
}

void check_counts(std::string_view counts, const std::vector<Series>& series, const CountedFile& file,
                  const std::string& where) {
  size_t rows = 0;
  for (const Series& s : series) rows += s.times.size();
  const std::string found =
      counts_text(series.size(), rows) + (file.text.ends_with('\n') ? "" : " and no end of the last line");
  if (trimmed(counts) != found)
    throw std::runtime_error(message(file.path, ": expected ", in_quotes(trimmed(counts)), " as written in ",
                                     where, ", got '", found,
                                     "'; the file was cut, or changed later: then remove ", where));
}

void check_table_counts(const CountedFile& table, const std::vector<Series>& series) {
  const std::string file = counts_file(table.path);
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) check_counts(read_bytes(file, {}), series, table, file);
}

std::string counts_file(const std::string& table) { return table + ".rows"; }

}  // namespace fastweights::data

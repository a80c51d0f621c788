#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/read.h"

/// Folders with many small files: found in an order that is the same on every machine, read by all cores.

namespace fastweights {

/// The bytes of a file; a std::runtime_error that names it if it cannot be read.
std::string file_bytes(const std::string& path);

/// Regular files below a folder whose names end like this, sorted. An error if it is no folder.
std::vector<std::string> files_below(const std::string& folder, std::string_view ending);

/// Name of a path without its folders; stem() also without its ending.
std::string file_name(const std::string& path);
std::string stem(const std::string& path);

/// A file as one series, or the reason why it is no part of the set although nothing is wrong with it.
struct FileSeries {
  Series series = {};
  std::string left_out = {};
};

struct FolderSeries {
  std::vector<Series> series = {};  ///< in the order of the files
  /// broken files with their errors, then how many were left out for each reason
  std::vector<std::string> skipped = {};
};

/// Reads files in several threads; progress is called by this thread. The error is that of the first broken
/// file in order, if they are not to be skipped.
FolderSeries read_files(const std::vector<std::string>& files, const ReadOptions& options,
                        const std::function<FileSeries(const std::string&)>& read);

/// Cuts lines off a text, without their ends; empty lines at the end of a file are none.
class FileLines {
 public:
  explicit FileLines(std::string_view text) : rest_(text) {}
  bool next();
  std::string_view line() const { return line_; }
  int64_t number() const { return number_; }

 private:
  std::string_view rest_, line_ = {};
  int64_t number_ = 0;
};

/// What stands between separators.
std::vector<std::string_view> fields(std::string_view line, char separator);

/// Where a field stands, for messages.
struct FieldPlace {
  const std::string& file;
  int64_t line;
  std::string_view column;
};

/// Throws a std::runtime_error: "<file>: line 3, column 'HR': found 'x', expected a number".
[[noreturn]] void refuse_field(const FieldPlace& place, std::string_view found, std::string_view expected);

/// A finite number, or NaN for "NaN".
double number_or_nan(std::string_view text, const FieldPlace& place);
double field_number(std::string_view text, const FieldPlace& place);

}  // namespace fastweights

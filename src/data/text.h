#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"

/// Lexical parts of text files: encoding, lines, fields and numbers.

namespace fastweights::data {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  ///< a missing value

/// A position in a file, as editors count: from 1, columns in bytes.
struct Location {
  std::string_view file;
  int64_t row = 1;
  int64_t column = 1;
};

/// Throws `file:row:column: ...`.
template <typename... Parts>
[[noreturn]] void refuse(const Location& location, const Parts&... parts) {
  throw std::runtime_error(message(location.file, ":", location.row, ":", location.column, ": ", parts...));
}

/// Text in UTF-8, and the encoding that was assumed: "" for UTF-8. Bytes that are not UTF-8 are read as
/// Windows-1252, a superset of Latin-1. A file may also be UTF-16 with a byte order mark.
struct DecodedText {
  std::string text = {};
  std::string encoding = {};
};
DecodedText decoded(std::string name);
DecodedText decoded_file(std::string bytes);

/// Rejects binary data: bytes that contain a zero are neither UTF-8 nor another extension of ASCII.
void require_text(std::string_view text, std::string_view file);

/// The text without a UTF-8 byte order mark.
std::string_view without_mark(std::string_view text);

/// Without white space at both ends.
std::string_view trimmed(std::string_view text);
std::string lowercase(std::string_view text);

/// For messages: printable, quoted, truncated if long.
std::string in_quotes(std::string_view text);

/// The same without quotes, for names of members of an archive.
std::string shown_name(std::string_view name);

/// The whole text as a number, correctly rounded; NaN and infinities are accepted, by name or by overflow.
std::optional<double> parse_number(std::string_view text);

/// "", "?", NaN, NA or null, in upper or lower case.
bool is_missing(std::string_view text);

/// A finite number, or NaN for a missing value; `what` is the expectation in the error message.
double number_or_missing(std::string_view text, const Location& location, std::string_view what = "a number");

/// A finite number, without spaces around it, in the column of this name.
double finite_number(std::string_view text, const Location& location, std::string_view column);

/// The shortest text that reads back as the same number.
std::string exact(double x);

/// Without trailing line ends.
std::string_view without_last_ends(std::string_view text);

/// Lines, terminated by \n or \r\n.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(without_mark(text)) {}
  bool next();
  std::string_view line() const { return line_; }
  int64_t row() const { return row_; }

 private:
  std::string_view rest_, line_;
  int64_t row_ = 0;
};

/// A field of a table and its first column.
struct Field {
  std::string_view text;
  int64_t column = 1;
};

/// Fields of a line without quoting, and their number. At most `most` are returned.
std::vector<Field> fields(std::string_view line, char separator, size_t most = static_cast<size_t>(-1));
size_t field_count(std::string_view line, char separator);

/// Bytes of the name of a column, and of a text that becomes part of the name of a channel.
inline constexpr size_t kLongestName = 1000;

/// Rows of a table. Quoted fields may contain separators, line ends, and quotes doubled as "".
class TableRows {
 public:
  /// The separator is the first semicolon, tab or comma of the first line, outside quotes; without one it is
  /// a bar, if there is one. `limit`: of the memory for the names of columns.
  TableRows(std::string_view text, std::string_view file, size_t limit = static_cast<size_t>(-1));
  /// Advances to the next row that is not empty.
  bool next();
  const std::vector<Field>& fields() const { return fields_; }
  int64_t row() const { return row_; }
  char separator() const { return separator_; }
  Location location(int64_t column) const { return {file_, row_, column}; }

 private:
  void read_row();
  std::string_view quoted_field();

  std::string_view text_, file_;
  size_t limit_ = 0;
  char separator_ = ',';
  size_t at_ = 0, row_begin_ = 0;
  int64_t row_ = 0, next_row_ = 1;
  std::vector<Field> fields_;
  std::deque<std::string> unquoted_;  // fields() refers to these
};

}  // namespace fastweights::data

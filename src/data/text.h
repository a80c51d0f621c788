#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/error.h"

/// Text files of other people: their lines, fields and numbers. Bytes above 127 pass through as they are.

namespace fastweights {

/// A place in a file, as an editor counts: from 1, the column in bytes.
struct Place {
  std::string_view file;
  int64_t row = 1;
  int64_t column = 1;
};

/// Throws `file:row:column: ...`.
template <typename... Parts>
[[noreturn]] void refuse(const Place& place, const Parts&... parts) {
  throw std::runtime_error(message(place.file, ":", place.row, ":", place.column, ": ", parts...));
}

/// All bytes of a file; a missing or unreadable file or a folder is an error.
std::string whole_file(const std::string& path);

/// Refuses bytes that are no text in UTF-8 or another extension of ASCII: those that hold a zero.
void require_text(std::string_view text, std::string_view file);

/// The text without the mark that some editors put in front of UTF-8.
std::string_view without_mark(std::string_view text);

/// Without spaces and tabs at both ends.
std::string_view trimmed(std::string_view text);
std::string lowercase(std::string_view text);

/// For messages: in quotes, cut if long, unprintable bytes as '?'.
std::string in_quotes(std::string_view text);

/// The number that the whole text is, to the last bit; NaN and infinities, too, by name or by size.
std::optional<double> parse_number(std::string_view text);

/// "", "?", NaN, NA, null in any case: not observed.
bool is_missing(std::string_view text);

/// A finite number, or NaN for what was not observed; `what` says in the message what is expected.
double number_or_missing(std::string_view text, const Place& place, std::string_view what = "a number");

/// A finite number, without spaces around it, in the column of this name.
double finite_number(std::string_view text, const Place& place, std::string_view column);

/// The shortest text that reads back as the same number.
std::string exact(double x);

/// Without line ends at the end.
std::string_view without_last_ends(std::string_view text);

/// Lines, ended by \n or \r\n.
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

/// A field of a table and the column in which it begins.
struct Field {
  std::string_view text;
  int64_t column = 1;
};

/// What stands between separators in a line without quotes.
std::vector<Field> fields(std::string_view line, char separator);

/// Rows of a table with one separator; fields may be quoted, and then hold separators, "" and line ends.
class TableRows {
 public:
  /// The separator is a semicolon, a tab or a comma: the first of these in the first line, outside quotes.
  TableRows(std::string_view text, std::string_view file);
  /// The next row that is not empty.
  bool next();
  const std::vector<Field>& fields() const { return fields_; }
  int64_t row() const { return row_; }
  Place place(int64_t column) const { return {file_, row_, column}; }

 private:
  void read_row();
  std::string_view quoted_field();

  std::string_view text_, file_;
  char separator_ = ',';
  size_t at_ = 0, row_begin_ = 0;
  int64_t row_ = 0, next_row_ = 1;
  std::vector<Field> fields_;
  std::deque<std::string> unquoted_;  // views of them are handed out
};

}  // namespace fastweights

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text.h"
#include "fastweights/data.h"

/// Cells of a table: numbers, text, missing values.

namespace fastweights::data {

/// Reads cells of one file.
class Cells {
 public:
  Cells(const TableForm& form, char separator);

  /// Whether a label or the name of a group is missing.
  bool is_missing_name(std::string_view text) const;
  /// NaN for a missing value, nothing for text.
  std::optional<double> value(std::string_view text);
  /// A finite number, or NaN for a missing value, in the column of this name.
  double number(std::string_view column, std::string_view text, const Location& location);
  /// The text of a number with a decimal point; any other text as it is. Valid until the next call.
  std::string_view with_point(std::string_view text);
  /// The decimal mark of the numbers so far.
  char mark() const { return mark_ == DecimalMark::Comma ? ',' : '.'; }

 private:
  bool is_missing_word(std::string_view text) const;
  std::optional<double> parsed(std::string_view text);

  std::vector<std::string> words_;  // of TableForm::missing
  std::vector<double> numbers_;     // those that are numbers
  DecimalMark mark_;                // Automatic: no number so far has a mark
  std::string buffer_;
};

/// "use --missing 'n/a'", and for a number with a comma "--decimal comma".
std::string advice_on(std::string_view text);

/// The columns of a kind, such as the channels of all rows. A column is text if none of its values is a
/// number, which is known when all rows have been read; until then a text is the index of its value.
class Columns {
 public:
  /// Those in `texts` are text in any case.
  Columns(std::vector<std::string> names, const std::vector<std::string>& texts);

  /// The same names, before any row.
  Columns without_values() const;

  size_t size() const { return columns_.size(); }
  const std::string& name(size_t column) const { return columns_[column].name; }
  double read(size_t column, Cells& cells, std::string_view text, const Location& location);
  /// For messages.
  std::string shown(size_t column, double value) const;

  bool has_numbers(size_t column) const { return columns_[column].numbers; }
  /// The first text of a column as an error message, which it is if the column has numbers; "" without text.
  const std::string& first_text(size_t column) const { return columns_[column].first_text; }
  bool any_text() const;
  /// Rejects a column with numbers and text.
  void check() const;

  /// Adds the knowledge of which columns have numbers in another table of the same names; whether it is new.
  bool join_numbers(const Columns& other);
  /// Adds the texts of another table, to which the values in `rows` then refer; `where` is for errors.
  void join_texts(const Columns& other, std::vector<double>& rows, const std::string& where);

  /// Names, and the text columns, when all rows have been read.
  std::vector<std::string> names() const;
  std::vector<TextColumn> texts() const;
  size_t width() const;
  /// An error if so many rows of text columns would take more than the limit.
  void require_room(size_t rows, size_t limit, std::string_view file) const;
  /// Rows of values as rows of these names: a column of text becomes a column for each of its values.
  void expand(std::vector<double>& rows) const;

 private:
  struct Column {
    std::string name = {};
    bool forced = false, numbers = false;
    std::vector<std::string> texts = {};  // in the order in which they were found
    std::unordered_map<std::string, size_t> indices = {};
    std::string first_text = {};  // the error, if the column has numbers
  };
  static bool is_text(const Column& column);
  // positions of the texts in alphabetical order
  static std::vector<size_t> ranks(const Column& column);
  static double index_of(Column& column, std::string_view text, std::string_view where);

  std::vector<Column> columns_;
};

}  // namespace fastweights::data

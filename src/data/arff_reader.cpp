#include <algorithm>
#include <cmath>
#include <set>

#include "data/files.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

// a token of a line, unquoted, with \' and \" unescaped
struct Token {
  std::string text;
  int64_t column = 1;
  bool quoted = false;
};

struct ArffHeader {
  int64_t time_points = 0;  // numeric attributes
  bool relational = false, nominal = false;
  std::vector<std::string> classes = {};
};

// tokens of a line
class Scanner {
 public:
  Scanner(std::string_view line, Location location, size_t at = 0)
      : line_(line), location_(location), at_(at) {}

  void skip_spaces() { at_ = std::min(line_.find_first_not_of(" \t", at_), line_.size()); }
  bool done() {
    skip_spaces();
    return at_ >= line_.size();
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  Location location() const { return {location_.file, location_.row, static_cast<int64_t>(at_) + 1}; }
  std::string_view rest() const { return line_.substr(at_); }
  size_t at() const { return at_; }

  // up to one of these characters, or a quoted text
  Token token(std::string_view ends) {
    skip_spaces();
    Token token = {.text = {}, .column = static_cast<int64_t>(at_) + 1};
    if (at_ < line_.size() && (line_[at_] == '\'' || line_[at_] == '"')) {
      token.quoted = true;
      token.text = quoted_text(line_[at_]);
      return token;
    }
    const size_t from = at_;
    at_ = std::min(line_.find_first_of(ends, from), line_.size());
    token.text = trimmed(line_.substr(from, at_ - from));
    return token;
  }

 private:
  std::string quoted_text(char quote) {
    const Location begin = location();
    std::string text;
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      const bool escape = line_[at_] == '\\' && at_ + 1 < line_.size();
      if (escape && (line_[at_ + 1] == '\'' || line_[at_ + 1] == '"')) ++at_;
      text += line_[at_];
    }
    if (at_ >= line_.size()) refuse(begin, "expected a closing ", quote, " before the end of the line");
    ++at_;
    return text;
  }

  std::string_view line_;
  Location location_;
  size_t at_;
};

// {a, 'b c', ...} after the name of an attribute
std::vector<std::string> read_names(Scanner& scanner, size_t limit) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  while (!scanner.take('}')) {
    if (scanner.done()) refuse(scanner.location(), "expected }, got the end of the line");
    const Location location = scanner.location();
    const Token name = scanner.token(",}");
    if (name.text.empty()) refuse(location, "expected the name of a class, got nothing");
    if (!seen.insert(name.text).second) refuse(location, "duplicate class ", in_quotes(name.text));
    names.push_back(name.text);
    require_parts(names.size(), kNameBytes, limit, location.file, "its classes");
    scanner.take(',');
  }
  return names;
}

enum class Where { Outside, InsideRelation };

// one @attribute; returns whether a relation begins
Where read_attribute(ArffHeader& header, Scanner& scanner, Where where, size_t limit) {
  const Token name = scanner.token(" \t{");
  if (name.text.empty()) refuse(scanner.location(), "expected the name of an attribute, got nothing");
  const Location location = scanner.location();
  if (header.nominal)
    refuse(location, "expected @data after the classes, got the attribute ", in_quotes(name.text));
  if (scanner.take('{')) {
    if (where == Where::InsideRelation)
      refuse(location, "expected numeric attributes inside a relation, got the nominal attribute ",
             in_quotes(name.text));
    header.nominal = true;
    header.classes = read_names(scanner, limit);
    return where;
  }
  const Token kind = scanner.token(" \t[");
  const std::string word = lowercase(kind.text);
  if (word == "relational" && where == Where::Outside && !header.relational && header.time_points == 0) {
    header.relational = true;
    return Where::InsideRelation;
  }
  if (word != "numeric" && word != "real" && word != "integer")
    refuse(location, "attribute ", in_quotes(name.text),
           ": expected the type numeric, real, integer, relational (once) or {classes}, got ",
           in_quotes(kind.text));
  if (header.relational && where == Where::Outside)
    refuse(location, "expected {classes} after the relation, got the numeric attribute ",
           in_quotes(name.text));
  ++header.time_points;
  return where;
}

// the lines up to @data
ArffHeader read_arff_header(Lines& lines, const std::string& file, size_t limit) {
  ArffHeader header;
  Where where = Where::Outside;
  while (lines.next()) {
    Scanner scanner(lines.line(), {file, lines.row(), 1});
    if (scanner.done() || scanner.rest().front() == '%') continue;
    const Location location = scanner.location();
    const std::string key = lowercase(scanner.token(" \t").text);
    if (key == "@attribute") {
      where = read_attribute(header, scanner, where, limit);
    } else if (key == "@end" && where == Where::InsideRelation) {
      where = Where::Outside;
    } else if (key == "@data") {
      if (where == Where::InsideRelation) refuse(location, "expected @end of the relation, got @data");
      if (header.time_points == 0) refuse(location, "no numeric attribute; expected one per time point");
      return header;
    } else if (key != "@relation") {
      refuse(location, "expected @relation, @attribute, @end or @data, got ", in_quotes(key));
    }
  }
  refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "expected @data, got the end of the file");
}

// numbers between commas, one per time point
std::vector<double> read_row(std::string_view text, int64_t count, const Location& location) {
  std::vector<double> values;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    values.push_back(number_or_missing(
        text.substr(from, to - from),
        {location.file, location.row, location.column + static_cast<int64_t>(from)}, "a number or ?"));
    from = to + 1;
  }
  if (static_cast<int64_t>(values.size()) != count)
    refuse(location, "expected ", count, " values, one per attribute, got ", values.size());
  return values;
}

// the dimensions of a case, separated by \n inside quotes
std::vector<std::vector<double>> read_relation(std::string_view text, int64_t count,
                                               const Location& location) {
  std::vector<std::vector<double>> rows;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find("\\n", from), text.size());
    const std::string_view row = text.substr(from, to - from);
    // the last one may also be terminated
    if (!trimmed(row).empty() || to != text.size())
      rows.push_back(
          read_row(row, count, {location.file, location.row, location.column + static_cast<int64_t>(from)}));
    from = to + 2;
  }
  if (rows.empty()) refuse(location, "expected rows of numbers separated by \\n, got an empty relation");
  return rows;
}

// files pad shorter series with ? at the end: trailing steps without any value are dropped
void fill(Series& series, const std::vector<std::vector<double>>& rows) {
  size_t length = rows[0].size();
  const auto observed = [&](size_t i) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return !std::isnan(row[i]); });
  };
  while (length > 1 && !observed(length - 1)) --length;
  for (size_t i = 0; i < length; ++i) {
    series.times.push_back(static_cast<double>(i));
    for (const std::vector<double>& row : rows) series.values.push_back(row[i]);
  }
}

// the values of a case, and the offset of their end
struct ArffRows {
  std::vector<std::vector<double>> rows;
  size_t end = 0;
};

ArffRows relational_rows(const ArffHeader& header, std::string_view line, const Location& row) {
  Scanner scanner(line, row);
  const Token token = scanner.token(",");
  if (!token.quoted) refuse(row, "expected a quoted relation like '1,2\\n3,4', got ", in_quotes(token.text));
  return {read_relation(token.text, header.time_points, {row.file, row.row, token.column + 1}), scanner.at()};
}

ArffRows plain_rows(const ArffHeader& header, std::string_view line, const Location& row) {
  size_t end = line.size();
  // the class may be quoted and contain a comma: values are counted from the left
  for (int64_t i = 0; header.nominal && i < header.time_points; ++i) {
    end = line.find(',', i == 0 ? 0 : end + 1);
    if (end == std::string_view::npos)
      refuse(row, "expected ", header.time_points + 1, " fields (", header.time_points,
             " values and the class), got ", i + 1);
  }
  return {{read_row(line.substr(0, end), header.time_points, row)}, end};
}

void read_case(Parsed& parsed, const ArffHeader& header, std::string_view line, const Location& row) {
  Series series;
  series.where = message(row.file, ":", row.row);
  const auto [rows, end] =
      header.relational ? relational_rows(header, line, row) : plain_rows(header, line, row);
  Scanner scanner(line, row, end);
  if (header.nominal) {
    if (!scanner.take(','))
      refuse(scanner.location(), "expected a comma and the class, got ", in_quotes(scanner.rest()));
    const Location location = scanner.location();
    const Token token = scanner.token(",");
    const std::string_view label = token.text;
    if (label.empty()) refuse(location, "expected the class, or ? if unknown, got nothing");
    if (label != "?") series.label = label;
  }
  if (!scanner.done())
    refuse(scanner.location(), "expected the end of the line, got ", in_quotes(scanner.rest()));
  if (parsed.head.channels.empty()) parsed.head.channels = numbered_channels(rows.size());
  if (rows.size() != parsed.head.channels.size())
    refuse(row, "expected ", parsed.head.channels.size(), " dimensions as in the first case, got ",
           rows.size());
  fill(series, rows);
  parsed.series.push_back(std::move(series));
}

}  // namespace

Parsed parse_arff(std::string_view text, const std::string& file, size_t limit) {
  require_text(text, file);
  Lines lines(text);
  const ArffHeader header = read_arff_header(lines, file, limit);
  Parsed parsed;
  parsed.head.classes = header.classes;
  parsed.head.time_unit = "step";
  size_t used = 0;  // values
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line());
    if (line.empty() || line.front() == '%') continue;
    const Location location = {file, lines.row(), 1};
    if (line.front() == '{') refuse(location, "expected comma-separated values, got a sparse case in {}");
    require_parts(parsed.series.size(), kSeriesBytes, limit, file, "its series");
    // a value has at least one character, and a comma or the two of \n
    const size_t commas = field_count(line, ','), rows = header.relational ? field_count(line, '\\') : 1;
    require_parts(rows, kDimensionBytes, limit, file, "its dimensions");
    used += commas + rows;
    require_parts(used, kValueBytes, limit, file, "its values");
    read_case(parsed, header, lines.line(), location);
  }
  if (parsed.series.empty()) refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "no case after @data");
  return parsed;
}

DataSet read_arff(const std::string& path, const ReadOptions& options) {
  return read_parts(path, ".arff", options, parse_arff);
}

}  // namespace fastweights::data

#include <algorithm>
#include <cmath>
#include <set>

#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights {
namespace {

// a piece of a line; quotes are taken away, and \' and \" inside them
struct Token {
  std::string text;
  int64_t column = 1;
  bool quoted = false;
};

struct ArffHeader {
  int64_t numbers = 0;  // attributes that are time points
  bool relational = false, nominal = false;
  std::vector<std::string> classes = {};
};

// walks through a line
class Scanner {
 public:
  Scanner(std::string_view line, Place place, size_t at = 0) : line_(line), place_(place), at_(at) {}

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
  Place place() const { return {place_.file, place_.row, static_cast<int64_t>(at_) + 1}; }
  std::string_view rest() const { return line_.substr(at_); }
  size_t at() const { return at_; }

  // up to one of these characters, or what is in quotes
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
    const Place begin = place();
    std::string text;
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      const bool escape = line_[at_] == '\\' && at_ + 1 < line_.size();
      if (escape && (line_[at_ + 1] == '\'' || line_[at_ + 1] == '"')) ++at_;
      text += line_[at_];
    }
    if (at_ >= line_.size()) refuse(begin, "found a quote that is never closed, expected ", quote);
    ++at_;
    return text;
  }

  std::string_view line_;
  Place place_;
  size_t at_;
};

// {a, 'b c', ...} behind the name of an attribute
std::vector<std::string> read_names(Scanner& scanner) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  while (!scanner.take('}')) {
    if (scanner.done()) refuse(scanner.place(), "found the end of the line, expected }");
    const Place place = scanner.place();
    const Token name = scanner.token(",}");
    if (name.text.empty()) refuse(place, "found nothing, expected the name of a class");
    if (!seen.insert(name.text).second)
      refuse(place, "found the class ", in_quotes(name.text), " twice, expected each once");
    names.push_back(name.text);
    scanner.take(',');
  }
  return names;
}

enum class Where { Outside, InsideRelation };

// one @attribute; says whether a relation begins
Where read_attribute(ArffHeader& header, Scanner& scanner, Where where) {
  const Token name = scanner.token(" \t{");
  if (name.text.empty()) refuse(scanner.place(), "found nothing, expected the name of an attribute");
  const Place place = scanner.place();
  if (header.nominal)
    refuse(place, "found the attribute ", in_quotes(name.text), " behind the classes, expected @data");
  if (scanner.take('{')) {
    if (where == Where::InsideRelation)
      refuse(place, "found the nominal attribute ", in_quotes(name.text),
             " inside a relation, expected numbers");
    header.nominal = true;
    header.classes = read_names(scanner);
    return where;
  }
  const Token kind = scanner.token(" \t[");
  const std::string word = lowercase(kind.text);
  if (word == "relational" && where == Where::Outside && !header.relational && header.numbers == 0) {
    header.relational = true;
    return Where::InsideRelation;
  }
  if (word != "numeric" && word != "real" && word != "integer")
    refuse(place, "found the type ", in_quotes(kind.text), " of attribute ", in_quotes(name.text),
           ", expected numeric, real, integer, one relational, or {classes}");
  if (header.relational && where == Where::Outside)
    refuse(place, "found the number ", in_quotes(name.text), " beside a relation, expected {classes}");
  ++header.numbers;
  return where;
}

// the lines up to @data
ArffHeader read_header(Lines& lines, const std::string& file) {
  ArffHeader header;
  Where where = Where::Outside;
  while (lines.next()) {
    Scanner scanner(lines.line(), {file, lines.row(), 1});
    if (scanner.done() || scanner.rest().front() == '%') continue;
    const Place place = scanner.place();
    const std::string key = lowercase(scanner.token(" \t").text);
    if (key == "@attribute") {
      where = read_attribute(header, scanner, where);
    } else if (key == "@end" && where == Where::InsideRelation) {
      where = Where::Outside;
    } else if (key == "@data") {
      if (where == Where::InsideRelation) refuse(place, "found @data inside a relation, expected @end");
      if (header.numbers == 0) refuse(place, "found no numeric attribute, expected one per time point");
      return header;
    } else if (key != "@relation") {
      refuse(place, "found ", in_quotes(key), ", expected @relation, @attribute, @end or @data");
    }
  }
  refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "found the end of the file, expected @data");
}

// numbers between commas, one per time point
std::vector<double> read_row(std::string_view text, int64_t wanted, const Place& place) {
  std::vector<double> values;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    values.push_back(number_or_missing(text.substr(from, to - from),
                                       {place.file, place.row, place.column + static_cast<int64_t>(from)},
                                       "a number or ?"));
    from = to + 1;
  }
  if (static_cast<int64_t>(values.size()) != wanted)
    refuse(place, "found ", values.size(), " values, expected ", wanted, ", one per attribute");
  return values;
}

// the dimensions of a case, which stand in quotes with \n between them
std::vector<std::vector<double>> read_relation(std::string_view text, int64_t wanted, const Place& place) {
  std::vector<std::vector<double>> rows;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find("\\n", from), text.size());
    const std::string_view row = text.substr(from, to - from);
    // the last one may be ended, too
    if (!trimmed(row).empty() || to != text.size())
      rows.push_back(
          read_row(row, wanted, {place.file, place.row, place.column + static_cast<int64_t>(from)}));
    from = to + 2;
  }
  if (rows.empty()) refuse(place, "found an empty relation, expected rows of numbers with \\n between them");
  return rows;
}

// files with series of different lengths are filled with ? at the end: steps without any value are cut off
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

// the values of a case, and the place where they end
struct Rows {
  std::vector<std::vector<double>> rows;
  size_t end = 0;
};

Rows relational_rows(const ArffHeader& header, std::string_view line, const Place& row) {
  Scanner scanner(line, row);
  const Token token = scanner.token(",");
  if (!token.quoted)
    refuse(row, "found ", in_quotes(token.text), ", expected a quoted relation like '1,2\\n3,4'");
  return {read_relation(token.text, header.numbers, {row.file, row.row, token.column + 1}), scanner.at()};
}

Rows plain_rows(const ArffHeader& header, std::string_view line, const Place& row) {
  size_t end = line.size();
  // the class may be quoted and hold a comma: numbers are counted from the left
  for (int64_t i = 0; header.nominal && i < header.numbers; ++i) {
    end = line.find(',', i == 0 ? 0 : end + 1);
    if (end == std::string_view::npos)
      refuse(row, "found ", i, " commas, expected ", header.numbers, " values and the class");
  }
  return {{read_row(line.substr(0, end), header.numbers, row)}, end};
}

void read_case(Parsed& parsed, const ArffHeader& header, std::string_view line, const Place& row) {
  Series series;
  series.where = message(row.file, ":", row.row);
  const auto [rows, end] =
      header.relational ? relational_rows(header, line, row) : plain_rows(header, line, row);
  Scanner scanner(line, row, end);
  if (header.nominal) {
    if (!scanner.take(','))
      refuse(scanner.place(), "found ", in_quotes(scanner.rest()), ", expected a comma and the class");
    const Place place = scanner.place();
    const Token token = scanner.token(",");
    const std::string_view label = token.text;
    if (label.empty()) refuse(place, "found nothing, expected the class, or ? for an unknown one");
    if (label != "?") series.label = label;
  }
  if (!scanner.done())
    refuse(scanner.place(), "found ", in_quotes(scanner.rest()), ", expected the end of the line");
  if (parsed.head.channels.empty()) parsed.head.channels = numbered_channels(rows.size());
  if (rows.size() != parsed.head.channels.size())
    refuse(row, "found ", rows.size(), " dimensions, expected ", parsed.head.channels.size(),
           " as in the first case");
  fill(series, rows);
  parsed.series.push_back(std::move(series));
}

}  // namespace

Parsed parse_arff(std::string_view text, const std::string& file) {
  require_text(text, file);
  Lines lines(text);
  const ArffHeader header = read_header(lines, file);
  Parsed parsed;
  parsed.head.classes = header.classes;
  parsed.head.time_unit = "step";
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line());
    if (line.empty() || line.front() == '%') continue;
    const Place place = {file, lines.row(), 1};
    if (line.front() == '{')
      refuse(place, "found a sparse case in {}, expected values with commas between them");
    read_case(parsed, header, lines.line(), place);
  }
  if (parsed.series.empty())
    refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "found no case behind @data");
  return parsed;
}

DataSet read_arff(const std::string& path, const ReadOptions& options) {
  return read_parts(path, ".arff", options, parse_arff);
}

}  // namespace fastweights

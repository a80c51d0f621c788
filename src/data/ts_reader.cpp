#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/checked.h"
#include "data/counts.h"
#include "data/files.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

// the lines with @
struct TsHeader {
  bool timestamps = false, equal_length = false, class_label = false, target_label = false;
  int64_t dimensions = 0, length = 0;  // 0: not given
  std::vector<std::string> classes = {};
  std::vector<std::pair<int64_t, std::string>> names = {};
  std::string counts = {};  // see counts.h
};

std::vector<Field> words(std::string_view line, std::string_view file, size_t limit) {
  std::vector<Field> found;
  for (size_t at = 0; at < line.size();) {
    const size_t from = std::min(line.find_first_not_of(" \t", at), line.size());
    at = std::min(line.find_first_of(" \t", from), line.size());
    require_parts(found.size() + 1, kNameBytes, limit, file, "its header");
    if (at > from) found.push_back({line.substr(from, at - from), static_cast<int64_t>(from) + 1});
  }
  return found;
}

const Field& argument(const std::vector<Field>& line, const Location& location, const char* what) {
  if (line.size() < 2)
    refuse(location, "expected ", what, " after ", in_quotes(line[0].text), ", got nothing");
  return line[1];
}

bool yes_or_no(const std::vector<Field>& line, const Location& location) {
  const Field& field = argument(line, location, "true or false");
  const std::string word = lowercase(field.text);
  if (word != "true" && word != "false")
    refuse({location.file, location.row, field.column}, "expected true or false, got ",
           in_quotes(field.text));
  return word == "true";
}

int64_t count(const std::vector<Field>& line, const Location& location) {
  constexpr double kMost = 1e9;
  const Field& field = argument(line, location, "an integer of at least 1");
  const double x = parse_number(field.text).value_or(kNaN);
  if (!(x >= 1 && x <= kMost && x == std::floor(x)))
    refuse({location.file, location.row, field.column}, "expected an integer of at least 1, got ",
           in_quotes(field.text));
  return static_cast<int64_t>(x);
}

void read_classes(TsHeader& header, const std::vector<Field>& line, const Location& location) {
  header.class_label = yes_or_no(line, location);
  std::set<std::string_view> seen;
  for (size_t i = 2; i < line.size(); ++i) {
    const std::string name(line[i].text);
    if (!seen.insert(line[i].text).second)
      refuse({location.file, location.row, line[i].column}, "duplicate class ", in_quotes(name));
    header.classes.push_back(name);
  }
}

// a comment may name a channel: # channel 2: heart rate; or the counts of a file that we wrote
void read_comment(TsHeader& header, std::string_view line) {
  line = trimmed(line.substr(1));
  if (line.starts_with(kCountsComment)) header.counts = line.substr(kCountsComment.size());
  constexpr std::string_view kWord = "channel ";
  const size_t colon = line.find(": ");
  if (!line.starts_with(kWord) || colon == std::string_view::npos) return;
  const double number = parse_number(line.substr(kWord.size(), colon - kWord.size())).value_or(0);
  if (number >= 1 && number < 1e9 && number == std::floor(number))
    header.names.emplace_back(static_cast<int64_t>(number), trimmed(line.substr(colon + 1)));
}

// the lines up to @data
TsHeader read_ts_header(Lines& lines, const std::string& file, size_t limit) {
  TsHeader header;
  while (lines.next()) {
    const std::string_view text = trimmed(lines.line());
    if (text.starts_with('#') || text.starts_with('%')) {
      read_comment(header, text);
      require_parts(header.names.size(), kNameBytes, limit, file, "its header");
      continue;
    }
    const std::vector<Field> line = words(lines.line(), file, limit);
    if (line.empty()) continue;
    const Location location = {file, lines.row(), line[0].column};
    if (line[0].text.front() != '@')
      refuse(location, "expected a line starting with @ or #, or @data, got ", in_quotes(line[0].text));
    const std::string key = lowercase(line[0].text);
    if (key == "@data") return header;
    if (key == "@timestamps") header.timestamps = yes_or_no(line, location);
    if (key == "@equallength") header.equal_length = yes_or_no(line, location);
    if (key == "@missing" || key == "@univariate") yes_or_no(line, location);
    if (key == "@univariate" && lowercase(line[1].text) == "true") header.dimensions = 1;
    if (key == "@dimensions" || key == "@dimension") header.dimensions = count(line, location);
    if (key == "@serieslength") header.length = count(line, location);
    if (key == "@classlabel") read_classes(header, line, location);
    if (key == "@targetlabel") header.target_label = yes_or_no(line, location);
  }
  refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "expected @data, got the end of the file");
}

// fewer are taken apart, for a message about the first empty dimension
constexpr size_t kManyColons = 1000;

// fields between colons outside parentheses
std::vector<Field> dimensions_of(std::string_view line) {
  std::vector<Field> found;
  size_t from = 0;
  bool inside = false;
  for (size_t at = 0; at <= line.size(); ++at) {
    if (at < line.size() && (line[at] == '(' || line[at] == ')')) inside = line[at] == '(';
    if (at < line.size() && (inside || line[at] != ':')) continue;
    found.push_back({line.substr(from, at - from), static_cast<int64_t>(from) + 1});
    from = at + 1;
  }
  return found;
}

std::vector<double> plain_values(const Field& dimension, const Location& location) {
  std::vector<double> values;
  const std::string_view text = dimension.text;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    values.push_back(number_or_missing(
        text.substr(from, to - from),
        {location.file, location.row, dimension.column + static_cast<int64_t>(from)}, "a number, ? or NaN"));
    from = to + 1;
  }
  return values;
}

struct Observed {
  std::vector<double> times, values;
};

// (time,value),(time,value); a single ? if nothing was observed
Observed stamped_values(const Field& dimension, const Location& location, TimeAxis& axis) {
  Observed observed;
  const std::string_view text = dimension.text;
  const auto at_column = [&](size_t at) {
    return Location{location.file, location.row, dimension.column + static_cast<int64_t>(at)};
  };
  if (is_missing(text)) return observed;
  for (size_t at = 0;;) {
    at = std::min(text.find_first_not_of(" \t", at), text.size());
    const size_t close = text.find(')', at), comma = text.find(',', at);
    if (at >= text.size() || text[at] != '(' || close == std::string_view::npos || comma > close)
      refuse(at_column(at), "expected (time,value), got ", in_quotes(text.substr(at)));
    const double time = axis.read(text.substr(at + 1, comma - at - 1), at_column(at + 1));
    if (!observed.times.empty() && time <= observed.times.back())
      refuse(at_column(at + 1), "expected a later time than the previous one, got ",
             in_quotes(text.substr(at + 1, comma - at - 1)));
    observed.times.push_back(time);
    observed.values.push_back(number_or_missing(text.substr(comma + 1, close - comma - 1),
                                                at_column(comma + 1), "a number, ? or NaN"));
    at = std::min(text.find_first_not_of(" \t", close + 1), text.size());
    if (at == text.size()) return observed;
    if (text[at] != ',') refuse(at_column(at), "expected a comma, got ", in_quotes(text.substr(at)));
    ++at;
  }
}

// missing values for all rows; a ? for a dimension becomes a value per row
void fill_missing(Series& series, size_t rows, size_t dimensions, std::string_view file, size_t limit) {
  require_memory(checked_product({rows, dimensions, kValueBytes}), limit, file, "its values");
  series.values.assign(*checked_product({rows, dimensions}), kNaN);
}

// one row per time at which any dimension was observed
void fill_stamped(Series& series, const std::vector<Observed>& dimensions, std::string_view file,
                  size_t limit) {
  for (const Observed& d : dimensions)
    series.times.insert(series.times.end(), d.times.begin(), d.times.end());
  std::sort(series.times.begin(), series.times.end());
  series.times.erase(std::unique(series.times.begin(), series.times.end()), series.times.end());
  fill_missing(series, series.times.size(), dimensions.size(), file, limit);
  for (size_t c = 0; c < dimensions.size(); ++c) {
    size_t row = 0;
    for (size_t i = 0; i < dimensions[c].times.size(); ++i) {
      while (series.times[row] < dimensions[c].times[i]) ++row;
      series.values[row * dimensions.size() + c] = dimensions[c].values[i];
    }
  }
}

// one value per step and dimension
void fill_plain(Series& series, const std::vector<std::vector<double>>& dimensions, const TsHeader& header,
                const Location& location, size_t limit) {
  size_t length = 0;
  for (const std::vector<double>& d : dimensions) length = std::max(length, d.size());
  if (header.equal_length && header.length > 0 && length != static_cast<size_t>(header.length))
    refuse(location, "expected ", header.length, " values as in @seriesLength, got ", length);
  fill_missing(series, length, dimensions.size(), location.file, limit);
  for (size_t c = 0; c < dimensions.size(); ++c) {
    const std::vector<double>& d = dimensions[c];
    // a single ?: the dimension was not observed
    if (d.size() == 1 && std::isnan(d[0])) continue;
    if (d.size() != length)
      refuse(location, "dimension ", c + 1, ": expected ", length, " values as in the longest one, got ",
             d.size());
    for (size_t i = 0; i < length; ++i) series.values[i * dimensions.size() + c] = d[i];
  }
  for (size_t i = 0; i < length; ++i) series.times.push_back(static_cast<double>(i));
}

void read_case(Parsed& parsed, const TsHeader& header, std::string_view line, const Location& row,
               size_t limit) {
  std::vector<Field> fields = dimensions_of(line);
  Series series;
  series.where = message(row.file, ":", row.row);
  const bool labelled = header.class_label || header.target_label;
  const size_t expected =
      parsed.head.channels.empty() ? static_cast<size_t>(header.dimensions) : parsed.head.channels.size();
  const size_t found = fields.size() - (labelled ? 1 : 0);
  if (found == 0 || (expected > 0 && found != expected))
    refuse(row, "expected ", expected > 0 ? message(expected) : "at least 1", " dimensions",
           labelled ? " and a label" : "", ", got ", found);
  if (parsed.head.channels.empty()) parsed.head.channels = numbered_channels(found);
  if (labelled) {
    const Location location = {row.file, row.row, fields.back().column};
    const std::string_view label = trimmed(fields.back().text);
    if (label.empty()) refuse(location, "expected a label, or ? if unknown, got nothing");
    if (header.target_label) series.targets.push_back(number_or_missing(label, location));
    if (!header.target_label && label != "?") series.label = label;
    fields.pop_back();
  }
  if (header.timestamps) {
    std::vector<Observed> dimensions;
    for (const Field& f : fields)
      dimensions.push_back(stamped_values(f, {row.file, row.row, 1}, parsed.axis));
    fill_stamped(series, dimensions, row.file, limit);
  } else {
    std::vector<std::vector<double>> dimensions;
    for (const Field& f : fields) dimensions.push_back(plain_values(f, row));
    fill_plain(series, dimensions, header, row, limit);
  }
  parsed.series.push_back(std::move(series));
}

}  // namespace

Parsed parse_ts(std::string_view text, const std::string& file, size_t limit) {
  require_text(text, file);
  Lines lines(text);
  const TsHeader header = read_ts_header(lines, file, limit);
  Parsed parsed;
  parsed.head.classes = header.target_label ? std::vector<std::string>() : header.classes;
  parsed.head.time_unit = header.timestamps ? "" : "step";
  if (header.target_label) parsed.head.targets = {"target"};
  size_t values = 0;  // and times
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line());
    if (line.empty() || line.front() == '#') continue;
    const auto colons = static_cast<size_t>(std::count(line.begin(), line.end(), ':'));
    // a dimension has at least one character: a flood of colons is refused before it is taken apart
    if (colons > kManyColons && colons > line.size() / 2 + 1)
      refuse({file, lines.row(), 1}, "expected values between colons, got ", colons, " colons in ",
             line.size(), " characters");
    require_parts(colons, kDimensionBytes, limit, file, "its dimensions");
    require_parts(parsed.series.size(), kSeriesBytes, limit, file, "its series");
    require_parts(values + field_count(line, ','), kValueBytes, limit, file, "its values");
    read_case(parsed, header, lines.line(), {file, lines.row(), 1}, limit - values * kValueBytes);
    values += parsed.series.back().values.size() + parsed.series.back().times.size();
  }
  if (parsed.series.empty()) refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "no case after @data");
  if (!header.counts.empty())
    check_counts(header.counts, parsed.series, {file, text}, "the comment at its beginning");
  for (const auto& [number, name] : header.names) {
    if (number <= static_cast<int64_t>(parsed.head.channels.size()))
      parsed.head.channels[static_cast<size_t>(number) - 1] = name;
  }
  return parsed;
}

DataSet read_ts(const std::string& path, const ReadOptions& options) {
  return read_parts(path, ".ts", options, parse_ts);
}

}  // namespace fastweights::data

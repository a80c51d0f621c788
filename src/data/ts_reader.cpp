#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// what the lines with @ say
struct TsHeader {
  bool timestamps = false, equal_length = false, class_label = false, target_label = false;
  int64_t dimensions = 0, length = 0;  // 0: not said
  std::vector<std::string> classes = {};
  std::vector<std::pair<int64_t, std::string>> names = {};
};

std::vector<Field> words(std::string_view line) {
  std::vector<Field> found;
  for (size_t at = 0; at < line.size();) {
    const size_t from = std::min(line.find_first_not_of(" \t", at), line.size());
    at = std::min(line.find_first_of(" \t", from), line.size());
    if (at > from) found.push_back({line.substr(from, at - from), static_cast<int64_t>(from) + 1});
  }
  return found;
}

const Field& argument(const std::vector<Field>& line, const Place& place, const char* what) {
  if (line.size() < 2) refuse(place, "found nothing behind ", in_quotes(line[0].text), ", expected ", what);
  return line[1];
}

bool yes_or_no(const std::vector<Field>& line, const Place& place) {
  const Field& field = argument(line, place, "true or false");
  const std::string word = lowercase(field.text);
  if (word != "true" && word != "false")
    refuse({place.file, place.row, field.column}, "found ", in_quotes(field.text),
           ", expected true or false");
  return word == "true";
}

int64_t count(const std::vector<Field>& line, const Place& place) {
  constexpr double kMost = 1e9;
  const Field& field = argument(line, place, "a whole number from 1");
  const double x = parse_number(field.text).value_or(kNaN);
  if (!(x >= 1 && x <= kMost && x == std::floor(x)))
    refuse({place.file, place.row, field.column}, "found ", in_quotes(field.text),
           ", expected a whole number from 1");
  return static_cast<int64_t>(x);
}

void read_classes(TsHeader& header, const std::vector<Field>& line, const Place& place) {
  header.class_label = yes_or_no(line, place);
  std::set<std::string_view> seen;
  for (size_t i = 2; i < line.size(); ++i) {
    const std::string name(line[i].text);
    if (!seen.insert(line[i].text).second)
      refuse({place.file, place.row, line[i].column}, "found the class ", in_quotes(name),
             " twice, expected each once");
    header.classes.push_back(name);
  }
}

// a comment may name a channel: # channel 2: heart rate
void read_comment(TsHeader& header, std::string_view line) {
  line = trimmed(line.substr(1));
  constexpr std::string_view kWord = "channel ";
  const size_t colon = line.find(": ");
  if (!line.starts_with(kWord) || colon == std::string_view::npos) return;
  const double number = parse_number(line.substr(kWord.size(), colon - kWord.size())).value_or(0);
  if (number >= 1 && number < 1e9 && number == std::floor(number))
    header.names.emplace_back(static_cast<int64_t>(number), trimmed(line.substr(colon + 1)));
}

// the lines up to @data
TsHeader read_header(Lines& lines, const std::string& file) {
  TsHeader header;
  while (lines.next()) {
    const std::vector<Field> line = words(lines.line());
    if (line.empty()) continue;
    const Place place = {file, lines.row(), line[0].column};
    if (line[0].text.front() == '#' || line[0].text.front() == '%') {
      read_comment(header, trimmed(lines.line()));
      continue;
    }
    if (line[0].text.front() != '@')
      refuse(place, "found ", in_quotes(line[0].text), ", expected a line that begins with @ or #, or @data");
    const std::string key = lowercase(line[0].text);
    if (key == "@data") return header;
    if (key == "@timestamps") header.timestamps = yes_or_no(line, place);
    if (key == "@equallength") header.equal_length = yes_or_no(line, place);
    if (key == "@missing" || key == "@univariate") yes_or_no(line, place);
    if (key == "@univariate" && lowercase(line[1].text) == "true") header.dimensions = 1;
    if (key == "@dimensions" || key == "@dimension") header.dimensions = count(line, place);
    if (key == "@serieslength") header.length = count(line, place);
    if (key == "@classlabel") read_classes(header, line, place);
    if (key == "@targetlabel") header.target_label = yes_or_no(line, place);
  }
  refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "found the end of the file, expected @data");
}

// parts between colons that are not inside parentheses
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

std::vector<double> plain_values(const Field& dimension, const Place& place) {
  std::vector<double> values;
  const std::string_view text = dimension.text;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    values.push_back(number_or_missing(text.substr(from, to - from),
                                       {place.file, place.row, dimension.column + static_cast<int64_t>(from)},
                                       "a number, ? or NaN"));
    from = to + 1;
  }
  return values;
}

struct Observed {
  std::vector<double> times, values;
};

// (time,value),(time,value); ? alone: nothing was observed
Observed stamped_values(const Field& dimension, const Place& place, TimeAxis& axis) {
  Observed observed;
  const std::string_view text = dimension.text;
  const auto at_column = [&](size_t at) {
    return Place{place.file, place.row, dimension.column + static_cast<int64_t>(at)};
  };
  if (is_missing(text)) return observed;
  for (size_t at = 0;;) {
    at = std::min(text.find_first_not_of(" \t", at), text.size());
    const size_t close = text.find(')', at), comma = text.find(',', at);
    if (at >= text.size() || text[at] != '(' || close == std::string_view::npos || comma > close)
      refuse(at_column(at), "found ", in_quotes(text.substr(at)), ", expected (time,value)");
    const double time = axis.read(text.substr(at + 1, comma - at - 1), at_column(at + 1));
    if (!observed.times.empty() && time <= observed.times.back())
      refuse(at_column(at + 1), "found the time ", in_quotes(text.substr(at + 1, comma - at - 1)),
             ", expected a later one than before");
    observed.times.push_back(time);
    observed.values.push_back(number_or_missing(text.substr(comma + 1, close - comma - 1),
                                                at_column(comma + 1), "a number, ? or NaN"));
    at = std::min(text.find_first_not_of(" \t", close + 1), text.size());
    if (at == text.size()) return observed;
    if (text[at] != ',') refuse(at_column(at), "found ", in_quotes(text.substr(at)), ", expected a comma");
    ++at;
  }
}

// all dimensions at the times of any of them
void fill_stamped(Series& series, const std::vector<Observed>& dimensions) {
  for (const Observed& d : dimensions)
    series.times.insert(series.times.end(), d.times.begin(), d.times.end());
  std::sort(series.times.begin(), series.times.end());
  series.times.erase(std::unique(series.times.begin(), series.times.end()), series.times.end());
  series.values.assign(series.times.size() * dimensions.size(), kNaN);
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
                const Place& place) {
  size_t length = 0;
  for (const std::vector<double>& d : dimensions) length = std::max(length, d.size());
  if (header.equal_length && header.length > 0 && length != static_cast<size_t>(header.length))
    refuse(place, "found ", length, " values, expected ", header.length, ", which @seriesLength says");
  series.values.assign(length * dimensions.size(), kNaN);
  for (size_t c = 0; c < dimensions.size(); ++c) {
    const std::vector<double>& d = dimensions[c];
    // a single ? stands for a dimension that was not observed at all
    if (d.size() == 1 && std::isnan(d[0])) continue;
    if (d.size() != length)
      refuse(place, "found ", d.size(), " values in dimension ", c + 1, ", expected ", length,
             " as in the longest one");
    for (size_t i = 0; i < length; ++i) series.values[i * dimensions.size() + c] = d[i];
  }
  for (size_t i = 0; i < length; ++i) series.times.push_back(static_cast<double>(i));
}

void read_case(Parsed& parsed, const TsHeader& header, std::string_view line, const Place& row) {
  std::vector<Field> fields = dimensions_of(line);
  Series series;
  series.where = message(row.file, ":", row.row);
  const bool labelled = header.class_label || header.target_label;
  const size_t wanted =
      parsed.head.channels.empty() ? static_cast<size_t>(header.dimensions) : parsed.head.channels.size();
  const size_t found = fields.size() - (labelled ? 1 : 0);
  if (found == 0 || (wanted > 0 && found != wanted))
    refuse(row, "found ", found, " dimensions", labelled ? " and a label" : "", ", expected ",
           wanted > 0 ? message(wanted) : "at least 1");
  if (parsed.head.channels.empty()) parsed.head.channels = numbered_channels(found);
  if (labelled) {
    const Place place = {row.file, row.row, fields.back().column};
    const std::string_view label = trimmed(fields.back().text);
    if (label.empty()) refuse(place, "found nothing, expected a label, or ? for an unknown one");
    if (header.target_label) series.targets.push_back(number_or_missing(label, place));
    if (!header.target_label && label != "?") series.label = label;
    fields.pop_back();
  }
  if (header.timestamps) {
    std::vector<Observed> dimensions;
    for (const Field& f : fields)
      dimensions.push_back(stamped_values(f, {row.file, row.row, 1}, parsed.axis));
    fill_stamped(series, dimensions);
  } else {
    std::vector<std::vector<double>> dimensions;
    for (const Field& f : fields) dimensions.push_back(plain_values(f, row));
    fill_plain(series, dimensions, header, row);
  }
  parsed.series.push_back(std::move(series));
}

}  // namespace

Parsed parse_ts(std::string_view text, const std::string& file) {
  require_text(text, file);
  Lines lines(text);
  const TsHeader header = read_header(lines, file);
  Parsed parsed;
  parsed.head.classes = header.target_label ? std::vector<std::string>() : header.classes;
  parsed.head.time_unit = header.timestamps ? "" : "step";
  if (header.target_label) parsed.head.targets = {"target"};
  while (lines.next()) {
    const std::string_view line = trimmed(lines.line());
    if (line.empty() || line.front() == '#') continue;
    read_case(parsed, header, lines.line(), {file, lines.row(), 1});
  }
  if (parsed.series.empty())
    refuse({file, std::max<int64_t>(lines.row(), 1), 1}, "found no case behind @data");
  for (const auto& [number, name] : header.names) {
    if (number <= static_cast<int64_t>(parsed.head.channels.size()))
      parsed.head.channels[static_cast<size_t>(number) - 1] = name;
  }
  return parsed;
}

DataSet read_ts(const std::string& path, const ReadOptions& options) {
  return read_parts(path, ".ts", options, parse_ts);
}

}  // namespace fastweights

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "data/text.h"
#include "fastweights/data.h"

/// Times in files: numbers, or ISO 8601 dates.

namespace fastweights::data {

/// Microseconds since 1970 in UTC: 2020-02-29, 2020-02-29T12:30, 2020-02-29 12:30:05.25+02:00, ...Z. Without
/// a time zone it is UTC. Finer fractions are rounded. A double is exact from 1685 to 2255.
std::optional<double> parse_date(std::string_view text);

/// The UTC date of microseconds since 1970.
std::string date_text(double microseconds);

/// Reads the times of a set: all numbers, or all dates.
class TimeAxis {
 public:
  /// A number, or for a date the microseconds since 1970; finish() converts them.
  double read(std::string_view text, const Location& location);
  /// Adds the axis of another file of the same set.
  void join(const TimeAxis& other, std::string_view file);
  /// Converts dates to units of time since the earliest one; sets time_unit and time_zero of the head.
  void finish(DataHead& head, std::vector<Series>& series, const ReadOptions& options) const;

 private:
  enum class Kind { Unknown, Numbers, Dates };
  Kind kind_ = Kind::Unknown;
};

/// The content of one file.
struct Parsed {
  DataHead head = {};
  std::vector<Series> series = {};
  TimeAxis axis = {};
};

DataSet finished(Parsed parsed, const ReadOptions& options);

}  // namespace fastweights::data

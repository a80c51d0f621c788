#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "data/text.h"
#include "fastweights/read.h"

/// Times in files: numbers, or dates of ISO 8601.

namespace fastweights {

/// Microseconds since 1970 in UTC: 2020-02-29, 2020-02-29T12:30, 2020-02-29 12:30:05.25+02:00, ...Z. Without
/// a zone it is UTC. Finer fractions are rounded. Every year from 1685 to 2255 is exact in a double.
std::optional<double> parse_date(std::string_view text);

/// The date of so many microseconds since 1970, with Z.
std::string date_text(double microseconds);

/// Reads the times of a set, which are all numbers or all dates.
class TimeAxis {
 public:
  /// The number, or microseconds since 1970 until finish() is called.
  double read(std::string_view text, const Place& place);
  /// The times of another file of the same set were read by `other`.
  void join(const TimeAxis& other, std::string_view file);
  /// Dates become units of time since the earliest one; sets the head's time_unit and time_zero.
  void finish(DataHead& head, std::vector<Series>& series, const ReadOptions& options) const;

 private:
  enum class Kind { Unknown, Numbers, Dates };
  Kind kind_ = Kind::Unknown;
};

/// What a parser makes of one file.
struct Parsed {
  DataHead head = {};
  std::vector<Series> series = {};
  TimeAxis axis = {};
};

DataSet finished(Parsed parsed, const ReadOptions& options);

}  // namespace fastweights

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

/// How a source writes dates: 2020-02-29, 2020-02-29 12:30, 2020-02-29T12:30:05.250+02:00.
struct DateForm {
  char between = 'T';      ///< date and clock
  int clock = 3;           ///< parts of the clock: hours, minutes, seconds
  char mark = '.';         ///< of fractions
  size_t digits = 0;       ///< of fractions
  std::string zone = "Z";  ///< as written; may be empty
  double offset = 0;       ///< of the zone, in microseconds
};

/// The form of a date that parse_date() accepts.
DateForm form_of_date(std::string_view date);

/// The date of microseconds since 1970, in UTC unless the form says otherwise. Clock, seconds and six digits
/// of fractions are added where the form would lose them.
std::string date_text(double microseconds, const DateForm& form = {});

/// Reads the times of a set: all numbers, or all dates.
class TimeAxis {
 public:
  /// A number, or for a date the microseconds since 1970; finish() converts them.
  double read(std::string_view text, const Location& location);
  /// The text of the date that was read last, if the form of the first one would not give it; otherwise "".
  const std::string& odd_date() const { return odd_date_; }
  /// Adds the axis of another file of the same set.
  void join(const TimeAxis& other, std::string_view file);
  /// Converts dates to units of time since the earliest one; sets time_unit and time_zero of the head.
  void finish(DataHead& head, std::vector<Series>& series, const ReadOptions& options) const;

 private:
  void note_form(std::string_view text, double date);

  enum class Kind { Unknown, Numbers, Dates };
  Kind kind_ = Kind::Unknown;
  std::string first_date_, odd_date_;
  DateForm form_;
};

/// How times are dates: the microseconds since 1970 of time 0, and those of a unit of time.
struct DateScale {
  double zero = 0, unit = 1;
  DateForm form = {};
};
/// Nothing if the times are numbers.
std::optional<DateScale> date_scale(const DataHead& head);

TimeForm time_form_of(const DataHead& head);

/// How times are taken if only the data or only the training data have dates; otherwise "".
std::string time_note(const DataHead& head, const Preparation& preparation);

/// The content of one file.
struct Parsed {
  DataHead head = {};
  std::vector<Series> series = {};
  TimeAxis axis = {};
};

DataSet finished(Parsed parsed, const ReadOptions& options);

}  // namespace fastweights::data

#include "data/time_axis.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace fastweights::data {
namespace {

constexpr double kSecond = 1e6;

// removes this number of leading digits
std::optional<int> take_digits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = 10 * number + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// digits after the decimal point, in microseconds
std::optional<double> take_fraction(std::string_view& text) {
  double value = 0, unit = kSecond;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    unit /= 10;
    value += unit * (text[digits] - '0');
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(digits);
  return std::round(value);
}

// Z, +hh, +hhmm, +hh:mm or empty, in seconds
std::optional<double> take_zone(std::string_view& text) {
  if (text.empty() || take(text, 'Z') || take(text, 'z')) return 0;
  const bool west = text.starts_with('-');
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const std::optional<int> hours = take_digits(text, 2);
  if (!hours) return std::nullopt;
  take(text, ':');
  const std::optional<int> minutes = text.empty() ? 0 : take_digits(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const double seconds = *hours * 3600 + *minutes * 60;
  return west ? -seconds : seconds;
}

std::optional<double> take_day(std::string_view& text) {
  const std::optional<int> year = take_digits(text, 4);
  if (!year || !take(text, '-')) return std::nullopt;
  const std::optional<int> month = take_digits(text, 2);
  if (!month || !take(text, '-')) return std::nullopt;
  const std::optional<int> day = take_digits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count()) * 86400 * kSecond;
}

// hh:mm[:ss[.f]]
std::optional<double> take_clock(std::string_view& text) {
  const std::optional<int> hour = take_digits(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const std::optional<int> minute = take_digits(text, 2);
  if (!minute) return std::nullopt;
  std::optional<int> second = 0;
  std::optional<double> fraction = 0;
  if (take(text, ':')) {
    second = take_digits(text, 2);
    if (second && (take(text, '.') || take(text, ','))) fraction = take_fraction(text);
  }
  if (!second || !fraction || *hour > 24 || *minute > 59 || *second > 59) return std::nullopt;
  const double seconds = *hour * 3600 + *minute * 60 + *second;
  if (seconds > 86400) return std::nullopt;
  return seconds * kSecond + *fraction;
}

// units that dates can be converted to, in microseconds
const std::map<std::string, double>& units() {
  static const std::map<std::string, double> kUnits = {
      {"second", kSecond}, {"minute", 60 * kSecond}, {"hour", 3600 * kSecond}, {"day", 86400 * kSecond}};
  return kUnits;
}

}  // namespace

std::optional<double> parse_date(std::string_view text) {
  text = trimmed(text);
  const std::optional<double> day = take_day(text);
  if (!day || text.empty()) return day;
  if (!take(text, 'T') && !take(text, 't') && !take(text, ' ')) return std::nullopt;
  const std::optional<double> clock = take_clock(text);
  if (!clock) return std::nullopt;
  const std::optional<double> zone = take_zone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return *day + *clock - *zone * kSecond;
}

std::string date_text(double microseconds) {
  using std::chrono::days;
  const double days_since = std::floor(microseconds / (86400 * kSecond));
  const std::chrono::year_month_day date{std::chrono::sys_days{days{static_cast<int>(days_since)}}};
  const auto rest = static_cast<int64_t>(microseconds - days_since * 86400 * kSecond);
  const int64_t seconds = rest / 1000000, fraction = rest % 1000000;
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(seconds / 3600), static_cast<int>(seconds / 60 % 60),
                static_cast<int>(seconds % 60));
  std::string result = text;
  if (fraction != 0) {
    std::snprintf(text, sizeof text, ".%06d", static_cast<int>(fraction));
    result += text;
  }
  return result + "Z";
}

double TimeAxis::read(std::string_view text, const Location& location) {
  const std::optional<double> number = parse_number(text);
  const bool is_number = number && std::isfinite(*number);
  const std::optional<double> date = is_number ? std::nullopt : parse_date(text);
  if (!is_number && !date)
    refuse(location, "expected a time, a number or a date such as 2020-02-29T12:30:00Z, got ",
           in_quotes(trimmed(text)));
  const Kind kind = is_number ? Kind::Numbers : Kind::Dates;
  if (kind_ != Kind::Unknown && kind_ != kind)
    refuse(location, "expected a ", is_number ? "date" : "number", " as in earlier rows, got the ",
           is_number ? "number " : "date ", in_quotes(trimmed(text)));
  kind_ = kind;
  return is_number ? *number : *date;
}

void TimeAxis::join(const TimeAxis& other, std::string_view file) {
  if (kind_ != Kind::Unknown && other.kind_ != Kind::Unknown && kind_ != other.kind_)
    throw std::runtime_error(message(file, ": expected times as ", kind_ == Kind::Dates ? "dates" : "numbers",
                                     " as in the other files, got ",
                                     other.kind_ == Kind::Dates ? "dates" : "numbers"));
  if (kind_ == Kind::Unknown) kind_ = other.kind_;
}

void TimeAxis::finish(DataHead& head, std::vector<Series>& series, const ReadOptions& options) const {
  if (kind_ != Kind::Dates) {
    if (!options.time_unit.empty()) head.time_unit = options.time_unit;
    return;
  }
  head.time_unit = options.time_unit.empty() ? "second" : options.time_unit;
  const auto unit = units().find(head.time_unit);
  FW_CHECK(unit != units().end(),
           "[read_data] the time unit of dates must be second, minute, hour or day, got '", head.time_unit,
           "'");
  double zero = std::numeric_limits<double>::infinity();
  for (const Series& s : series) {
    for (const double t : s.times) zero = std::min(zero, t);
  }
  head.time_zero = std::isfinite(zero) ? date_text(zero) : "";
  for (Series& s : series) {
    for (double& t : s.times) t = (t - zero) / unit->second;
  }
}

DataSet finished(Parsed parsed, const ReadOptions& options) {
  parsed.axis.finish(parsed.head, parsed.series, options);
  return collect_series(std::move(parsed.head), parsed.series);
}

}  // namespace fastweights::data

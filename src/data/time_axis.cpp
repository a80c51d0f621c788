#include "data/time_axis.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "data/row_order.h"

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

// at least so many digits
void append_digits(std::string& text, int64_t number, size_t digits) {
  const std::string shown = std::to_string(std::abs(number));
  if (number < 0) text += '-';
  text.append(digits - std::min(digits, shown.size()), '0') += shown;
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

DateForm form_of_date(std::string_view date) {
  constexpr size_t kDay = 10, kMinutes = 16, kSeconds = 19, kMostDigits = 9;
  date = trimmed(date);
  if (date.size() <= kDay) return {.between = ' ', .clock = 0, .zone = ""};
  const bool seconds = date.size() > kMinutes && date[kMinutes] == ':';
  DateForm form = {.between = date[kDay], .clock = seconds ? 3 : 2};
  size_t at = seconds ? kSeconds : kMinutes;
  if (seconds && at < date.size() && (date[at] == '.' || date[at] == ',')) {
    form.mark = date[at++];
    const size_t end = std::min(date.find_first_not_of("0123456789", at), date.size());
    form.digits = std::min(end - at, kMostDigits);
    at = end;
  }
  std::string_view zone = date.substr(std::min(at, date.size()));
  form.zone = zone;
  form.offset = take_zone(zone).value_or(0) * kSecond;
  return form;
}

std::string date_text(double microseconds, const DateForm& form) {
  constexpr double kDay = 86400 * kSecond;
  constexpr int64_t kMicroseconds = 1'000'000;
  const double local = microseconds + form.offset, days = std::floor(local / kDay);
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<int64_t>(days)))};
  const auto within = static_cast<int64_t>(std::round(local - days * kDay));
  const int64_t seconds = within / kMicroseconds, fraction = within % kMicroseconds;
  const bool whole_minutes = fraction == 0 && seconds % 60 == 0;
  const int parts = std::max(form.clock, !whole_minutes ? 3 : seconds != 0 ? 2 : 0);
  std::string result;
  append_digits(result, static_cast<int>(date.year()), 4);
  append_digits(result += '-', static_cast<unsigned>(date.month()), 2);
  append_digits(result += '-', static_cast<unsigned>(date.day()), 2);
  if (parts == 0) return result;
  append_digits(result += form.between, seconds / 3600, 2);
  append_digits(result += ':', seconds / 60 % 60, 2);
  if (parts == 3) append_digits(result += ':', seconds % 60, 2);
  std::string digits;
  append_digits(digits, fraction, 6);
  // digits of the form, or all if those would lose some
  if (digits.find_first_not_of('0', std::min<size_t>(form.digits, 6)) == std::string::npos)
    digits.resize(form.digits, '0');
  if (!digits.empty()) result += form.mark + digits;
  return result + form.zone;
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
  if (is_number) return *number;
  note_form(trimmed(text), date.value());
  return date.value();
}

void TimeAxis::note_form(std::string_view text, double date) {
  if (first_date_.empty()) {
    first_date_ = text;
    form_ = form_of_date(text);
  }
  odd_date_.clear();
  if (date_text(date, form_) != text) odd_date_ = text;
}

void TimeAxis::join(const TimeAxis& other, std::string_view file) {
  if (kind_ != Kind::Unknown && other.kind_ != Kind::Unknown && kind_ != other.kind_)
    throw std::runtime_error(message(file, ": expected times as ", kind_ == Kind::Dates ? "dates" : "numbers",
                                     " as in the other files, got ",
                                     other.kind_ == Kind::Dates ? "dates" : "numbers"));
  if (kind_ != Kind::Unknown) return;
  *this = other;
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
  head.date_form = first_date_;
  for (Series& s : series) {
    for (double& t : s.times) t = (t - zero) / unit->second;
  }
}

std::optional<DateScale> date_scale(const DataHead& head) {
  const std::optional<double> zero = parse_date(head.time_zero);
  const auto unit = units().find(head.time_unit);
  if (!zero || unit == units().end() || !parse_date(head.date_form)) return std::nullopt;
  return DateScale{*zero, unit->second, form_of_date(head.date_form)};
}

TimeForm time_form_of(const DataHead& head) {
  return head.time_zero.empty() ? TimeForm::Numbers : TimeForm::Dates;
}

std::string time_note(const DataHead& head, const Preparation& preparation) {
  const TimeForm own = time_form_of(head), trained = preparation.time_form;
  if (trained == TimeForm::Unknown || trained == own) return "";
  const std::string set = in_quotes(head.name);
  if (own == TimeForm::Numbers)
    return message("the model was trained with dates, and the times of ", set,
                   " are numbers: they are taken in units of ", in_quotes(preparation.time_unit),
                   ", to which the dates were converted");
  return message("the model was trained with numbers as times, and those of ", set,
                 " are dates: they are converted to units of ", in_quotes(head.time_unit),
                 preparation.time_unit.empty() ? "; --time-unit chooses another unit" : "");
}

DataSet finished(Parsed parsed, const ReadOptions& options) {
  parsed.axis.finish(parsed.head, parsed.series, options);
  order_rows(parsed, options.table);
  return collect_series(std::move(parsed.head), parsed.series);
}

}  // namespace fastweights::data

namespace fastweights {

std::string time_text(const DataHead& head, double time) {
  constexpr double kLatest = 2.5e17;  // the year 9891
  const std::optional<data::DateScale> scale = data::date_scale(head);
  if (!scale) return data::exact(time);
  const double date = std::round(scale->zero + time * scale->unit);
  return std::abs(date) < kLatest ? data::date_text(date, scale->form) : data::exact(time);
}

std::string time_text(const DataSet& data, int64_t row) {
  const auto i = static_cast<size_t>(row);
  const bool odd = !data.dates.empty() && !data.dates[i].empty();
  return odd ? data.dates[i] : time_text(data.head, data.times[i]);
}

}  // namespace fastweights

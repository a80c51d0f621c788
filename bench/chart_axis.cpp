#include "chart_axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace fastweights::bench {
namespace {

constexpr int kMostSteps = 6;     // of a linear axis, before its ends are moved to ticks
constexpr int kMostLogTicks = 9;  // 1, 2 and 5 of each power of ten
constexpr int kMostPowers = 7;

constexpr double kSmallest = 1e-290;  // of a linear axis: powers of ten around it have a value

// mantissa times ten to the exponent
struct RoundNumber {
  int64_t mantissa;
  int exponent;

  // powers of ten below 1 have no exact value: dividing by one above rounds once
  double value() const {
    const auto number = static_cast<double>(mantissa);
    return exponent < 0 ? number / std::pow(10.0, -exponent) : number * std::pow(10.0, exponent);
  }
};

int floor_third(int i) { return (i >= 0 ? i : i - 2) / 3; }

// the numbers 1, 2, 5, 10, 20, ..., of which 1 has the place 0
RoundNumber round_number(int place) {
  const int exponent = floor_third(place);
  return {std::array{1, 2, 5}[static_cast<size_t>(place - 3 * exponent)], exponent};
}

// of the last one that is not above the value
int place_below(double value) {
  int place = 3 * static_cast<int>(std::floor(std::log10(value))) - 3;
  while (round_number(place + 1).value() <= value * (1 + 1e-9)) ++place;
  return place;
}

// of the first one that is not below the value
int place_above(double value) {
  const int below = place_below(value);
  return round_number(below).value() >= value * (1 - 1e-9) ? below : below + 1;
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

// 12345 as 12,345; only the digits before the point
std::string grouped(std::string digits) {
  const size_t first = digits[0] == '-' ? 1 : 0;
  size_t at = std::min(digits.find('.'), digits.size());
  while (at > first + 3) digits.insert(at -= 3, ",");
  return digits;
}

std::string raised(int exponent) {
  static constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(exponent)))
    text += kDigits[static_cast<size_t>(digit - '0')];
  return text;
}

enum class Form { Plain, Powers };

Form form_of(int smallest_exponent, double largest) {
  return smallest_exponent >= -4 && largest < 1e6 ? Form::Plain : Form::Powers;
}

std::string label_of(const RoundNumber& number, Form form) {
  const double value = number.value();
  if (value == 0) return "0";
  if (form == Form::Plain) return grouped(fixed(value, std::max(0, -number.exponent)));
  // 15 * 10^6 is 1.5 * 10^7
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  std::string mantissa = fixed(value / RoundNumber{1, power}.value(), std::max(0, power - number.exponent));
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  const std::string ten = "10" + raised(power);
  if (mantissa == "1") return ten;
  return mantissa == "-1" ? "-" + ten : mantissa + "×" + ten;
}

AxisTicks linear_ticks(double low, double high) {
  const double size = std::max(std::abs(low), std::abs(high));
  // a single number in the middle of an axis
  if (high - low <= std::max(1e-9 * size, kSmallest)) {
    const double margin = size > kSmallest ? size / 2 : 1;
    low -= margin;
    high += margin;
  }
  const RoundNumber step = round_number(place_above(high / kMostSteps - low / kMostSteps));
  // an end that is a tick but for rounding stays
  const auto first = static_cast<int64_t>(std::floor(low / step.value() + 1e-9)),
             last = static_cast<int64_t>(std::ceil(high / step.value() - 1e-9));
  const auto at = [&](int64_t count) { return RoundNumber{count * step.mantissa, step.exponent}; };
  const Form form = form_of(step.exponent, std::max(std::abs(at(first).value()), std::abs(at(last).value())));
  AxisTicks axis{AxisScale::Linear, {}};
  for (int64_t i = first; i <= last; ++i) axis.ticks.push_back({at(i).value(), label_of(at(i), form)});
  return axis;
}

AxisTicks log_ticks(double low, double high) {
  if (high <= low * (1 + 1e-9)) {
    low /= 2;
    high *= 2;
  }
  std::vector<RoundNumber> numbers;
  const int first = place_below(low), last = place_above(high);
  if (last - first < kMostLogTicks) {
    for (int place = first; place <= last; ++place) numbers.push_back(round_number(place));
  } else {
    const int from = floor_third(first), to = floor_third(last + 2);
    const int stride = (to - from + kMostPowers - 1) / kMostPowers;
    for (int power = from; power < to + stride; power += stride) numbers.push_back({1, power});
  }
  const Form form = form_of(numbers.front().exponent, numbers.back().value());
  AxisTicks axis{AxisScale::Log, {}};
  for (const RoundNumber& number : numbers) axis.ticks.push_back({number.value(), label_of(number, form)});
  return axis;
}

}  // namespace

double AxisTicks::position(double value) const {
  const double low = ticks.front().value, high = ticks.back().value;
  if (scale == AxisScale::Linear) return (value - low) / (high - low);
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

bool drawable(double value, AxisScale scale) {
  // near the ends of double the next tick may be infinite
  if (!(std::abs(value) < 1e300)) return false;
  return scale == AxisScale::Linear || value > 1e-300;
}

AxisTicks make_ticks(double low, double high, AxisScale scale) {
  return scale == AxisScale::Linear ? linear_ticks(low, high) : log_ticks(low, high);
}

}  // namespace fastweights::bench

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/text.h"
#include "fastweights/data.h"

namespace fastweights {
namespace {

// the values of a column that are known, or an even sample of many
std::vector<double> known_values(const std::vector<double>& table, size_t columns, size_t column) {
  constexpr size_t kMost = 1 << 16;
  const size_t rows = table.size() / columns, step = rows / kMost + 1;
  std::vector<double> known;
  for (size_t row = 0; row < rows; row += step) {
    const double x = table[row * columns + column];
    if (!std::isnan(x)) known.push_back(x);
  }
  return known;
}

// sorts only as far as necessary
double value_at(std::vector<double>& values, size_t index) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

// "" if the column is ordinary
std::string outlier(const std::vector<double>& table, size_t columns, size_t column) {
  constexpr double kFar = 1e6;
  std::vector<double> known = known_values(table, columns, column);
  if (known.size() < 4) return "";
  const size_t quarter = known.size() / 4;
  const double median = value_at(known, 2 * quarter), upper = value_at(known, known.size() - 1 - quarter),
               range = upper - value_at(known, quarter);
  // if half of the values are equal, the range says nothing about the others
  if (!(range > 0)) return "";
  double farthest = median;
  for (size_t i = column; i < table.size(); i += columns) {
    if (std::abs(table[i] - median) > std::abs(farthest - median)) farthest = table[i];
  }
  if (!(std::abs(farthest - median) / range > kFar)) return "";
  return message("has the value ", data::exact(farthest), ", but half of its values are within ",
                 data::exact(range), "; if it is an error, leave it empty");
}

void add_warnings(std::vector<std::string>& warnings, const char* what, const std::vector<std::string>& names,
                  const std::vector<double>& table) {
  constexpr size_t kShown = 5;
  std::string empty;
  size_t count = 0;
  for (size_t c = 0; c < names.size(); ++c) {
    bool known = false;
    for (size_t i = c; i < table.size() && !known; i += names.size()) known = !std::isnan(table[i]);
    if (!known && ++count <= kShown) empty += (empty.empty() ? "" : ", ") + data::in_quotes(names[c]);
    const std::string far = known ? outlier(table, names.size(), c) : "";
    if (!far.empty()) warnings.push_back(message(what, " ", data::in_quotes(names[c]), " ", far));
  }
  if (count > kShown) empty += message(" and ", count - kShown, " more");
  if (count > 0) warnings.push_back(message(what, count == 1 ? " " : "s ", "without any value: ", empty));
}

}  // namespace

std::vector<std::string> data_warnings(const DataSet& data) {
  std::vector<std::string> warnings;
  add_warnings(warnings, "channel", data.head.channels, data.values);
  add_warnings(warnings, "static feature", data.head.statics, data.statics);
  add_warnings(warnings, "target", data.head.targets, data.targets);
  return warnings;
}

}  // namespace fastweights

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

struct Column {
  double median = 0, range = 0;  // of the known values; range: between the quartiles, 0 if there is none
  double farthest = 0;           // from the median
  bool known = false;            // any value
};

void find_range(Column& column, std::vector<double> known) {
  if (known.size() < 4) return;
  const size_t quarter = known.size() / 4;
  column.farthest = column.median = value_at(known, 2 * quarter);
  column.range = value_at(known, known.size() - 1 - quarter);
  column.range -= value_at(known, quarter);
}

std::vector<Column> summarised(const std::vector<double>& table, size_t columns) {
  std::vector<Column> result(columns);
  if (columns == 0) return result;
  for (size_t c = 0; c < columns; ++c) find_range(result[c], known_values(table, columns, c));
  // one pass through memory for all columns
  for (size_t i = 0; i + columns <= table.size(); i += columns) {
    for (size_t c = 0; c < columns; ++c) {
      const double x = table[i + c];
      if (std::isnan(x)) continue;
      Column& column = result[c];
      column.known = true;
      if (std::abs(x - column.median) > std::abs(column.farthest - column.median)) column.farthest = x;
    }
  }
  return result;
}

// numbers that often stand for a missing value, such as -999
bool is_usual_code(double value) {
  const double size = std::abs(value);
  return size == 99 || size == 999 || size == 9999 || size == 99999 || size == 999999;
}

// "" if the column is ordinary; if half of the values are equal, the range says nothing about the others
std::string outlier(const Column& column) {
  constexpr double kFar = 1e6, kFarCode = 10;
  const bool code = is_usual_code(column.farthest);
  const double distance = std::abs(column.farthest - column.median) / column.range;
  if (!(column.range > 0) || !(distance > (code ? kFarCode : kFar))) return "";
  char range[32];
  std::snprintf(range, sizeof range, "%.3g", column.range);
  const std::string value = data::exact(column.farthest);
  return message(
      "has the value ", value, ", but half of its values are within ", range, " of each other; ",
      code ? "if it stands for a missing value: --missing " + value : "if it is an error, leave it empty");
}

enum class Empty { Warn, Accept };

void add_warnings(std::vector<std::string>& warnings, const char* what, const std::vector<std::string>& names,
                  const std::vector<double>& table, Empty when_empty) {
  constexpr size_t kShown = 5;
  const std::vector<Column> columns = summarised(table, names.size());
  std::string empty;
  size_t count = 0;
  for (size_t c = 0; c < names.size(); ++c) {
    if (!columns[c].known && ++count <= kShown)
      empty += (empty.empty() ? "" : ", ") + data::in_quotes(names[c]);
    const std::string far = outlier(columns[c]);
    if (!far.empty()) warnings.push_back(message(what, " ", data::in_quotes(names[c]), " ", far));
  }
  if (count > kShown) empty += message(" and ", count - kShown, " more");
  if (count > 0 && when_empty == Empty::Warn)
    warnings.push_back(message(what, count == 1 ? " " : "s ", "without any value: ", empty));
}

}  // namespace

namespace {

// numbers that are nearly all different are values to predict rather than classes
std::string label_warning(const DataSet& data) {
  constexpr int64_t kFewest = 20;
  const std::vector<std::string>& classes = data.head.classes;
  const bool numbers = std::all_of(classes.begin(), classes.end(), [](const std::string& name) {
    char* end = nullptr;
    std::strtod(name.c_str(), &end);
    return !name.empty() && *end == '\0';
  });
  const auto labelled =
      std::count_if(data.labels.begin(), data.labels.end(), [](int64_t l) { return l >= 0; });
  if (!numbers || data.classes() < kFewest || 2 * data.classes() < labelled) return "";
  return message("the labels are ", data.classes(), " different numbers for ", labelled,
                 " series; if they are values to predict, name their column with --target-columns");
}

std::string row_warning(const DataSet& data) {
  if (data.samples() < 2 || data.rows() != data.samples()) return "";
  return message("each series has one row; --id-column names the column that identifies the series, here '",
                 data.head.source.id, "'");
}

}  // namespace

std::vector<std::string> data_warnings(const DataSet& data) {
  std::vector<std::string> warnings = {label_warning(data), row_warning(data)};
  std::erase(warnings, "");
  add_warnings(warnings, "channel", data.head.channels, data.values, Empty::Warn);
  add_warnings(warnings, "static feature", data.head.statics, data.statics, Empty::Warn);
  // commands that need targets say themselves that there are none
  add_warnings(warnings, "target", data.head.targets, data.targets, Empty::Accept);
  return warnings;
}

}  // namespace fastweights

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "fastweights/task.h"
#include "train/task_rows.h"

namespace fastweights {
namespace {

bool is_missing(const DataSet& data, int64_t row) {
  const auto first = data.values.begin() + row * data.channels();
  return std::all_of(first, first + data.channels(), [](double x) { return std::isnan(x); });
}

// of the horizon, after this number of known rows
int64_t rows_after(const TaskConfig& task, int64_t known) {
  if (task.horizon >= 1) return horizon_rows(task, known);
  // a fraction is one of all rows, known and forecast
  const double share = task.horizon / (1 - task.horizon);
  return std::max<int64_t>(1, std::llround(static_cast<double>(known) * share));
}

}  // namespace

DataSet with_future(const DataSet& data, const TaskConfig& task, const Preparation& preparation,
                    int64_t rows) {
  check_horizon(task);
  FW_CHECK(rows >= 0, "[forecast] the number of rows must not be negative, got ", rows);
  constexpr int64_t kMost = 1000000;
  FW_CHECK(rows <= kMost, "[forecast] at most ", kMost, " rows can be forecast, got ", rows);
  DataSet result = data;
  result.offsets = {0};
  result.times.clear();
  result.values.clear();
  result.step_labels.clear();
  result.unused.clear();
  result.dates.clear();
  const auto unused = static_cast<int64_t>(data.head.unused.size());
  const bool labels = !data.step_labels.empty();
  for (int64_t b = 0; b < data.samples(); ++b) {
    const int64_t first = data.offsets[static_cast<size_t>(b)],
                  last = data.offsets[static_cast<size_t>(b) + 1];
    result.times.insert(result.times.end(), data.times.begin() + first, data.times.begin() + last);
    result.values.insert(result.values.end(), data.values.begin() + first * data.channels(),
                         data.values.begin() + last * data.channels());
    result.unused.insert(result.unused.end(), data.unused.begin() + first * unused,
                         data.unused.begin() + last * unused);
    if (!data.dates.empty())
      result.dates.insert(result.dates.end(), data.dates.begin() + first, data.dates.begin() + last);
    if (labels)
      result.step_labels.insert(result.step_labels.end(), data.step_labels.begin() + first,
                                data.step_labels.begin() + last);
    const int64_t more = is_missing(data, last - 1) ? 0 : rows > 0 ? rows : rows_after(task, last - first);
    const double end = data.times[static_cast<size_t>(last) - 1];
    for (int64_t i = 1; i <= more; ++i)
      result.times.push_back(end + static_cast<double>(i) * preparation.median_gap);
    result.values.insert(result.values.end(), static_cast<size_t>(more * data.channels()),
                         std::numeric_limits<double>::quiet_NaN());
    result.unused.resize(result.times.size() * data.head.unused.size());
    if (!data.dates.empty()) result.dates.resize(result.times.size());
    if (labels) result.step_labels.insert(result.step_labels.end(), static_cast<size_t>(more), -1);
    result.offsets.push_back(static_cast<int64_t>(result.times.size()));
  }
  return result;
}

}  // namespace fastweights

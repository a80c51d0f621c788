#include "data/time_split.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fastweights::data {
namespace {

int64_t share_of(double fraction, int64_t rows) { return std::llround(fraction * static_cast<double>(rows)); }

void check_windows(const SplitConfig& config) {
  FW_CHECK(config.window > 0, "[split] the number of rows of a window, split.window, must be positive, got ",
           config.window);
  FW_CHECK(config.stride > 0 && config.stride <= config.window, "[split] split.stride must be 1 to ",
           config.window, ", the rows of a window, got ", config.stride);
  FW_CHECK(config.gap >= 0, "[split] split.gap must not be negative, got ", config.gap);
}

int64_t longest_of(const DataSet& data) {
  int64_t rows = 0;
  for (int64_t b = 0; b < data.samples(); ++b) rows = std::max(rows, data.length(b));
  return rows;
}

}  // namespace

TimeParts time_parts(int64_t length, const SplitConfig& config) {
  const bool rolling = config.rule == SplitRule::Rolling;
  // rolling: as many rows for the test of each fold as before the first of these tests
  const int64_t tested = rolling ? length / (config.folds + 1) : share_of(config.test, length);
  const int64_t later = rolling ? tested * (config.folds - 1 - config.fold) : 0;
  // a gap only where there is a part after it
  const auto before = [&](const RowRange& part) {
    return std::max<int64_t>(part.first - (part.size() > 0 ? config.gap : 0), 0);
  };
  TimeParts parts;
  parts.test = {length - later - tested, length - later};
  const int64_t known = before(parts.test);
  const int64_t checked = std::min(share_of(config.validation, rolling ? known : length), known);
  parts.validation = {known - checked, known};
  parts.train = {0, before(parts.validation)};
  return parts;
}

std::vector<Window> windows_of(int64_t sample, const RowRange& rows, int64_t length, int64_t stride) {
  std::vector<Window> windows;
  if (stride == length) {
    const int64_t count = (rows.size() + length - 1) / length;
    for (int64_t i = 0; i < count; ++i)
      windows.push_back(
          {sample, rows.first + rows.size() * i / count, rows.first + rows.size() * (i + 1) / count});
    return windows;
  }
  for (int64_t last = rows.last; last - length >= rows.first; last -= stride)
    windows.push_back({sample, last - length, last});
  std::reverse(windows.begin(), windows.end());
  return windows;
}

Split time_split(const DataSet& data, const SplitConfig& config) {
  check_windows(config);
  Split split;
  const auto add = [&](int64_t sample, const RowRange& rows, std::vector<int64_t>& part) {
    for (const Window& window : windows_of(sample, rows, config.window, config.stride)) {
      part.push_back(static_cast<int64_t>(split.windows.size()));
      split.windows.push_back(window);
    }
  };
  for (int64_t b = 0; b < data.samples(); ++b) {
    const TimeParts parts = time_parts(data.length(b), config);
    add(b, parts.train, split.train);
    add(b, parts.validation, split.validation);
    add(b, parts.test, split.test);
  }
  const int64_t longest = longest_of(data);
  const TimeParts most = time_parts(longest, config);
  const auto check = [&](const char* name, const std::vector<int64_t>& part, const RowRange& rows) {
    FW_CHECK(!part.empty(), "[split] '", data.head.name, "' has no window of ", config.window, " rows for ",
             name, ": of the ", longest, " rows of its longest series ", rows.size(),
             " are for it; a smaller split.window or a larger fraction gives it one");
  };
  check("training", split.train, most.train);
  if (config.validation > 0) check("validation", split.validation, most.validation);
  if (config.test > 0 || config.rule == SplitRule::Rolling) check("the test", split.test, most.test);
  return split;
}

}  // namespace fastweights::data

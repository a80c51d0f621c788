#pragma once

#include <vector>

#include "fastweights/data.h"

/// The rules Time and Rolling: each series is divided along its time, and its parts into windows.

namespace fastweights::data {

/// Rows first .. last - 1 of a series.
struct RowRange {
  int64_t first = 0, last = 0;

  int64_t size() const { return last - first; }
};

struct TimeParts {
  RowRange train, validation, test;
};

/// The parts of a series of `length` rows.
TimeParts time_parts(int64_t length, const SplitConfig& config);

/// Windows of `length` rows that end at the end of the range and every `stride` rows before it. If the stride
/// is the length, each row is in one window, and windows may be shorter.
std::vector<Window> windows_of(int64_t sample, const RowRange& rows, int64_t length, int64_t stride);

/// An error if a part with a fraction above 0 has no window.
Split time_split(const DataSet& data, const SplitConfig& config);

}  // namespace fastweights::data

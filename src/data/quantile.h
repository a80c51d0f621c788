#pragma once

#include <algorithm>
#include <vector>

namespace fastweights::data {

/// The value below which a fraction of the values lies, one of them; reorders them.
inline double quantile(std::vector<double>& values, double fraction) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace fastweights::data

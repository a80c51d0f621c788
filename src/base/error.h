#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

/// Error reporting: an invalid argument is `std::invalid_argument`, a failing file or device is
/// `std::runtime_error`, and the outcome of a solve is a value (`Status` in solve.h).

namespace fastweights {

/// Concatenates the parts of a message as a stream would print them.
template <typename... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  out.precision(17);
  (out << ... << parts);
  return out.str();
}

}  // namespace fastweights

/// Checks an argument at the public boundary: FW_CHECK(depth > 0, "[logsignature] depth must be positive, got
/// ", depth)
#define FW_CHECK(condition, ...)                                        \
  do {                                                                  \
    if (!(condition)) {                                                 \
      throw std::invalid_argument(::fastweights::message(__VA_ARGS__)); \
    }                                                                   \
  } while (false)

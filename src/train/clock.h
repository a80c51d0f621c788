#pragma once

#include <chrono>
#include <string>

namespace fastweights {

/// The time of day in this form of strftime.
std::string utc_now(const char* form);

class Stopwatch {
 public:
  /// Seconds since the last lap, or since it was made.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace fastweights

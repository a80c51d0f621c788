#pragma once

#include <cstdint>

namespace fastweights {

/// Random numbers that are bitwise reproducible on every machine and with every compiler: splitmix64, which
/// mixes the values of a counter, and no function of the mathematical library except the square root.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// 64 random bits.
  uint64_t next();
  /// In [0, 1), a multiple of 2^-53.
  double uniform();
  /// In [low, high), or high after rounding.
  double uniform(double low, double high);
  /// Mean 0, variance 1.
  double normal();

  /// The counter, from which another generator can continue.
  uint64_t state() const { return state_; }
  /// Skips this number of calls of next() or uniform().
  void skip(uint64_t count) { state_ += count * 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_;
};

}  // namespace fastweights

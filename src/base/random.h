#pragma once

#include <cstdint>

namespace fastweights {

/// Random numbers that are the same on every machine and with every compiler, bit for bit: a counter whose
/// values are mixed (splitmix64), and nothing from the mathematical library but the square root.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// 64 random bits.
  uint64_t next();
  /// In [0, 1), a multiple of 2^-53.
  double uniform();
  /// In [low, high), or high where rounding leads there.
  double uniform(double low, double high);
  /// Mean 0, variance 1.
  double normal();

  /// The counter, from which others can go on.
  uint64_t state() const { return state_; }
  /// As if so many numbers had been drawn by next() or uniform().
  void skip(uint64_t count) { state_ += count * 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_;
};

}  // namespace fastweights

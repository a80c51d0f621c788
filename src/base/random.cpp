#include "base/random.h"

#include <cmath>

namespace fastweights {
namespace {

// log x for x > 0 from operations that every machine rounds alike; log m = 2 artanh((m - 1) / (m + 1))
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;  // |s| < 0.172: s^23 is below rounding
  double series = 0;
  for (int n = 23; n >= 1; n -= 2) series = series * s2 + 1.0 / n;
  return 2 * s * series + exponent * 0.69314718055994531;
}

}  // namespace

uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

// Marsaglia's polar form of Box and Muller's method, which needs no sine; the second of its two numbers is
// omitted so that the counter is the whole state
double Random::normal() {
  while (true) {
    const double x = uniform(-1, 1), y = uniform(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * portable_log(square) / square);
  }
}

}  // namespace fastweights

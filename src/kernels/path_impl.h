#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/path.h"

/// The arithmetic of paths, one channel or one value at a time: what the CPU's loops and a GPU's threads
/// both do.

namespace fastweights::kernels::paths {

// the knots through which one channel is drawn, and where their values come from: a filled knot repeats
// the first or last observation. An Array is anything indexed by [i].
template <typename Array>
struct Channel {
  int64_t count;
  Array t;       // [count]
  Array x;       // [count]
  Array slope;   // [count], dx/dt at the knots
  Array work;    // [count], the eliminated off-diagonal
  Array knot;    // [count], index on the time grid; integers kept as double to share one scratch array
  Array source;  // [count], row of the data that gives the value
};

template <typename T, typename Array>
FW_HOST_DEVICE void gather(PathKind kind, const Knots& knots, const T* data,
                           Channel<Array>& channel) noexcept {
  const int64_t last_row = knots.length - 1;
  int64_t first = 0, last = last_row;
  while (first <= last_row && std::isnan(data[first * knots.channels])) ++first;
  channel.count = 0;
  if (first > last_row) return;
  while (std::isnan(data[last * knots.channels])) --last;
  const bool whole_gap = kind == PathKind::NaturalWholeGap;
  for (int64_t row = 0; row <= last_row; ++row) {
    int64_t source = row;
    if (row < first || row > last) {
      if (!whole_gap && row != 0 && row != last_row) continue;
      source = row < first ? first : last;
    } else if (std::isnan(data[row * knots.channels])) {
      continue;
    }
    const int64_t i = channel.count++;
    channel.t[i] = knots.times[row];
    channel.x[i] = data[source * knots.channels];
    channel.knot[i] = static_cast<double>(row);
    channel.source[i] = static_cast<double>(source);
  }
}

// solves the symmetric tridiagonal system of the natural spline in place: diagonal 2 (1/h_(i-1) + 1/h_i),
// off-diagonal 1/h_i
template <typename Array>
FW_HOST_DEVICE void solve_natural_system(const Channel<Array>& channel, Array rhs) noexcept {
  const int64_t n = channel.count;
  double left = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double right = i + 1 < n ? 1 / (channel.t[i + 1] - channel.t[i]) : 0;
    double diagonal = 2 * (left + right);
    if (i > 0) {
      diagonal -= left * channel.work[i - 1];
      rhs[i] -= left * rhs[i - 1];
    }
    channel.work[i] = right / diagonal;
    rhs[i] /= diagonal;
    left = right;
  }
  for (int64_t i = n - 2; i >= 0; --i) rhs[i] -= channel.work[i] * rhs[i + 1];
}

template <typename Array>
FW_HOST_DEVICE void natural_slopes(const Channel<Array>& channel) noexcept {
  for (int64_t i = 0; i < channel.count; ++i) channel.slope[i] = 0;
  for (int64_t i = 0; i + 1 < channel.count; ++i) {
    const double h = channel.t[i + 1] - channel.t[i];
    const double pull = 3 * (channel.x[i + 1] - channel.x[i]) / (h * h);
    channel.slope[i] += pull;
    channel.slope[i + 1] += pull;
  }
  solve_natural_system(channel, channel.slope);
}

struct Cubic {
  double a, b, two_c, three_d;
};

// the piece between knots p and p + 1 from values and slopes at both ends
template <typename Array>
FW_HOST_DEVICE Cubic piece_between(const Channel<Array>& channel, int64_t p) noexcept {
  const double h = channel.t[p + 1] - channel.t[p];
  const double secant = (channel.x[p + 1] - channel.x[p]) / h;
  const double s0 = channel.slope[p], s1 = channel.slope[p + 1];
  return {channel.x[p], s0, (6 * secant - 4 * s0 - 2 * s1) / h, (3 * (s0 + s1) - 6 * secant) / (h * h)};
}

// natural cubic: through the knots of the channel, then re-expressed on every interval of the time grid
template <typename T, typename Array>
FW_HOST_DEVICE void natural_forward(const Knots& knots, const Channel<Array>& channel, T* out) noexcept {
  natural_slopes(channel);
  const int64_t c = knots.channels;
  for (int64_t p = 0; p + 1 < channel.count; ++p) {
    const Cubic k = piece_between(channel, p);
    for (auto i = static_cast<int64_t>(channel.knot[p]); i < static_cast<int64_t>(channel.knot[p + 1]); ++i) {
      const double s = knots.times[i] - channel.t[p];
      T* o = out + i * 4 * c;
      o[0] = static_cast<T>(k.a + (k.b + (k.two_c / 2 + k.three_d * s / 3) * s) * s);
      o[c] = static_cast<T>(k.b + (k.two_c + k.three_d * s) * s);
      o[2 * c] = static_cast<T>(k.two_c + 2 * k.three_d * s);
      o[3 * c] = static_cast<T>(k.three_d);
    }
  }
}

// a channel that is never observed is zero
template <typename T>
FW_HOST_DEVICE void zero_path(int64_t pieces, int64_t terms, int64_t channels, T* out) noexcept {
  for (int64_t i = 0; i < pieces * terms; ++i) out[i * channels] = 0;
}

// one piece of a linear or Hermite path from its value at the beginning, its secant, the secant on its left
// and its duration h
template <typename T>
FW_HOST_DEVICE void store_straight(PathKind kind, double value, double secant, double before, double h,
                                   int64_t channels, T* out) noexcept {
  out[0] = static_cast<T>(value);
  if (kind == PathKind::Linear) {
    out[channels] = static_cast<T>(secant);
    return;
  }
  out[channels] = static_cast<T>(before);
  out[2 * channels] = static_cast<T>(4 * (secant - before) / h);
  out[3 * channels] = static_cast<T>(3 * (before - secant) / (h * h));
}

// count of entries below t in a rising list
FW_HOST_DEVICE inline int64_t count_below(const double* times, int64_t length, double t) noexcept {
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (times[middle] < t) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// index of the piece that holds t: the number of knots strictly below t, less one
FW_HOST_DEVICE inline int64_t piece_at(const double* times, int64_t length, double t) noexcept {
  const int64_t piece = count_below(times, length, t) - 1, last = length - 2;
  return piece < 0 ? 0 : (piece > last ? last : piece);
}

FW_HOST_DEVICE inline double line_value(double a, double b, double s) noexcept { return a + b * s; }

FW_HOST_DEVICE inline double cubic_value(double a, double b, double two_c, double bend, double s) noexcept {
  return a + (b + (two_c * 0.5 + bend / 3) * s) * s;
}

FW_HOST_DEVICE inline double cubic_derivative(double b, double two_c, double bend, double s) noexcept {
  return b + (two_c + bend) * s;
}

}  // namespace fastweights::kernels::paths

#include "kernels/path.h"

#include <algorithm>
#include <cmath>

namespace fastweights::kernels {
namespace {

// the knots through which one channel is drawn, and where their values come from: a filled knot repeats
// the first or last observation
struct Channel {
  int64_t count;
  double* t;       // [count]
  double* x;       // [count]
  double* slope;   // [count], dx/dt at the knots
  double* work;    // [count], the eliminated off-diagonal
  double* knot;    // [count], index on the time grid; whole numbers kept as double to share one scratch array
  double* source;  // [count], row of the data that gives the value
};

Channel layout(double* scratch, int64_t length) noexcept {
  return {.count = 0,
          .t = scratch,
          .x = scratch + length,
          .slope = scratch + 2 * length,
          .work = scratch + 3 * length,
          .knot = scratch + 4 * length,
          .source = scratch + 5 * length};
}

template <typename T>
void gather(PathKind kind, const Knots& knots, const T* data, Channel& channel) noexcept {
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
void solve_natural_system(const Channel& channel, double* rhs) noexcept {
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

void natural_slopes(const Channel& channel) noexcept {
  std::fill(channel.slope, channel.slope + channel.count, 0.0);
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
Cubic piece_between(const Channel& channel, int64_t p) noexcept {
  const double h = channel.t[p + 1] - channel.t[p];
  const double secant = (channel.x[p + 1] - channel.x[p]) / h;
  const double s0 = channel.slope[p], s1 = channel.slope[p + 1];
  return {channel.x[p], s0, (6 * secant - 4 * s0 - 2 * s1) / h, (3 * (s0 + s1) - 6 * secant) / (h * h)};
}

// natural cubic: through the knots of the channel, then expressed anew on every interval of the time grid
template <typename T>
void natural_forward(const Knots& knots, const Channel& channel, T* out) noexcept {
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

// gradients of values (left in channel.x) from gradients of the coefficients on the time grid
template <typename T>
void natural_backward(const Knots& knots, const Channel& channel, const T* grad) noexcept {
  const int64_t c = knots.channels, n = channel.count;
  double* grad_x = channel.x;
  double* grad_slope = channel.slope;
  std::fill(grad_x, grad_x + n, 0.0);
  std::fill(grad_slope, grad_slope + n, 0.0);
  for (int64_t p = 0; p + 1 < n; ++p) {
    // from the time grid back to the piece between the knots
    Cubic g = {0, 0, 0, 0};
    for (auto i = static_cast<int64_t>(channel.knot[p]); i < static_cast<int64_t>(channel.knot[p + 1]); ++i) {
      const double s = knots.times[i] - channel.t[p];
      const T* o = grad + i * 4 * c;
      const double ga = o[0], gb = o[c], gc = o[2 * c], gd = o[3 * c];
      g.a += ga;
      g.b += ga * s + gb;
      g.two_c += (ga * s / 2 + gb) * s + gc;
      g.three_d += ((ga * s / 3 + gb) * s + 2 * gc) * s + gd;
    }
    // from the piece to values and slopes at its ends
    const double h = channel.t[p + 1] - channel.t[p];
    const double grad_secant = 6 * g.two_c / h - 6 * g.three_d / (h * h);
    grad_x[p] += g.a - grad_secant / h;
    grad_x[p + 1] += grad_secant / h;
    grad_slope[p] += g.b - 4 * g.two_c / h + 3 * g.three_d / (h * h);
    grad_slope[p + 1] += -2 * g.two_c / h + 3 * g.three_d / (h * h);
  }
  // the system is symmetric, so its transpose is itself
  solve_natural_system(channel, grad_slope);
  for (int64_t p = 0; p + 1 < n; ++p) {
    const double h = channel.t[p + 1] - channel.t[p];
    const double pull = 3 * (grad_slope[p] + grad_slope[p + 1]) / (h * h);
    grad_x[p] -= pull;
    grad_x[p + 1] += pull;
  }
}

// linear and Hermite paths run through every point of the time grid; a gap is filled on the straight line
template <typename T>
void straight_forward(PathKind kind, const Knots& knots, const Channel& channel, T* out) noexcept {
  const int64_t c = knots.channels, terms = path_terms(kind);
  double before = 0;
  for (int64_t p = 0; p + 1 < channel.count; ++p) {
    const double secant = (channel.x[p + 1] - channel.x[p]) / (channel.t[p + 1] - channel.t[p]);
    for (auto i = static_cast<int64_t>(channel.knot[p]); i < static_cast<int64_t>(channel.knot[p + 1]); ++i) {
      T* o = out + i * terms * c;
      o[0] = static_cast<T>(channel.x[p] + secant * (knots.times[i] - channel.t[p]));
      if (kind == PathKind::Linear) {
        o[c] = static_cast<T>(secant);
        continue;
      }
      // the slope at a knot is that of the piece on its left; the first knot takes the first piece's
      if (i == 0) before = secant;
      const double h = knots.times[i + 1] - knots.times[i];
      o[c] = static_cast<T>(before);
      o[2 * c] = static_cast<T>(4 * (secant - before) / h);
      o[3 * c] = static_cast<T>(3 * (before - secant) / (h * h));
      before = secant;
    }
  }
}

template <typename T>
void straight_backward(PathKind kind, const Knots& knots, const Channel& channel, const T* grad) noexcept {
  const int64_t c = knots.channels, terms = path_terms(kind), n = channel.count;
  double* grad_x = channel.x;
  std::fill(grad_x, grad_x + n, 0.0);
  // gradient that the pieces seen so far, from the right, leave for the slope of the piece on their left
  double grad_before = 0;
  for (int64_t p = n - 2; p >= 0; --p) {
    double grad_secant = 0;
    for (auto i = static_cast<int64_t>(channel.knot[p + 1]) - 1; i >= static_cast<int64_t>(channel.knot[p]);
         --i) {
      const T* o = grad + i * terms * c;
      grad_x[p] += o[0];
      grad_secant += o[0] * (knots.times[i] - channel.t[p]);
      if (kind == PathKind::Linear) {
        grad_secant += o[c];
        continue;
      }
      const double h = knots.times[i + 1] - knots.times[i];
      const double bend = 4 * static_cast<double>(o[2 * c]) / h - 3 * static_cast<double>(o[3 * c]) / (h * h);
      grad_secant += bend + grad_before;
      grad_before = o[c] - bend;
      if (i == 0) grad_secant += grad_before;
    }
    const double h = channel.t[p + 1] - channel.t[p];
    grad_x[p] -= grad_secant / h;
    grad_x[p + 1] += grad_secant / h;
  }
}

bool natural(PathKind kind) noexcept {
  return kind == PathKind::NaturalEndPoint || kind == PathKind::NaturalWholeGap;
}

// index of the piece that holds t: the number of knots strictly below t, less one
int64_t find_piece(const Knots& knots, double t, int64_t hint) noexcept {
  const double* times = knots.times;
  const int64_t last = knots.length - 2;
  // queries mostly come in order: try the piece of the last one and its right neighbour first
  for (int64_t i = hint; i <= std::min(hint + 1, last); ++i) {
    if (times[i] < t && t <= times[i + 1]) return i;
  }
  const int64_t below = std::lower_bound(times, times + knots.length, t) - times;
  return std::clamp<int64_t>(below - 1, 0, last);
}

}  // namespace

template <typename T>
void path_coefficients(PathKind kind, const Knots& knots, const T* data, T* coefficients,
                       double* scratch) noexcept {
  Channel channel = layout(scratch, knots.length);
  for (int64_t c = 0; c < knots.channels; ++c) {
    gather(kind, knots, data + c, channel);
    T* out = coefficients + c;
    if (channel.count == 0) {
      // never observed: the path is zero
      const int64_t rows = (knots.length - 1) * path_terms(kind);
      for (int64_t i = 0; i < rows; ++i) out[i * knots.channels] = 0;
    } else if (natural(kind)) {
      natural_forward(knots, channel, out);
    } else {
      straight_forward(kind, knots, channel, out);
    }
  }
}

template <typename T>
void path_coefficients_backward(PathKind kind, const Knots& knots, const T* data, const T* grad_coefficients,
                                T* grad_data, double* scratch) noexcept {
  Channel channel = layout(scratch, knots.length);
  for (int64_t c = 0; c < knots.channels; ++c) {
    gather(kind, knots, data + c, channel);
    if (channel.count == 0) continue;
    if (natural(kind)) {
      natural_backward(knots, channel, grad_coefficients + c);
    } else {
      straight_backward(kind, knots, channel, grad_coefficients + c);
    }
    for (int64_t i = 0; i < channel.count; ++i) {
      grad_data[static_cast<int64_t>(channel.source[i]) * knots.channels + c] += static_cast<T>(channel.x[i]);
    }
  }
}

template <typename T>
void path_sample(const Pieces<T>& pieces, const double* times, int64_t count, T* value,
                 T* derivative) noexcept {
  const int64_t channels = pieces.knots.channels;
  int64_t i = 0;
  for (int64_t q = 0; q < count; ++q, value += channels, derivative += channels) {
    i = find_piece(pieces.knots, times[q], i);
    const double s = times[q] - pieces.knots.times[i];
    const T* a = pieces.coefficients + i * pieces.terms * channels;
    const T* b = a + channels;
    if (pieces.terms == 2) {
      for (int64_t c = 0; c < channels; ++c) {
        value[c] = static_cast<T>(a[c] + b[c] * s);
        derivative[c] = b[c];
      }
      continue;
    }
    const T* two_c = b + channels;
    const T* three_d = two_c + channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double bend = three_d[c] * s;
      value[c] = static_cast<T>(a[c] + (b[c] + (two_c[c] * 0.5 + bend / 3) * s) * s);
      derivative[c] = static_cast<T>(b[c] + (two_c[c] + bend) * s);
    }
  }
}

template <typename T>
void path_sample_backward(const Pieces<T>& pieces, const double* times, int64_t count, const T* grad_value,
                          const T* grad_derivative, T* grad_coefficients, double* grad_times) noexcept {
  const int64_t channels = pieces.knots.channels;
  const bool cubic = pieces.terms == 4;
  int64_t i = 0;
  for (int64_t q = 0; q < count; ++q) {
    i = find_piece(pieces.knots, times[q], i);
    const double s = times[q] - pieces.knots.times[i];
    const T* k = pieces.coefficients + i * pieces.terms * channels;
    T* g = grad_coefficients ? grad_coefficients + i * pieces.terms * channels : nullptr;
    double grad_time = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const double gv = grad_value ? grad_value[q * channels + c] : T(0);
      const double gd = grad_derivative ? grad_derivative[q * channels + c] : T(0);
      if (g) {
        g[c] += static_cast<T>(gv);
        g[channels + c] += static_cast<T>(gv * s + gd);
        if (cubic) {
          g[2 * channels + c] += static_cast<T>((gv * s / 2 + gd) * s);
          g[3 * channels + c] += static_cast<T>((gv * s / 3 + gd) * s * s);
        }
      }
      const double two_c = cubic ? k[2 * channels + c] : T(0), three_d = cubic ? k[3 * channels + c] : T(0);
      const double slope = k[channels + c] + (two_c + three_d * s) * s;
      grad_time += gv * slope + gd * (two_c + 2 * three_d * s);
    }
    if (grad_times) grad_times[q] += grad_time;
  }
}

template <typename T>
void rectilinear_knots(const Knots& knots, const T* data, int64_t time_channel, T* doubled) noexcept {
  const int64_t channels = knots.channels;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t source = 0;
    while (source < knots.length && std::isnan(data[source * channels + c])) ++source;
    T current = source < knots.length ? data[source * channels + c] : T(0);
    for (int64_t row = 0; row < knots.length; ++row) {
      const T before = current;
      if (!std::isnan(data[row * channels + c])) current = data[row * channels + c];
      // between two rows the time channel has moved already, the others have not
      if (row > 0) doubled[(2 * row - 1) * channels + c] = c == time_channel ? current : before;
      doubled[2 * row * channels + c] = current;
    }
  }
}

template <typename T>
void rectilinear_knots_backward(const Knots& knots, const T* data, int64_t time_channel,
                                const T* grad_doubled, T* grad_data) noexcept {
  const int64_t channels = knots.channels;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t source = 0;
    while (source < knots.length && std::isnan(data[source * channels + c])) ++source;
    if (source == knots.length) continue;
    for (int64_t row = 0; row < knots.length; ++row) {
      const int64_t before = source;
      if (!std::isnan(data[row * channels + c])) source = row;
      if (row > 0) {
        const int64_t between = c == time_channel ? source : before;
        grad_data[between * channels + c] += grad_doubled[(2 * row - 1) * channels + c];
      }
      grad_data[source * channels + c] += grad_doubled[2 * row * channels + c];
    }
  }
}

#define FW_INSTANTIATE_PATH(T)                                                                            \
  template void path_coefficients<T>(PathKind, const Knots&, const T*, T*, double*) noexcept;             \
  template void path_coefficients_backward<T>(PathKind, const Knots&, const T*, const T*, T*,             \
                                              double*) noexcept;                                          \
  template void path_sample<T>(const Pieces<T>&, const double*, int64_t, T*, T*) noexcept;                \
  template void path_sample_backward<T>(const Pieces<T>&, const double*, int64_t, const T*, const T*, T*, \
                                        double*) noexcept;                                                \
  template void rectilinear_knots<T>(const Knots&, const T*, int64_t, T*) noexcept;                       \
  template void rectilinear_knots_backward<T>(const Knots&, const T*, int64_t, const T*, T*) noexcept;

FW_INSTANTIATE_PATH(float)
FW_INSTANTIATE_PATH(double)

}  // namespace fastweights::kernels

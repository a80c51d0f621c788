#include "kernels/path.h"

#include <algorithm>
#include <cmath>

#include "kernels/path_impl.h"

namespace fastweights::kernels {
namespace {

using namespace paths;

// on the CPU the arrays of a channel follow each other
using Row = Channel<double*>;

Row layout(double* scratch, int64_t length) noexcept {
  return {.count = 0,
          .t = scratch,
          .x = scratch + length,
          .slope = scratch + 2 * length,
          .work = scratch + 3 * length,
          .knot = scratch + 4 * length,
          .source = scratch + 5 * length};
}

// gradients of values (left in channel.x) from gradients of the coefficients on the time grid
template <typename T>
void natural_backward(const Knots& knots, const Row& channel, const T* grad) noexcept {
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
void straight_forward(PathKind kind, const Knots& knots, const Row& channel, T* out) noexcept {
  const int64_t c = knots.channels, terms = path_terms(kind);
  double before = 0;
  for (int64_t p = 0; p + 1 < channel.count; ++p) {
    const double secant = (channel.x[p + 1] - channel.x[p]) / (channel.t[p + 1] - channel.t[p]);
    for (auto i = static_cast<int64_t>(channel.knot[p]); i < static_cast<int64_t>(channel.knot[p + 1]); ++i) {
      // the slope at a knot is that of the piece on its left; the first knot takes the first piece's
      if (i == 0) before = secant;
      store_straight(kind, channel.x[p] + secant * (knots.times[i] - channel.t[p]), secant, before,
                     knots.times[i + 1] - knots.times[i], c, out + i * terms * c);
      before = secant;
    }
  }
}

template <typename T>
void straight_backward(PathKind kind, const Knots& knots, const Row& channel, const T* grad) noexcept {
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

int64_t find_piece(const Knots& knots, double t, int64_t hint) noexcept {
  const double* times = knots.times;
  const int64_t last = knots.length - 2;
  // queries mostly come in order: try the piece of the last one and its right neighbour first
  for (int64_t i = hint; i <= std::min(hint + 1, last); ++i) {
    if (times[i] < t && t <= times[i + 1]) return i;
  }
  return piece_at(times, knots.length, t);
}

}  // namespace

template <typename T>
void path_coefficients(PathKind kind, const Knots& knots, const T* data, T* coefficients,
                       double* scratch) noexcept {
  Row channel = layout(scratch, knots.length);
  for (int64_t c = 0; c < knots.channels; ++c) {
    gather(kind, knots, data + c, channel);
    T* out = coefficients + c;
    if (channel.count == 0) {
      zero_path(knots.length - 1, path_terms(kind), knots.channels, out);
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
  Row channel = layout(scratch, knots.length);
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
        value[c] = static_cast<T>(line_value(a[c], b[c], s));
        derivative[c] = b[c];
      }
      continue;
    }
    const T* two_c = b + channels;
    const T* three_d = two_c + channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double bend = three_d[c] * s;
      value[c] = static_cast<T>(cubic_value(a[c], b[c], two_c[c], bend, s));
      derivative[c] = static_cast<T>(cubic_derivative(b[c], two_c[c], bend, s));
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

#pragma once

#include <cstdint>

/// Piecewise polynomial paths through one series, on raw pointers. Every path is stored in one form:
/// on the piece that starts at t_i, with s = t - t_i,
///   x(t)  = a + (b + (two_c / 2 + three_d s / 3) s) s        x'(t) = b + (two_c + three_d s) s
/// and a linear path keeps a and b alone. All maps from the data to the coefficients are linear for given
/// times and given missing values, so each backward function is the transpose of its forward function.

namespace fastweights::kernels {

enum class PathKind { NaturalEndPoint, NaturalWholeGap, Hermite, Linear };

/// Coefficients per piece: a, b for linear paths, a, b, two_c, three_d for cubic ones.
constexpr int64_t path_terms(PathKind kind) { return kind == PathKind::Linear ? 2 : 4; }

/// One series: its times, and data of [length, channels] beside them.
struct Knots {
  const double* times;
  int64_t length;
  int64_t channels;
};

/// Doubles of scratch that the coefficient functions need for a series of this length.
constexpr int64_t path_scratch(int64_t length) { return 6 * length; }

/// Data [length, channels] with NaN for missing values to coefficients [length - 1, terms, channels].
template <typename T>
void path_coefficients(PathKind kind, const Knots& knots, const T* data, T* coefficients,
                       double* scratch) noexcept;

/// Adds the gradient with respect to the data to grad_data; data is read only to see what is missing.
template <typename T>
void path_coefficients_backward(PathKind kind, const Knots& knots, const T* data, const T* grad_coefficients,
                                T* grad_data, double* scratch) noexcept;

/// Coefficients of one series, ready to be evaluated.
template <typename T>
struct Pieces {
  Knots knots;
  int64_t terms;
  const T* coefficients;  // [length - 1, terms, channels]
};

/// Values and derivatives [count, channels] at the given times. A knot belongs to the piece on its left;
/// outside the range the first or last piece is extrapolated.
template <typename T>
void path_sample(const Pieces<T>& pieces, const double* times, int64_t count, T* value,
                 T* derivative) noexcept;

/// Adds to the gradients of the coefficients and of the times (which may be null); the gradients of value
/// and derivative may be null, too.
template <typename T>
void path_sample_backward(const Pieces<T>& pieces, const double* times, int64_t count, const T* grad_value,
                          const T* grad_derivative, T* grad_coefficients, double* grad_times) noexcept;

/// Doubles the knots of one series for a rectilinear path: (t1, x1), (t2, x1), (t2, x2), ... The time channel
/// moves first, the others follow. Missing values are carried forward; a leading gap takes the first
/// observation.
template <typename T>
void rectilinear_knots(const Knots& knots, const T* data, int64_t time_channel, T* doubled) noexcept;

template <typename T>
void rectilinear_knots_backward(const Knots& knots, const T* data, int64_t time_channel,
                                const T* grad_doubled, T* grad_data) noexcept;

}  // namespace fastweights::kernels

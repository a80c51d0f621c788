#pragma once

#include "ops/scan/cpu/query_impl.h"

/// A step in closed form, forward and backward (README.md, sections 2 and 3): e = s - M p obeys e' = -beta
/// |p|^2 phi(e), so with x = beta |p|^2 dt the mean slope over the step is beta psi(e, x) p^T, psi = (e - e+)
/// / x.

namespace fastweights::kernels::FW_ISA {

// (1 - e^-x) / x, its derivative, and e^-x
template <typename T>
struct Decay {
  Pack<T> x, value, slope, left;
};
template <typename T>
inline Decay<T> decay_of(Pack<T> x) noexcept {
  constexpr T kSmall = sizeof(T) == sizeof(float) ? T(0.5) : T(0.05);
  const Pack<T> small = all<T>(kSmall), one = all<T>(T{1}), minus = vector_expm1<T>(-x);
  const auto near = x * x < small * small;
  const Pack<T> safe = near ? one : x;
  const Pack<T> value = -minus / safe, slope = (minus + T{1} - value) / safe;
  // Taylor's series, good to rounding where x is small
  Pack<T> series = all<T>(T{1} / T{5040}), series_slope = all<T>(T{-1} / T{5760});
  constexpr T kValue[] = {T{-1} / 720, T{1} / 120, T{-1} / 24, T{1} / 6, T{-1} / 2, T{1}};
  constexpr T kSlope[] = {T{1} / 840, T{-1} / 144, T{1} / 30, T{-1} / 8, T{1} / 3, T{-1} / 2};
  series = series - x * T{1} / T{40320};
  series_slope = series_slope + x * T{1} / T{45360};
  for (int k = 0; k < 6; ++k) {
    series = series * x + kValue[k];
    series_slope = series_slope * x + kSlope[k];
  }
  return {x, near ? series : value, near ? series_slope : slope, vector_exp<T>(-x)};
}

// psi, its derivatives with respect to e and x, and phi(e+) = psi + x dpsi/dx
template <typename T>
struct Psi {
  Pack<T> value, by_e, by_x, end;
};

// what psi of a tanh is made of, for e >= 0: sinh and cosh of e, and those of e+
template <typename T>
struct Arc {
  Pack<T> sinh, cosh, sinh_end, cosh_end;
};
template <typename T>
inline Arc<T> arc_of(Pack<T> size, const Decay<T>& d) noexcept {
  const Pack<T> minus = vector_expm1<T>(size), inverse = T{1} / (minus + T{1});
  const Pack<T> sinh = (minus + minus * inverse) * T(0.5), end = sinh * d.left;
  return {sinh, sinh + inverse, end, vector_sqrt<T>(T{1} + end * end)};
}

// (e - e+) / x = log1p(q) / x with q = e^(e - e+) - 1, all of whose terms are positive
template <typename T>
inline Pack<T> arc_mean(const Arc<T>& a, const Decay<T>& d) noexcept {
  const Pack<T> sum = a.cosh + a.cosh_end;
  const Pack<T> by_x =
      d.value * a.sinh * (sum + a.sinh * (T{1} + d.left)) / (sum * (a.sinh_end + a.cosh_end));
  const Pack<T> q = by_x * d.x, one = all<T>(T{1});
  constexpr T kTiny = T(1e-30);
  const auto some = q * q > all<T>(kTiny);
  return some ? by_x * vector_log1p<T>(q) / (some ? q : one) : by_x;
}

// from here on tanh(e) is 1, and e moves with speed 1
inline constexpr int kFar = 20;

template <typename T>
inline Pack<T> mean_tanh(Pack<T> e, const Decay<T>& d) noexcept {
  const Pack<T> zero = Pack<T>{}, size = e < zero ? -e : e;
  const Pack<T> mean = arc_mean<T>(arc_of<T>(size, d), d);
  return e < zero ? -mean : mean;
}

template <typename T>
inline Psi<T> tanh_psi(Pack<T> e, const Decay<T>& d) noexcept {
  constexpr T kSmall = sizeof(T) == sizeof(float) ? T(1e-2) : T(1e-4);
  const Pack<T> zero = Pack<T>{}, one = all<T>(T{1}), size = e < zero ? -e : e;
  const Arc<T> a = arc_of<T>(size, d);
  const Pack<T> mean = arc_mean<T>(a, d), end = a.sinh_end / a.cosh_end;
  const Pack<T> by_e = d.value * (T{1} + d.left) / (a.cosh_end * (a.cosh_end + a.cosh * d.left));
  // the derivatives of tanh(e) along e' = -tanh(e) give psi's series
  const Pack<T> t = a.sinh / a.cosh, square = t * t, slope = t * (square - T{1});
  const Pack<T> series = slope * (T(0.5) + d.x * ((square * T{3} - T{1}) / T{3} +
                                                  d.x * (T{1} + square * (square * T{15} - T{12})) / T{8}));
  const auto near = d.x * d.x < all<T>(kSmall * kSmall);
  const Pack<T> by_x = near ? series : (end - mean) / (near ? one : d.x);
  const auto negative = e < zero;
  return {negative ? -mean : mean, by_e, negative ? -by_x : by_x, negative ? -end : end};
}

// the same for any e: first the straight part of the way
template <typename T>
inline Psi<T> far_psi(Pack<T> e, Pack<T> x) noexcept {
  const Pack<T> zero = Pack<T>{}, one = all<T>(T{1}), far = all<T>(static_cast<T>(kFar));
  const auto negative = e < zero;
  const Pack<T> size = negative ? -e : e, beyond = size > far ? size - far : zero;
  const Pack<T> limited = beyond < x ? beyond : x, straight = limited > zero ? limited : zero;
  const Pack<T> rest = x - straight, safe = straight > zero ? x : one;
  const Psi<T> near = tanh_psi<T>(size - straight, decay_of<T>(rest));
  const Pack<T> share = straight > zero ? rest / safe : one;
  const Pack<T> mean = straight > zero ? straight / safe + share * near.value : near.value;
  const Pack<T> by_x = straight > zero ? (near.end - mean) / safe : near.by_x;
  return {negative ? -mean : mean, share * near.by_e, negative ? -by_x : by_x,
          negative ? -near.end : near.end};
}

// whether a row of some lane is beyond kFar
template <typename T>
inline bool any_far(const Pack<T>* e, int64_t width) noexcept {
  Pack<T> largest = e[0] * e[0];
  for (int64_t i = 1; i < width; ++i) largest = larger(e[i] * e[i], largest);
  bool any = false;
  for (int64_t l = 0; l < kLanes<T>; ++l) any = any || element<T>(&largest, 0, l) > T{kFar} * T{kFar};
  return any;
}

// beta psi(e, x) of all rows
template <typename T, int Width>
inline void flow_slopes(const ScanPlan& plan, Pack<T> beta, Pack<T> x, const Pack<T>* e,
                        Pack<T>* g) noexcept {
  const int64_t width = width_of<Width>(plan);
  if (plan.phi == ScanPhi::Value) {
    for (int64_t i = 0; i < width; ++i) g[i] = beta * e[i];
    return;
  }
  const Decay<T> d = decay_of<T>(x);
  if (plan.phi == ScanPhi::Difference) {
    const Pack<T> rate = beta * d.value;
    for (int64_t i = 0; i < width; ++i) g[i] = rate * e[i];
  } else if (any_far<T>(e, width)) {
    for (int64_t i = 0; i < width; ++i) g[i] = beta * far_psi<T>(e[i], x).value;
  } else {
    for (int64_t i = 0; i < width; ++i) g[i] = beta * mean_tanh<T>(e[i], d);
  }
}

// e as the stage's phi (Hebb's rule: s), and the mean slopes of the step and of its first half
template <typename T, int Width>
inline void make_flow(const ScanPlan& plan, const Program<T>& step, const Pack<T>* m,
                      Stages<T>& out) noexcept {
  const int64_t width = width_of<Width>(plan);
  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  Pack<T> r[kRows];
  if (plan.phi != ScanPhi::Value) read_matrix<T, Width>(plan, m, step.p, r);
  for (int64_t i = 0; i < width; ++i) out.phi[i] = plan.phi == ScanPhi::Value ? step.s[i] : step.s[i] - r[i];
  const Pack<T> x = *step.beta * *step.dt * dot<T>(step.p, step.p, width);
  flow_slopes<T, Width>(plan, *step.beta, x, out.phi, out.g);
  if (plan.queries > 0) flow_slopes<T, Width>(plan, *step.beta, x * T(0.5), out.phi, out.g + width);
}

// y = (M + dt / 2 g p^T) q or its transpose, with g the mean slope of the first half
template <typename T, int Width>
inline void read_middle(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g, const Pack<T>* m,
                        const Pack<T>* q, Pack<T>* y) noexcept {
  read_matrix_by<T, Width>(plan, m, q, y);
  add_write<T, Width>(plan, *step.dt * T(0.5), step.p, g, q, y);
}

// gradient of slopes beta psi(e, beta |p|^2 duration), on its way to e, beta, dt and |p|^2
template <typename T>
struct FlowGradient {
  Pack<T>* e;  // [D]
  Pack<T> beta, duration, norm;
};

template <typename T, int Width>
inline void slopes_backward(const ScanPlan& plan, Pack<T> beta, Pack<T> norm, Pack<T> duration,
                            const Pack<T>* e, const Pack<T>* grad_g, FlowGradient<T>& grad) noexcept {
  const int64_t width = width_of<Width>(plan);
  Pack<T> by_beta = Pack<T>{}, by_x = Pack<T>{};
  if (plan.phi == ScanPhi::Value) {
    for (int64_t i = 0; i < width; ++i) grad.e[i] += beta * grad_g[i];
    by_beta = dot<T>(grad_g, e, width);
  } else if (plan.phi == ScanPhi::Difference) {
    const Decay<T> d = decay_of<T>(beta * norm * duration);
    const Pack<T> along = dot<T>(grad_g, e, width), rate = beta * d.value;
    for (int64_t i = 0; i < width; ++i) grad.e[i] += rate * grad_g[i];
    by_beta = along * d.left;
    by_x = along * d.slope;
  } else {
    const Pack<T> x = beta * norm * duration;
    const Decay<T> d = decay_of<T>(x);
    const bool far = any_far<T>(e, width);
    for (int64_t i = 0; i < width; ++i) {
      const Psi<T> psi = far ? far_psi<T>(e[i], x) : tanh_psi<T>(e[i], d);
      grad.e[i] += beta * psi.by_e * grad_g[i];
      by_beta += grad_g[i] * psi.end;
      by_x += grad_g[i] * psi.by_x;
    }
  }
  grad.beta += by_beta;
  grad.duration += beta * beta * norm * by_x;
  grad.norm += beta * beta * duration * by_x;
}

// M+ = M + dt g p^T, where lambda is the gradient of M+: to p, dt and g
template <typename T, int Width>
inline void flow_write_backward(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g,
                                const Pack<T>* lambda, Program<T>& grad, Pack<T>* grad_g) noexcept {
  const int64_t width = width_of<Width>(plan);
  for (int64_t j = 0; j < width; ++j) grad.p[j] = Pack<T>{};
  Pack<T> sum = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) {
    const Pack<T>* row = lambda + i * width;
    const Pack<T> along = dot<T>(row, step.p, width), weight = *step.dt * g[i];
    for (int64_t j = 0; j < width; ++j) grad.p[j] += weight * row[j];
    sum += g[i] * along;
    grad_g[i] += *step.dt * along;
  }
  *grad.dt += sum;
}

// s - M p, where grad_e is its gradient (Hebb's rule: that of s), and |p|^2
template <typename T, int Width>
inline void flow_read_backward(const ScanPlan& plan, const Program<T>& step, const Pack<T>* m,
                               const Pack<T>* grad_e, Pack<T> grad_norm, Pack<T>* lambda,
                               Program<T>& grad) noexcept {
  const int64_t width = width_of<Width>(plan);
  for (int64_t i = 0; i < width; ++i) grad.s[i] = grad_e[i];
  for (int64_t j = 0; j < width; ++j) grad.p[j] += T{2} * grad_norm * step.p[j];
  if (plan.phi == ScanPhi::Value) return;
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      grad.p[j] -= grad_e[i] * m[i * width + j];
      lambda[i * width + j] -= grad_e[i] * step.p[j];
    }
  }
}

}  // namespace fastweights::kernels::FW_ISA

#pragma once

#include "ops/scan/cpu/step_impl.h"

/// Queries of a stage: y = M_i q or M_i^T q with M_i = M + dt sum_j a_ij g_j p_j^T (README.md, section 4).

namespace fastweights::kernels::FW_ISA {

// y = M q or M^T q
template <typename T, int Width>
inline void read_matrix_by(const ScanPlan& plan, const Pack<T>* m, const Pack<T>* q, Pack<T>* y) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  for (int64_t i = 0; i < width; ++i) y[i] = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) y[along ? i : j] += m[i * width + j] * q[along ? j : i];
  }
}

// the same of weight g p^T, added
template <typename T, int Width>
inline void add_write(const ScanPlan& plan, Pack<T> weight, const Pack<T>* p, const Pack<T>* g,
                      const Pack<T>* q, Pack<T>* y) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  const Pack<T> scale = weight * dot<T>(along ? p : g, q, width);
  for (int64_t i = 0; i < width; ++i) y[i] += scale * (along ? g : p)[i];
}

template <typename T, int Width>
inline void read_stage(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g, const Pack<T>* m,
                       int64_t stage, const Pack<T>* q, Pack<T>* y) noexcept {
  const int64_t width = width_of<Width>(plan);
  read_matrix_by<T, Width>(plan, m, q, y);
  for (int64_t j = 0; j < stage; ++j) {
    if (plan.a[stage][j] == 0) continue;
    add_write<T, Width>(plan, *step.dt * static_cast<T>(plan.a[stage][j]), step.p + row_of(plan.p, j) * width,
                        g + j * width, q, y);
  }
}

// y is linear in q: l^T M r with l = dy, r = q along, and l = q, r = dy across
template <typename T>
struct QuerySides {
  const Pack<T>*l, *r;
};
template <typename T>
inline QuerySides<T> query_sides(const ScanPlan& plan, const Pack<T>* q, const Pack<T>* grad_y) noexcept {
  const bool along = plan.read == ScanRead::Along;
  return {along ? grad_y : q, along ? q : grad_y};
}

template <typename T, int Width>
inline void read_matrix_by_backward(const ScanPlan& plan, const Pack<T>* m, const Pack<T>* q,
                                    const Pack<T>* grad_y, Pack<T>* grad_q, Pack<T>* grad_m) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  const auto [l, r] = query_sides<T>(plan, q, grad_y);
  for (int64_t i = 0; i < width; ++i) grad_q[i] = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      grad_m[i * width + j] += l[i] * r[j];
      grad_q[along ? j : i] += m[i * width + j] * grad_y[along ? i : j];
    }
  }
}

// of a dt g p^T: to dt, g, p and q
template <typename T, int Width>
inline void add_write_backward(const ScanPlan& plan, T a, Pack<T> dt, const Pack<T>* p, const Pack<T>* g,
                               const Pack<T>* q, const Pack<T>* grad_y, Pack<T>& grad_dt, Pack<T>* grad_g,
                               Pack<T>* grad_p, Pack<T>* grad_q) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  const auto [l, r] = query_sides<T>(plan, q, grad_y);
  const Pack<T> left = dot<T>(g, l, width), right = dot<T>(p, r, width), weight = dt * a;
  grad_dt += a * left * right;
  for (int64_t i = 0; i < width; ++i) {
    grad_g[i] += weight * right * l[i];
    grad_p[i] += weight * left * r[i];
    grad_q[i] += weight * (along ? left * p[i] : right * g[i]);
  }
}

template <typename T, int Width>
inline void read_stage_backward(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g,
                                const Pack<T>* m, int64_t stage, const Pack<T>* q, const Pack<T>* grad_y,
                                Pack<T>* grad_q, Pack<T>* grad_m, Program<T>& grad,
                                StepGradient<T>& inner) noexcept {
  const int64_t width = width_of<Width>(plan);
  read_matrix_by_backward<T, Width>(plan, m, q, grad_y, grad_q, grad_m);
  for (int64_t j = 0; j < stage; ++j) {
    if (plan.a[stage][j] == 0) continue;
    const int64_t c = row_of(plan.p, j);
    add_write_backward<T, Width>(plan, static_cast<T>(plan.a[stage][j]), *step.dt, step.p + c * width,
                                 g + j * width, q, grad_y, *grad.dt, inner.g + j * width, grad.p + c * width,
                                 grad_q);
  }
}

}  // namespace fastweights::kernels::FW_ISA

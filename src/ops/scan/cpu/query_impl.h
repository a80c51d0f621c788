#pragma once

#include "ops/scan/cpu/step_impl.h"

/// Queries of a stage: y = M_i q or M_i^T q with M_i = M + dt sum_j a_ij g_j p_j^T (README.md, section 4).

namespace fastweights::kernels::FW_ISA {

template <typename T, int Width>
inline void read_stage(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g, const Pack<T>* m,
                       int64_t stage, const Pack<T>* q, Pack<T>* y) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  for (int64_t i = 0; i < width; ++i) y[i] = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) y[along ? i : j] += m[i * width + j] * q[along ? j : i];
  }
  for (int64_t j = 0; j < stage; ++j) {
    if (plan.a[stage][j] == 0) continue;
    const Pack<T>*p = step.p + row_of(plan.p, j) * width, *g_j = g + j * width;
    const Pack<T> weight = *step.dt * static_cast<T>(plan.a[stage][j]) * dot<T>(along ? p : g_j, q, width);
    for (int64_t i = 0; i < width; ++i) y[i] += weight * (along ? g_j : p)[i];
  }
}

// y is linear in q: l^T M_i r with l = dy, r = q along, and l = q, r = dy across
template <typename T, int Width>
inline void read_stage_backward(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g,
                                const Pack<T>* m, int64_t stage, const Pack<T>* q, const Pack<T>* grad_y,
                                Pack<T>* grad_q, Pack<T>* grad_m, Program<T>& grad,
                                StepGradient<T>& inner) noexcept {
  const int64_t width = width_of<Width>(plan);
  const bool along = plan.read == ScanRead::Along;
  const Pack<T>*l = along ? grad_y : q, *r = along ? q : grad_y;
  for (int64_t i = 0; i < width; ++i) grad_q[i] = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      grad_m[i * width + j] += l[i] * r[j];
      grad_q[along ? j : i] += m[i * width + j] * grad_y[along ? i : j];
    }
  }
  for (int64_t j = 0; j < stage; ++j) {
    if (plan.a[stage][j] == 0) continue;
    const int64_t c = row_of(plan.p, j);
    const Pack<T>*p = step.p + c * width, *g_j = g + j * width;
    const T a = static_cast<T>(plan.a[stage][j]);
    const Pack<T> left = dot<T>(g_j, l, width), right = dot<T>(p, r, width), weight = *step.dt * a;
    *grad.dt += a * left * right;
    for (int64_t i = 0; i < width; ++i) {
      inner.g[j * width + i] += weight * right * l[i];
      grad.p[c * width + i] += weight * left * r[i];
      grad_q[i] += weight * (along ? left * p[i] : right * g_j[i]);
    }
  }
}

}  // namespace fastweights::kernels::FW_ISA

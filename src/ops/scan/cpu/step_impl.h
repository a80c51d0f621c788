#pragma once

#include "ops/scan/cpu/kernel.h"
#include "ops/scan/cpu/lanes_impl.h"

/// One step of the recurrence, forward and backward (README.md, sections 2 and 3). Every value is a pack of
/// lanes, and lanes are independent. `Width` 0 takes the width of the plan.

namespace fastweights::kernels::FW_ISA {

template <int Width>
inline int64_t width_of(const ScanPlan& plan) noexcept {
  return Width > 0 ? Width : plan.width;
}

// row of a part that a stage reads
inline int64_t row_of(const ScanPart& part, int64_t stage) noexcept { return part.rows == 1 ? 0 : stage; }

// what a step reads, or its gradient
template <typename T>
struct Program {
  Pack<T>* p;     // [rows][D]
  Pack<T>* s;     // [rows][D]
  Pack<T>* beta;  // [rows]
  Pack<T>* dt;
};

// what the stages of a step make
template <typename T>
struct Stages {
  Pack<T>* phi;                            // [S][D]
  Pack<T>* g;                              // [S][D]: beta phi
  Pack<T> gram[kScanStages][kScanStages];  // p_c . p_e of rows e <= c of p
};

template <typename T, int Width>
inline void make_phi(const ScanPlan& plan, const Pack<T>* s, const Pack<T>* r, Pack<T>* phi) noexcept {
  const int64_t width = width_of<Width>(plan);
  if (plan.phi == ScanPhi::Value) {
    for (int64_t i = 0; i < width; ++i) phi[i] = s[i];
  } else if (plan.phi == ScanPhi::Difference) {
    for (int64_t i = 0; i < width; ++i) phi[i] = s[i] - r[i];
  } else if (plan.phi == ScanPhi::Tanh) {
    for (int64_t i = 0; i < width; ++i) phi[i] = vector_tanh<T>(s[i] - r[i]);
  } else {
    for (int64_t i = 0; i < width; ++i) phi[i] = s[i] - r[i];
    vector_softmax<T>(phi, width);
  }
}

// M p_c for all rows c of p: [rows][D]
template <typename T, int Width>
inline void read_matrix(const ScanPlan& plan, const Pack<T>* m, const Pack<T>* p, Pack<T>* read) noexcept {
  const int64_t width = width_of<Width>(plan);
  if (plan.p.rows == 1) {
    for (int64_t i = 0; i < width; ++i) read[i] = dot<T>(m + i * width, p, width);
    return;
  }
  // rows of p in pairs, so that M is loaded half as often
  for (int64_t i = 0; i < width; ++i) {
    int64_t c = 0;
    for (; c + 1 < plan.p.rows; c += 2) {
      const Pack<T>*one = p + c * width, *two = one + width, *row = m + i * width;
      Pack<T> sum_one = row[0] * one[0], sum_two = row[0] * two[0];
      for (int64_t j = 1; j < width; ++j) {
        sum_one += row[j] * one[j];
        sum_two += row[j] * two[j];
      }
      read[c * width + i] = sum_one;
      read[(c + 1) * width + i] = sum_two;
    }
    if (c < plan.p.rows) read[c * width + i] = dot<T>(m + i * width, p + c * width, width);
  }
}

template <typename T, int Width>
inline void make_gram(const ScanPlan& plan, const Pack<T>* p, Stages<T>& stages) noexcept {
  const int64_t width = width_of<Width>(plan);
  for (int64_t c = 0; c < plan.p.rows; ++c) {
    for (int64_t e = 0; e <= c; ++e) stages.gram[c][e] = dot<T>(p + c * width, p + e * width, width);
  }
}

// stages of a step from M, without changing it
template <typename T, int Width>
inline void make_stages(const ScanPlan& plan, const Program<T>& step, const Pack<T>* m,
                        Stages<T>& out) noexcept {
  const int64_t width = width_of<Width>(plan);
  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  Pack<T> read[kScanStages * kRows], r[kRows];
  const bool reads = plan.phi != ScanPhi::Value;
  if (reads) {
    read_matrix<T, Width>(plan, m, step.p, read);
    make_gram<T, Width>(plan, step.p, out);
  }
  for (int64_t i = 0; i < plan.stages; ++i) {
    const int64_t c = row_of(plan.p, i);
    // M_i p_i = M p_i + dt sum_j a_ij (p_j . p_i) g_j
    if (reads) {
      for (int64_t row = 0; row < width; ++row) r[row] = read[c * width + row];
      for (int64_t j = 0; j < i; ++j) {
        if (plan.a[i][j] == 0) continue;
        const Pack<T> weight = *step.dt * static_cast<T>(plan.a[i][j]) * out.gram[c][row_of(plan.p, j)];
        for (int64_t row = 0; row < width; ++row) r[row] += weight * out.g[j * width + row];
      }
    }
    make_phi<T, Width>(plan, step.s + row_of(plan.s, i) * width, r, out.phi + i * width);
    const Pack<T> beta = step.beta[row_of(plan.beta, i)];
    for (int64_t row = 0; row < width; ++row) out.g[i * width + row] = beta * out.phi[i * width + row];
  }
}

// dt sum_k b_k g_k of the stages that share row c of p
template <typename T, int Width>
inline void write_vector(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g, int64_t c,
                         Pack<T>* out) noexcept {
  const int64_t width = width_of<Width>(plan);
  const int64_t first = c, last = plan.p.rows == 1 ? plan.stages : c + 1;
  for (int64_t i = 0; i < width; ++i) out[i] = static_cast<T>(plan.b[first]) * g[first * width + i];
  for (int64_t k = first + 1; k < last; ++k) {
    for (int64_t i = 0; i < width; ++i) out[i] += static_cast<T>(plan.b[k]) * g[k * width + i];
  }
  for (int64_t i = 0; i < width; ++i) out[i] *= *step.dt;
}

// next = M + dt sum_k b_k g_k p_k^T
template <typename T, int Width>
inline void write_matrix(const ScanPlan& plan, const Program<T>& step, const Pack<T>* g, const Pack<T>* m,
                         Pack<T>* next) noexcept {
  const int64_t width = width_of<Width>(plan);
  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  Pack<T> weights[kScanStages * kRows];
  for (int64_t c = 0; c < plan.p.rows; ++c) write_vector<T, Width>(plan, step, g, c, weights + c * width);
  for (int64_t i = 0; i < width; ++i) {
    if (plan.p.rows == 1) {
      for (int64_t j = 0; j < width; ++j) next[i * width + j] = m[i * width + j] + weights[i] * step.p[j];
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      Pack<T> sum = m[i * width + j];
      for (int64_t c = 0; c < plan.p.rows; ++c) sum += weights[c * width + i] * step.p[c * width + j];
      next[i * width + j] = sum;
    }
  }
}

// gradient of g = beta phi(s, r) with respect to s, which is minus that of r; adds to that of beta
template <typename T, int Width>
inline void phi_backward(const ScanPlan& plan, Pack<T> beta, const Pack<T>* phi, const Pack<T>* grad_g,
                         Pack<T>* grad_s, Pack<T>& grad_beta) noexcept {
  const int64_t width = width_of<Width>(plan);
  const Pack<T> along = dot<T>(grad_g, phi, width);
  grad_beta += along;
  if (plan.phi == ScanPhi::Tanh) {
    for (int64_t i = 0; i < width; ++i) grad_s[i] = beta * grad_g[i] * (T{1} - phi[i] * phi[i]);
  } else if (plan.phi == ScanPhi::Softmax) {
    for (int64_t i = 0; i < width; ++i) grad_s[i] = beta * phi[i] * (grad_g[i] - along);
  } else {
    for (int64_t i = 0; i < width; ++i) grad_s[i] = beta * grad_g[i];
  }
}

// gradients that are on their way through a step
template <typename T>
struct StepGradient {
  Pack<T>* g;     // [S][D]
  Pack<T>* read;  // [rows of p][D]: of M p
  Pack<T> gram[kScanStages][kScanStages];
};

// M+ = M + dt sum_k b_k g_k p_k^T, where lambda is the gradient of M+
template <typename T, int Width>
inline void write_backward(const ScanPlan& plan, const Program<T>& step, const Stages<T>& stages,
                           const Pack<T>* lambda, Program<T>& grad, StepGradient<T>& inner) noexcept {
  const int64_t width = width_of<Width>(plan);
  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  Pack<T> along[kRows], weights[kRows];
  for (int64_t c = 0; c < plan.p.rows; ++c) {
    write_vector<T, Width>(plan, step, stages.g, c, weights);
    Pack<T>* grad_p = grad.p + c * width;
    for (int64_t j = 0; j < width; ++j) grad_p[j] = Pack<T>{};
    for (int64_t i = 0; i < width; ++i) {
      const Pack<T>* row = lambda + i * width;
      along[i] = dot<T>(row, step.p + c * width, width);
      for (int64_t j = 0; j < width; ++j) grad_p[j] += weights[i] * row[j];
    }
    const int64_t first = c, last = plan.p.rows == 1 ? plan.stages : c + 1;
    for (int64_t k = first; k < last; ++k) {
      const T b = static_cast<T>(plan.b[k]);
      const Pack<T>* g = stages.g + k * width;
      *grad.dt += b * dot<T>(g, along, width);
      const Pack<T> scale = b * *step.dt;
      for (int64_t i = 0; i < width; ++i) inner.g[k * width + i] += scale * along[i];
    }
  }
}

// M_i p_i = M p_i + dt sum_j a_ij (p_j . p_i) g_j, where grad_s is minus its gradient
template <typename T, int Width>
inline void stage_read_backward(const ScanPlan& plan, const Program<T>& step, const Stages<T>& stages,
                                int64_t i, const Pack<T>* grad_s, Program<T>& grad,
                                StepGradient<T>& inner) noexcept {
  const int64_t width = width_of<Width>(plan), c = row_of(plan.p, i);
  for (int64_t row = 0; row < width; ++row) inner.read[c * width + row] -= grad_s[row];
  for (int64_t j = 0; j < i; ++j) {
    if (plan.a[i][j] == 0) continue;
    const int64_t e = row_of(plan.p, j);
    const T a = static_cast<T>(plan.a[i][j]);
    const Pack<T> product = a * dot<T>(grad_s, stages.g + j * width, width);
    *grad.dt -= stages.gram[c][e] * product;
    inner.gram[c][e] -= *step.dt * product;
    const Pack<T> weight = *step.dt * a * stages.gram[c][e];
    for (int64_t row = 0; row < width; ++row) inner.g[j * width + row] -= weight * grad_s[row];
  }
}

// gradients of the Gram matrix and of M p go to p and to M
template <typename T, int Width>
inline void read_backward(const ScanPlan& plan, const Program<T>& step, const Pack<T>* m,
                          const StepGradient<T>& inner, Pack<T>* lambda, Program<T>& grad) noexcept {
  const int64_t width = width_of<Width>(plan);
  for (int64_t c = 0; c < plan.p.rows; ++c) {
    const Pack<T>* p = step.p + c * width;
    Pack<T>* grad_p = grad.p + c * width;
    for (int64_t e = 0; e <= c; ++e) {
      for (int64_t j = 0; j < width; ++j) {
        grad_p[j] += inner.gram[c][e] * step.p[e * width + j];
        grad.p[e * width + j] += inner.gram[c][e] * p[j];
      }
    }
    for (int64_t i = 0; i < width; ++i) {
      const Pack<T> here = inner.read[c * width + i];
      for (int64_t j = 0; j < width; ++j) {
        grad_p[j] += here * m[i * width + j];
        lambda[i * width + j] += here * p[j];
      }
    }
  }
}

}  // namespace fastweights::kernels::FW_ISA

#pragma once

#include "ops/scan/cuda/forward.cuh"

/// The same way back: README.md, sections 3 and 7. M is not computed again but taken back, step by step, from
/// the nearest matrix that was kept; the first one is known.

namespace fastweights::kernels::cuda {

// chunks in shared memory: one that is worked on, one that is made ready, one that is finished, two on their
// way
inline constexpr int kBackwardRing = 5;
inline constexpr int kBackwardThreads = 96;  // a warp that steps, one that fetches, one that finishes

// few steps of a wide head fill the shared memory
template <typename K>
inline constexpr int kBackwardSteps = K::kShared ? (K::kWidth <= 16   ? 4
                                                    : K::kWidth <= 32 ? 2
                                                                      : 1)
                                                 : (K::kWidth <= 10 ? 2 : 1);

// what the rows of a team give to sums over rows: p of each program, then these
enum Sum { kSumBeta = 0, kSumDt = kScanStages, kSumGram = kScanStages + 1 };
template <typename K>
inline constexpr int kSums = kSumGram + (K::kShared ? 1 : kPairs);

template <typename K, int Steps>
struct Parts {
  float p[Steps][K::kPRows][K::kWidth][kLaneRow];
  float sums[Steps][kSums<K>][kLaneRow];
  float totals[Steps][Team<K::kWidth>::kTeams][kSums<K>];
};

// a backward pass on its way through one step
template <int Width>
struct Inner {
  StageRows<Width> g;  // gradients of beta phi; of a flow those of beta psi for the step and its first half
  StageRows<Width> x;  // of s - r
  float gram[kPairs] = {}, dt = 0;
};

// J^T (beta dg) of one stage
template <typename K>
__device__ void phi_backward(const Task& task, float beta, const float* phi, const float* grad_g,
                             float* grad_x) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  if (K::phi(task) == ScanPhi::Softmax) {
    float along = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) along += phi[r] * grad_g[r];
    along = team_sum<K::kWidth>(along);
#pragma unroll
    for (int r = 0; r < kRows; ++r) grad_x[r] = beta * phi[r] * (grad_g[r] - along);
    return;
  }
  const bool bends = K::phi(task) == ScanPhi::Tanh;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    // what does not wait for dg first
    const float slope = bends ? beta - beta * phi[r] * phi[r] : beta;
    grad_x[r] = slope * grad_g[r];
  }
}

// along = Lambda p, and what it gives to the slopes
template <typename K, typename P>
__device__ void write_backward(const Task& task, const Lane<K::kWidth>& lane, const Step<K>& step, const P& p,
                               int64_t row, const Rows<K::kWidth>& lambda, Inner<K::kWidth>& inner) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  float along[kScanStages][kRows];
#pragma unroll
  for (int c = 0; c < K::kPRows; ++c) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      along[c][r] = c < K::stages(task) ? dot<K::kWidth>(lambda[r], p(c)) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kScanStages; ++i) {
    if (i >= K::stages(task)) break;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float here = along[K::kShared ? 0 : i][r];
      inner.g[i][r] = step.f.dt * task.b[i] * here;
      if constexpr (K::kExtras) {
        inner.dt += task.b[i] * step.f.beta[i] * step.own[i][r] * here;
        if (task.grads.g && lane.owns(task, r))
          inner.g[i][r] +=
              task.grads.g[((row * task.stages + i) * task.heads + lane.head) * task.width + lane.row(r)];
      }
    }
  }
}

// stage i, the later ones being done: to s, to earlier stages and to the Gram matrix
template <typename K>
__device__ void stage_backward(const Task& task, const Step<K>& step, int i, Inner<K::kWidth>& inner) {
  phi_backward<K>(task, step.f.beta[i], step.own[i], inner.g[i], inner.x[i]);
#pragma unroll
  for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
    if (K::phi(task) == ScanPhi::Value) continue;
    const float scaled = step.f.dt * inner.x[i][r];
#pragma unroll
    for (int j = 0; j < kScanStages - 1; ++j) {
      if (j >= i) break;
      const float g = step.f.beta[j] * step.own[j][r];
      inner.gram[K::kShared ? 0 : pair_of(i, j)] -= task.a[pair_of(i, j)] * g * scaled;
      inner.g[j][r] -= step.f.read[pair_of(i, j)] * scaled;
      if (K::kExtras) inner.dt -= step.f.read[pair_of(i, j)] * g * inner.x[i][r];
    }
  }
}

// a slope beta psi with gradient `grad`: to e, beta and x
__device__ inline void slope_backward(float beta, const Psi& psi, float grad, float& grad_e, float& grad_beta,
                                      float& grad_x) {
  // what does not wait for grad first
  grad_e += beta * psi.by_e * grad;
  grad_beta += psi.end * grad;
  grad_x += psi.by_x * grad;
}

// the one stage of a flow that bends; finish.cuh goes on from the gradient of x, which is left in place of
// the Gram matrix's
template <typename K, int Steps>
__device__ void flow_backward(const Task& task, const Lane<K::kWidth>& lane, const Chunk<K, Steps>& chunk,
                              int t, const Step<K>& step, Inner<K::kWidth>& inner, float& grad_beta) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  const float beta = step.f.beta[0];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const Psi psi = {step.own[0][r], step.own[1][r], step.own[2][r], step.own[3][r]};
    inner.x[0][r] = 0;
    slope_backward(beta, psi, inner.g[0][r], inner.x[0][r], grad_beta, inner.gram[0]);
  }
  if (!K::kExtras || task.queries == 0 || !task.grads.y) return;
  const Decay half = decay_of(0.5f * step.f.decay().x);
  float grad_half = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const Psi psi = psi_of(task.phi, chunk.own[t][K::kOwnRows - 1][r][lane.index], half);
    slope_backward(beta, psi, inner.g[1][r], inner.x[0][r], grad_beta, grad_half);
  }
  inner.gram[0] += 0.5f * grad_half;
}

// the rows' parts of dp, and lambda, which becomes the gradient of M
template <typename K, typename P, typename Part>
__device__ void matrix_backward(const Task& task, const Lane<K::kWidth>& lane, const Step<K>& step,
                                const P& p, const Rows<K::kWidth>& m, const Inner<K::kWidth>& inner,
                                Rows<K::kWidth>& lambda, Part& parts) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  const bool reads = K::phi(task) != ScanPhi::Value;
  float weight[K::kPRows][kRows], grad_read[K::kPRows][kRows];
#pragma unroll
  for (int c = 0; c < K::kPRows; ++c) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // with queries lambda has changed already, and its part is included
      weight[c][r] = K::kExtras ? 0.0f : write_weight<K>(task, step, step.own, c, r);
      grad_read[c][r] = 0;
#pragma unroll
      for (int i = 0; i < kScanStages; ++i) {
        if (reads && (K::kShared || i == c) && i < K::stages(task)) grad_read[c][r] -= inner.x[i][r];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < K::kWidth; ++j) {
#pragma unroll
    for (int c = 0; c < K::kPRows; ++c) {
      if (c >= K::stages(task)) break;
      float part = K::kExtras ? parts[c][j][lane.index] : 0.0f;
#pragma unroll
      for (int r = 0; r < kRows; ++r) part += weight[c][r] * lambda[r][j] + grad_read[c][r] * m[r][j];
      parts[c][j][lane.index] = part;
    }
#pragma unroll
    for (int c = 0; c < K::kPRows; ++c) {
      if (c >= K::stages(task)) break;
#pragma unroll
      for (int r = 0; r < kRows; ++r) lambda[r][j] += grad_read[c][r] * p(c)[j];
    }
    take_turns<K::kWidth>(j);
  }
}

// with queries: w lambda before they change lambda
template <typename K, typename Part>
__device__ void write_parts(const Task& task, const Lane<K::kWidth>& lane, const Step<K>& step,
                            const Rows<K::kWidth>& lambda, Part& parts) {
#pragma unroll
  for (int c = 0; c < K::kPRows; ++c) {
    if (c >= K::stages(task)) break;
#pragma unroll
    for (int j = 0; j < K::kWidth; ++j) {
      float part = 0;
#pragma unroll
      for (int r = 0; r < Team<K::kWidth>::kRows; ++r)
        part += write_weight<K>(task, step, step.own, c, r) * lambda[r][j];
      parts[c][j][lane.index] = part;
    }
  }
}

// `to` is where the step's first row of this lane stands, and `stage` the way to that of the next stage
template <typename K>
__device__ void store_s_gradient(const Task& task, const Lane<K::kWidth>& lane, float* to, int stage,
                                 int rows, const Inner<K::kWidth>& inner) {
#pragma unroll
  for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
    if (!lane.owns(task, r)) continue;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) {
      if (i >= K::stages(task)) break;
      sum += inner.x[i][r];
      if (rows > 1) to[i * stage + 32 * r] = inner.x[i][r];
    }
    if (rows == 1) to[32 * r] = sum;
  }
}

// one step backwards; lambda is dM+ and becomes dM, m is M+ and becomes M
template <typename K, int Steps, typename P>
__device__ void step_backward(const Task& task, const Lane<K::kWidth>& lane, const Chunk<K, Steps>& chunk,
                              int t, int64_t row, const Step<K>& step, const P& p, Rows<K::kWidth>& m,
                              Rows<K::kWidth>& lambda, Inner<K::kWidth>& inner, Parts<K, Steps>& parts,
                              int turn, QueryRoom<K::kWidth, K::kExtras>& room) {
  write_backward<K>(task, lane, step, p, row, lambda, inner);
  if (K::kExtras || K::phi(task) != ScanPhi::Value) {
    // the first M is at hand, to its last digit
    if (row == lane.first) {
      load_matrix<K::kWidth>(task, lane, task.arrays.start, lane.sample * task.heads + lane.head, m);
    } else {
      write_matrix<K>(task, step, p, -1.0f, step.own, m);
    }
  }
  if constexpr (K::kExtras) write_parts<K>(task, lane, step, lambda, parts.p[t]);
#pragma unroll
  for (int i = kScanStages - 1; i >= 0; --i) {
    if (i >= K::stages(task)) continue;
    if constexpr (K::kExtras) {
#pragma unroll
      for (int r = 0; K::kFlows && r < Team<K::kWidth>::kRows; ++r) inner.g[1][r] = 0;
      queries_backward<K, Steps>(task, lane, chunk, t, row, i, m, step.own, lambda, inner.g, inner.dt,
                                 parts.p[t], turn, room);
    }
    float grad_beta = 0;
    if (K::bends(task)) {
      flow_backward<K, Steps>(task, lane, chunk, t, step, inner, grad_beta);
      parts.sums[t][kSumBeta][lane.index] = grad_beta;
      continue;
    }
#pragma unroll
    for (int r = 0; r < Team<K::kWidth>::kRows; ++r) grad_beta += step.own[i][r] * inner.g[i][r];
    parts.sums[t][kSumBeta + i][lane.index] = grad_beta;
    stage_backward<K>(task, step, i, inner);
  }
  if (K::kExtras) parts.sums[t][kSumDt][lane.index] = inner.dt;
#pragma unroll
  for (int k = 0; k < (K::kShared ? 1 : kPairs); ++k) parts.sums[t][kSumGram + k][lane.index] = inner.gram[k];
  matrix_backward<K>(task, lane, step, p, m, inner, lambda, parts.p[t]);
}

}  // namespace fastweights::kernels::cuda

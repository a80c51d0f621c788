#pragma once

#include "ops/scan/cuda/fetch.cuh"

/// Queries of stages: README.md, section 4. They are rare beside steps, and written for few registers. Those
/// of the next step are on their way while this one is computed.

namespace fastweights::kernels::cuda {

// a vector of each team
template <int Width>
using Vectors = float[Width][Team<Width>::kTeams];

// queries of one step, or the gradients of their reads
template <int Width>
struct StepQueries {
  Vectors<Width> of[kScanStages][kScanQueries];
};

// where the rows of a team put what is summed over them, and the queries of this step and of the next
template <int Width, bool Extras>
struct QueryRoom {
  float parts[Width][kLaneRow];
  StepQueries<Width> q[2], grad_y[2];
};
template <int Width>
struct QueryRoom<Width, false> {};

// sum over the rows of a team for column j = position (and position + 32): every lane gets that of its own
// columns
template <int Width>
__device__ void sum_rows(const Task& task, const Lane<Width>& lane, const float (&parts)[Width][kLaneRow],
                         float* sums) {
  using T = Team<Width>;
  __syncwarp();
#pragma unroll
  for (int c = 0; c < T::kRows; ++c) {
    sums[c] = 0;
    if (lane.row(c) >= task.width) continue;
    for (int i = 0; i < T::kLanes; ++i) sums[c] += parts[lane.row(c)][lane.team * T::kLanes + i];
  }
  __syncwarp();
}

__device__ inline int64_t query_offset(const Task& task, int64_t row, int stage, int query, int head) {
  return (((row * task.stages + stage) * task.queries + query) * task.heads + head) * task.width;
}

// vectors of the step at `row`, each lane its own rows; what no lane owns stays zero
template <typename K, int Width = K::kWidth>
__device__ void fetch_vectors(const Task& task, const Lane<Width>& lane, const float* from, int64_t row,
                              StepQueries<Width>& to) {
  for (int i = 0; i < K::stages(task); ++i) {
    for (int query = 0; query < task.queries; ++query) {
      const int64_t at = query_offset(task, row, i, query, lane.head);
#pragma unroll
      for (int r = 0; r < Team<Width>::kRows; ++r) {
        if (lane.owns(task, r)) fetch(&to.of[i][query][lane.row(r)][lane.team], from + at + lane.row(r));
      }
    }
  }
}

// starts fetching the queries of the step `next` (the gradients of their reads, too, in a backward pass) and
// waits for those of this step, which were fetched the step before
template <Pass Direction, typename K, int Width = K::kWidth>
__device__ void turn_queries(const Task& task, const Lane<Width>& lane, int64_t next, bool any, int turn,
                             QueryRoom<Width, true>& room) {
  // the other lanes may still read those of the step before
  __syncwarp();
  if (any) {
    fetch_vectors<K>(task, lane, task.arrays.q, next, room.q[turn]);
    if (Direction == Pass::Backward) fetch_vectors<K>(task, lane, task.grads.y, next, room.grad_y[turn]);
  }
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncwarp();
}

template <int Width>
__device__ float dot_shared(const Lane<Width>& lane, const float* x, const Vectors<Width>& y) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < Width; ++j) sum += x[j] * y[j][lane.team];
  return sum;
}

// weight g p^T times q or its transpose, added to y
template <int Width>
__device__ void add_write(const Task& task, const Lane<Width>& lane, float weight, const float* p,
                          const float (&g)[Team<Width>::kRows], const Vectors<Width>& q, float* y) {
  constexpr int kRows = Team<Width>::kRows;
  float g_q = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) g_q += lane.row(r) < Width ? g[r] * q[lane.row(r)][lane.team] : 0.0f;
  g_q = team_sum<Width>(g_q);
  const float p_q = dot_shared<Width>(lane, p, q);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (lane.row(r) >= Width) continue;
    y[r] += weight * (task.read == ScanRead::Along ? p_q * g[r] : g_q * p[lane.row(r)]);
  }
}

// the mean slopes of the first half of a flow
template <int Width>
__device__ void half_slopes(const Task& task, const Factors& f, const float* e,
                            float (&g)[Team<Width>::kRows]) {
  const Decay half = decay_of(0.5f * f.decay().x);
#pragma unroll
  for (int r = 0; r < Team<Width>::kRows; ++r) g[r] = f.beta[0] * mean_of(task.phi, e[r], half);
}

// y = M_i q or M_i^T q with M_i = M + dt sum_j a_ij g_j p_j^T; of a flow M in the middle of the step
template <typename K, int Steps, int Width = K::kWidth>
__device__ void read_queries(const Task& task, const Lane<Width>& lane, const Chunk<K, Steps>& chunk, int t,
                             int64_t row, const float (&m)[Team<Width>::kRows][Width],
                             const float (&phi)[kScanStages][Team<Width>::kRows], const float* e, int turn,
                             QueryRoom<Width, true>& room) {
  constexpr int kRows = Team<Width>::kRows;
  const Factors& f = chunk.factors[t][lane.team];
  for (int i = 0; i < K::stages(task); ++i) {
    for (int query = 0; query < task.queries; ++query) {
      const int64_t at = query_offset(task, row, i, query, lane.head);
      const Vectors<Width>& q = room.q[turn].of[i][query];
      float y[kRows], g[kRows];
      if (task.read == ScanRead::Along) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) y[r] = dot_shared<Width>(lane, m[r], q);
      } else {
#pragma unroll
        for (int j = 0; j < Width; ++j) {
          float part = 0;
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            part += lane.row(r) < Width ? m[r][j] * q[lane.row(r)][lane.team] : 0.0f;
          room.parts[j][lane.index] = part;
        }
        sum_rows<Width>(task, lane, room.parts, y);
      }
      if constexpr (K::kFlows) {
        half_slopes<Width>(task, f, e, g);
        add_write<Width>(task, lane, 0.5f * f.dt, chunk.p[t][0][lane.team], g, q, y);
      }
#pragma unroll
      for (int j = 0; j < K::kPRows - 1; ++j) {
        if (j >= i) break;
#pragma unroll
        for (int r = 0; r < kRows; ++r) g[r] = f.beta[j] * phi[j][r];
        add_write<Width>(task, lane, f.dt * task.a[pair_of(i, j)], chunk.p[t][j][lane.team], g, q, y);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (lane.owns(task, r)) task.arrays.y[at + lane.row(r)] = y[r];
      }
    }
  }
}

// of a dt g p^T: adds to the gradients of dt, g and q, and to the rows' parts of that of p
template <int Width>
__device__ void add_write_backward(const Task& task, const Lane<Width>& lane, float a, float dt,
                                   const float* p, const float (&g)[Team<Width>::kRows], const float* l,
                                   const Vectors<Width>& right_q, float& grad_dt, float* grad_g,
                                   float* grad_q, float (&parts_p)[Width][kLaneRow]) {
  constexpr int kRows = Team<Width>::kRows;
  float own_left = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) own_left += g[r] * l[r];
  const float left = team_sum<Width>(own_left), right = dot_shared<Width>(lane, p, right_q), weight = a * dt;
  grad_dt += a * own_left * right;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    grad_g[r] += weight * right * l[r];
    if (lane.row(r) < Width)
      grad_q[r] += weight * (task.read == ScanRead::Along ? left * p[lane.row(r)] : right * g[r]);
  }
#pragma unroll
  for (int j = 0; j < Width; ++j) parts_p[j][lane.index] += weight * own_left * right_q[j][lane.team];
}

// y is linear in q: l^T M_i r with l = dy, r = q along, and l = q, r = dy across. Adds to lambda, to the
// gradients of g (of a flow, to that of the first half in place of the second stage) and of dt, and to the
// rows' parts of those of p.
template <typename K, int Steps, int Width = K::kWidth>
__device__ void queries_backward(const Task& task, const Lane<Width>& lane, const Chunk<K, Steps>& chunk,
                                 int t, int64_t row, int i, const float (&m)[Team<Width>::kRows][Width],
                                 const float (&phi)[kScanStages][Team<Width>::kRows],
                                 float (&lambda)[Team<Width>::kRows][Width],
                                 float (&grad_g)[kScanStages][Team<Width>::kRows], float& grad_dt,
                                 float (&parts_p)[K::kPRows][Width][kLaneRow], int turn,
                                 QueryRoom<Width, true>& room) {
  constexpr int kRows = Team<Width>::kRows;
  if (!task.grads.y) return;
  const Factors& f = chunk.factors[t][lane.team];
  const bool along = task.read == ScanRead::Along;
  for (int query = 0; query < task.queries; ++query) {
    const int64_t at = query_offset(task, row, i, query, lane.head);
    const Vectors<Width>&q = room.q[turn].of[i][query], &grad_y = room.grad_y[turn].of[i][query];
    const Vectors<Width>&left_q = along ? grad_y : q, &right_q = along ? q : grad_y;
    float l[kRows], grad_q[kRows], g[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) l[r] = lane.row(r) < Width ? left_q[lane.row(r)][lane.team] : 0.0f;
    // M^T l or M r
    if (along) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        float part = 0;
#pragma unroll
        for (int r = 0; r < kRows; ++r) part += m[r][j] * l[r];
        room.parts[j][lane.index] = part;
      }
      sum_rows<Width>(task, lane, room.parts, grad_q);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r) grad_q[r] = dot_shared<Width>(lane, m[r], right_q);
    }
#pragma unroll
    for (int j = 0; j < Width; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) lambda[r][j] += l[r] * right_q[j][lane.team];
    }
    if constexpr (K::kFlows) {
      float e[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) e[r] = chunk.own[t][kScanStages][r][lane.index];
      half_slopes<Width>(task, f, e, g);
      add_write_backward<Width>(task, lane, 0.5f, f.dt, chunk.p[t][0][lane.team], g, l, right_q, grad_dt,
                                grad_g[1], grad_q, parts_p[0]);
    }
#pragma unroll
    for (int e = 0; e < K::kPRows - 1; ++e) {
      if (e >= i) break;
#pragma unroll
      for (int r = 0; r < kRows; ++r) g[r] = f.beta[e] * phi[e][r];
      add_write_backward<Width>(task, lane, task.a[pair_of(i, e)], f.dt, chunk.p[t][e][lane.team], g, l,
                                right_q, grad_dt, grad_g[e], grad_q, parts_p[e]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (task.grads.q && lane.owns(task, r)) task.grads.q[at + lane.row(r)] = grad_q[r];
    }
  }
}

}  // namespace fastweights::kernels::cuda

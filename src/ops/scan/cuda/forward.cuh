#pragma once

#include "ops/scan/cuda/query.cuh"

/// A warp's way through the steps of its heads: README.md, sections 2 and 7.

namespace fastweights::kernels::cuda {

template <typename K>
inline constexpr int kForwardSteps = K::kShared ? 8 : 4;
// chunks in shared memory: one that is worked on, one that is made ready, one on its way
inline constexpr int kForwardRing = 3;
inline constexpr int kForwardThreads = 64;  // a warp that steps, and one that fetches

// phi of the team's rows from x = s - r, or s; for a tanh times kTwoLog2E. Lanes without a row give nothing
// to a softmax
template <typename K>
__device__ void make_phi(const Task& task, const Lane<K::kWidth>& lane, const float* x, float* phi) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  if (K::phi(task) == ScanPhi::Tanh) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) phi[r] = fast_tanh(x[r]);
  } else if (K::phi(task) == ScanPhi::Softmax) {
    float largest = -INFINITY, sum = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) largest = fmaxf(largest, lane.row(r) < task.width ? x[r] : -INFINITY);
    largest = team_max<K::kWidth>(largest);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      phi[r] = lane.row(r) < task.width ? expf(x[r] - largest) : 0.0f;
      sum += phi[r];
    }
    const float scale = 1.0f / team_sum<K::kWidth>(sum);
#pragma unroll
    for (int r = 0; r < kRows; ++r) phi[r] *= scale;
  } else {
#pragma unroll
    for (int r = 0; r < kRows; ++r) phi[r] = x[r];
  }
}

// M, a row of it in each lane
template <int Width>
using Rows = float[Team<Width>::kRows][Width];

template <int Width>
__device__ void load_matrix(const Task& task, const Lane<Width>& lane, const float* from, int64_t matrix,
                            Rows<Width>& m) {
#pragma unroll
  for (int r = 0; r < Team<Width>::kRows; ++r) {
#pragma unroll
    for (int j = 0; j < Width; ++j)
      m[r][j] = lane.owns(task, r) && j < task.width ? from[offset_of(task, matrix, lane.row(r), j)] : 0.0f;
  }
}

template <int Width>
__device__ void store_matrix(const Task& task, const Lane<Width>& lane, const Rows<Width>& m, int64_t matrix,
                             float* to) {
#pragma unroll
  for (int r = 0; r < Team<Width>::kRows; ++r) {
    if (!lane.owns(task, r)) continue;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      if (j < task.width) to[offset_of(task, matrix, lane.row(r), j)] = m[r][j];
    }
  }
}

template <int Width>
using StageRows = float[kScanStages][Team<Width>::kRows];

/// What a lane takes from shared memory for one step. A shared p comes along, several stay where they are.
template <typename K>
struct Step {
  static constexpr int kOwn = K::kShared ? K::kWidth : 1;
  float p[kOwn];
  Factors f;
  StageRows<K::kWidth> own;

  template <int Steps>
  __device__ void load(const Lane<K::kWidth>& lane, const Chunk<K, Steps>& chunk, int t, int own_rows) {
    f = chunk.factors[t][lane.team];
    if constexpr (K::kShared) {
#pragma unroll
      for (int j = 0; j < K::kWidth; ++j) p[j] = chunk.p[t][0][lane.team][j];
    }
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) {
      if (i >= K::kOwnRows) break;
#pragma unroll
      for (int r = 0; r < Team<K::kWidth>::kRows; ++r)
        own[i][r] = i == 0 || own_rows > 1 ? chunk.own[t][i][r][lane.index] : own[0][r];
    }
  }
};

// stages of one step from M, without changing it; p: [programs][Width]
template <typename K, typename P>
__device__ void make_stages(const Task& task, const Lane<K::kWidth>& lane, const Step<K>& step, const P& p,
                            const Rows<K::kWidth>& m, StageRows<K::kWidth>& phi) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  const bool reads = K::phi(task) != ScanPhi::Value;
  const float scale = K::phi(task) == ScanPhi::Tanh ? kTwoLog2E : 1.0f;
  float read[kScanStages][kRows];
#pragma unroll
  for (int c = 0; c < K::kPRows; ++c) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      read[c][r] = reads && c < K::stages(task) ? dot<K::kWidth>(m[r], p(c)) : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kScanStages; ++i) {
    if (i >= K::stages(task)) break;
    float x[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // M_i p_i = M p_i + dt sum_j a_ij (p_j . p_i) g_j
      x[r] = scale * (step.own[i][r] - read[K::kShared ? 0 : i][r]);
      if (!reads) continue;
#pragma unroll
      for (int j = 0; j < i; ++j) x[r] -= step.f.read[pair_of(i, j)] * phi[j][r];
    }
    make_phi<K>(task, lane, x, phi[i]);
  }
}

// e = s - M p of a flow that bends (Hebb's rule: s), and psi as the phi of its stage
template <typename K, typename P>
__device__ void make_flow(const Task& task, const Step<K>& step, const P& p, const Rows<K::kWidth>& m,
                          float* e, float* psi) {
#pragma unroll
  for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
    const float read = K::phi(task) == ScanPhi::Value ? 0.0f : dot<K::kWidth>(m[r], p(0));
    e[r] = step.own[0][r] - read;
    psi[r] = mean_of(K::phi(task), e[r], step.f.decay());
  }
}

// dt sum_i b_i g_i of the stages that share program c
template <typename K>
__device__ float write_weight(const Task& task, const Step<K>& step, const StageRows<K::kWidth>& phi, int c,
                              int r) {
  float weight = 0;
#pragma unroll
  for (int i = 0; i < kScanStages; ++i) {
    if ((K::kShared || i == c) && i < K::stages(task)) weight += step.f.write[i] * phi[i][r];
  }
  return weight;
}

// M+ = M + dt sum_i b_i g_i p_i^T; with a negative sign the way back
template <typename K, typename P>
__device__ void write_matrix(const Task& task, const Step<K>& step, const P& p, float sign,
                             const StageRows<K::kWidth>& phi, Rows<K::kWidth>& m) {
#pragma unroll
  for (int c = 0; c < K::kPRows; ++c) {
    if (c >= K::stages(task)) break;
#pragma unroll
    for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
      const float weight = sign * write_weight<K>(task, step, phi, c, r);
#pragma unroll
      for (int j = 0; j < K::kWidth; ++j) {
        m[r][j] += weight * p(c)[j];
        take_turns<K::kWidth>(j);
      }
    }
  }
}

// phi for the backward pass, or e of a flow that bends, and slopes where requested; `at` is the offset of the
// step's first phi, and `stage` the way to that of the next stage
template <typename K>
__device__ void store_stages(const Task& task, const Lane<K::kWidth>& lane, float* kept, int64_t at,
                             int stage, const Step<K>& step, const StageRows<K::kWidth>& phi,
                             const float* e) {
#pragma unroll
  for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
    if (!lane.owns(task, r)) continue;
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) {
      if (i >= K::stages(task)) break;
      if (kept) kept[at + i * stage + 32 * r] = K::bends(task) ? e[r] : phi[i][r];
      if (K::kExtras && task.arrays.g) task.arrays.g[at + i * stage + 32 * r] = step.f.beta[i] * phi[i][r];
    }
  }
}

// the warp that fetches: a chunk is made ready while the other warp works on the one before it, and the next
// one is on its way meanwhile
template <typename K, typename Piece>
__device__ void fetch_forward(const Task& task, const Lane<K::kWidth>& lane, Piece (&chunks)[kForwardRing]) {
  constexpr int kSteps = kForwardSteps<K>;
  const int steps = static_cast<int>(lane.steps), pieces = (steps + kSteps - 1) / kSteps;
  const auto count_of = [&](int piece) { return min(kSteps, steps - piece * kSteps); };
  const auto start_fetching = [&](int piece) {
    if (piece < pieces)
      fetch_chunk<Pass::Forward, K, kSteps>(task, lane, lane.first + piece * kSteps, count_of(piece),
                                            task.arrays.s, task.s_rows, chunks[piece % kForwardRing]);
    __pipeline_commit();
  };
  start_fetching(0);
  for (int piece = 0; piece < pieces; ++piece) {
    start_fetching(piece + 1);
    __pipeline_wait_prior(1);
    __syncwarp();
    make_factors<Pass::Forward, K, kSteps>(task, lane, count_of(piece), chunks[piece % kForwardRing]);
    __syncthreads();
  }
}

// the warp that steps
template <typename K, typename Piece>
__device__ void step_forward(const Task& task, const Lane<K::kWidth>& lane,
                             const Piece (&chunks)[kForwardRing], QueryRoom<K::kWidth, K::kExtras>& room) {
  constexpr int kWidth = K::kWidth, kSteps = kForwardSteps<K>;
  static_assert(kCudaStretch % kSteps == 0);
  Rows<kWidth> m;
  load_matrix<kWidth>(task, lane, task.arrays.start, lane.sample * task.heads + lane.head, m);
  int64_t next = task.samples.output_offsets[lane.sample];
  const int64_t last = task.samples.output_offsets[lane.sample + 1];
  const int steps = static_cast<int>(lane.steps);
  // stores the outputs after n steps, and returns the step of the next one
  const auto store_outputs = [&](int n) {
    for (; next < last && task.samples.output_steps[next] <= n; ++next)
      store_matrix<kWidth>(task, lane, m, next * task.heads + lane.head, task.arrays.out);
    return next < last ? static_cast<int>(task.samples.output_steps[next]) : steps + 1;
  };
  int due = store_outputs(0), stage = task.heads * task.width;
  asm volatile("" : "+r"(stage));
  const int stride = K::stages(task) * stage;
  int64_t at = lane.first * stride + lane.head * task.width + lane.position;
  float* const kept = task.kept.phi;
  const bool stores = kept || (K::kExtras && task.arrays.g);
  if constexpr (K::kExtras) {
    if (steps > 0) fetch_vectors<K>(task, lane, task.arrays.q, lane.first, room.q[0]);
    __pipeline_commit();
  }
  for (int n = 0; n < steps; n += kSteps) {
    const Piece& chunk = chunks[n / kSteps % kForwardRing];
    const int count = min(kSteps, steps - n);
    __syncthreads();
    Step<K> coming;
    coming.load(lane, chunk, 0, task.s_rows);
    for (int t = 0; t < count; ++t, at += stride) {
      const Step<K> step = coming;
      const auto p = [&](int c) { return K::kShared ? step.p : chunk.p[t][c][lane.team]; };
      coming.load(lane, chunk, min(t + 1, kSteps - 1), task.s_rows);
      const int turn = (n + t) & 1;
      if constexpr (K::kExtras)
        turn_queries<Pass::Forward, K>(task, lane, lane.first + n + t + 1, n + t + 1 < steps, turn ^ 1, room);
      StageRows<kWidth> phi;
      float e[Team<kWidth>::kRows] = {};
      if (K::bends(task)) {
        make_flow<K>(task, step, p, m, e, phi[0]);
      } else {
        make_stages<K>(task, lane, step, p, m, phi);
      }
      if (stores) store_stages<K>(task, lane, kept, at, stage, step, phi, e);
      if constexpr (K::kExtras)
        read_queries<K, kSteps>(task, lane, chunk, t, lane.first + n + t, m, phi, e, turn, room);
      write_matrix<K>(task, step, p, 1.0f, phi, m);
      if (n + t + 1 == due) due = store_outputs(n + t + 1);
    }
    const int done = n + count;
    if (task.kept.m && (done % kCudaStretch == 0 || done == steps))
      store_matrix<kWidth>(task, lane, m,
                           kept_row(lane.first, lane.sample, done - 1) * task.heads + lane.head, task.kept.m);
  }
}

/// Shared memory of a block.
template <typename K>
struct ForwardRoom {
  Chunk<K, kForwardSteps<K>> chunks[kForwardRing];
  QueryRoom<K::kWidth, K::kExtras> queries;
};

template <typename K>
__device__ void forward(const Task& task, int head_groups) {
  extern __shared__ float4 bytes[];
  auto& room = *reinterpret_cast<ForwardRoom<K>*>(bytes);
  const Lane<K::kWidth> lane(task, head_groups);
  clear(room);
  __syncthreads();
  if (threadIdx.x < 32) {
    step_forward<K>(task, lane, room.chunks, room.queries);
  } else {
    fetch_forward<K>(task, lane, room.chunks);
  }
}

}  // namespace fastweights::kernels::cuda

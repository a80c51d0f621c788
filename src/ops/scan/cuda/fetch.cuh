#pragma once

#include <cuda_pipeline.h>

#include "ops/scan/cuda/team.cuh"

/// What a warp brings into shared memory ahead of the steps, and makes of it: README.md, section 7.

namespace fastweights::kernels::cuda {

__device__ inline void fetch(float* to, const float* from) {
  __pipeline_memcpy_async(to, from, sizeof(float));
}

enum class Pass { Forward, Backward };

// p, beta and dt of `count` steps from row `begin` on, and of each lane's own rows s, or phi (own_rows: how
// many of them there are for each step); offsets are counted from the chunk's first row
template <typename K, int Steps>
__device__ void fetch_near(const Task& task, const Lane<K::kWidth>& lane, int64_t begin, int count,
                           const float* own, int own_rows, Chunk<K, Steps>& to) {
  using T = Team<K::kWidth>;
  const int heads = task.heads, width = task.width, row = heads * width, p_rows = task.p_rows;
  const int here = min(T::kTeams, heads - lane.head0) * width;
  const float* p = task.arrays.p + begin * (p_rows * row) + lane.head0 * width;
  const float* mine = own + begin * (own_rows * row) + lane.head * width;
#pragma unroll
  for (int r = 0; r < T::kRows; ++r) {
    const int element = lane.index + 32 * r, head = element / width, j = element % width;
    for (int t = 0; element < here && t < count; ++t) {
      for (int c = 0; c < (K::kShared ? 1 : K::stages(task)); ++c)
        fetch(&to.p[t][c][head][j], p + (t * p_rows + (p_rows == 1 ? 0 : c)) * row + element);
    }
    for (int t = 0; lane.owns(task, r) && t < count; ++t) {
      for (int c = 0; c < own_rows; ++c)
        fetch(&to.own[t][c][r][lane.index], mine + (t * own_rows + c) * row + lane.row(r));
    }
  }
  const float* beta = task.arrays.beta + begin * (task.beta_rows * heads) + lane.head0;
  for (int i = lane.index; i < count * T::kTeams; i += 32) {
    const int t = i / T::kTeams, head = i % T::kTeams;
    if (lane.head0 + head >= heads) continue;
    for (int c = 0; c < task.beta_rows; ++c)
      fetch(&to.beta[t][c][head], beta + (t * task.beta_rows + c) * heads + head);
  }
}

// the same for narrow heads that share p, offsets being counted from the first row of all
template <typename K, int Steps>
__device__ void fetch_far(const Task& task, const Lane<K::kWidth>& lane, int64_t begin, int count,
                          const float* own, int own_rows, Chunk<K, Steps>& to) {
  using T = Team<K::kWidth>;
  const int heads = task.heads, width = task.width;
  const int here = min(T::kTeams, heads - lane.head0) * width;
#pragma unroll
  for (int r = 0; r < T::kRows; ++r) {
    const int element = lane.index + 32 * r, head = element / width, j = element % width;
    if (element < here) {
      for (int t = 0; t < count; ++t) {
        const int64_t from = (begin + t) * task.p_rows;
        fetch(&to.p[t][0][head][j], task.arrays.p + (from * heads + lane.head0) * width + element);
      }
    }
    if (lane.owns(task, r)) {
      for (int t = 0; t < count; ++t) {
        for (int c = 0; c < own_rows; ++c) {
          const int64_t from = ((begin + t) * own_rows + c) * heads + lane.head;
          fetch(&to.own[t][c][r][lane.index], own + from * width + lane.row(r));
        }
      }
    }
  }
  for (int i = lane.index; i < count * task.beta_rows * T::kTeams; i += 32) {
    const int head = i % T::kTeams, row = i / T::kTeams;
    if (lane.head0 + head < heads)
      fetch(&to.beta[row / task.beta_rows][row % task.beta_rows][head],
            task.arrays.beta + (begin * task.beta_rows + row) * heads + lane.head0 + head);
  }
}

// On an H200 the near way takes a tenth off the forward pass and more off the backward pass of wide heads,
// and makes that of narrow heads that share p half as long again; it is not known why
template <Pass Direction, typename K, int Steps>
__device__ void fetch_chunk(const Task& task, const Lane<K::kWidth>& lane, int64_t begin, int count,
                            const float* own, int own_rows, Chunk<K, Steps>& to) {
  if constexpr (Direction == Pass::Forward || !K::kShared) {
    fetch_near<K, Steps>(task, lane, begin, count, own, own_rows, to);
  } else {
    fetch_far<K, Steps>(task, lane, begin, count, own, own_rows, to);
  }
  if (lane.index < count) fetch(&to.dt[lane.index], task.arrays.dt + begin + lane.index);
  static_assert(Steps <= 32);
}

// wide heads fill the registers: what is read for later columns must not come too early
template <int Width>
__device__ void take_turns(int j) {
  if (Width > 20 && j % 8 == 7) asm volatile("" ::: "memory");
}

template <int Width>
__device__ float dot(const float* x, const float* y) {
  float sums[4] = {};
#pragma unroll
  for (int j = 0; j < Width; ++j) {
    sums[j % 4] += x[j] * y[j];
    take_turns<Width>(j);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// a chunk of wide heads has few (step, team) pairs: a team had better share the products p_i . p_j of one
template <typename K>
inline constexpr bool kTeamwork = !K::kShared && Team<K::kWidth>::kLanes >= 16;

// p_i . p_j of all pairs into `read`, and p_0 . p_0, a team for each step
template <typename K, int Steps>
__device__ void make_gram(const Task& task, const Lane<K::kWidth>& lane, int count, Chunk<K, Steps>& chunk) {
  using T = Team<K::kWidth>;
  for (int t = 0; t < count; ++t) {
    float products[8] = {};
#pragma unroll
    for (int r = 0; r < T::kRows; ++r) {
      const int column = lane.row(r);
      float p[kScanStages];
#pragma unroll
      for (int i = 0; i < kScanStages; ++i)
        p[i] = i < K::stages(task) && column < K::kWidth ? chunk.p[t][i][lane.team][column] : 0.0f;
#pragma unroll
      for (int i = 0; i < kScanStages; ++i) {
#pragma unroll
        for (int j = 0; j < i; ++j) products[pair_of(i, j)] += p[i] * p[j];
      }
      products[kPairs] += p[0] * p[0];
    }
    const float sum = eight_sums<T::kLanes>(products, lane.position);
    const int which = lane.position / (T::kLanes / 8);
    Factors& f = chunk.factors[t][lane.team];
    if (lane.position % (T::kLanes / 8) == 0 && which <= kPairs)
      (which < kPairs ? f.read[which] : f.square) = sum;
  }
  __syncwarp();
}

// a flow's factors, where dt and p . p are known
template <typename K>
__device__ void make_flow_factors(const Task& task, float beta, Factors& f) {
  const bool linear = K::phi(task) == ScanPhi::Difference && !K::bends(task);
  if (K::phi(task) != ScanPhi::Value) f.set(decay_of(beta * f.dt * f.square));
  f.beta[0] = linear ? beta * f.decay().mean : beta;
  f.write[0] = f.dt * f.beta[0];
}

// factors of all steps of a chunk, a team's step for each lane
template <Pass Direction, typename K, int Steps>
__device__ void make_factors(const Task& task, const Lane<K::kWidth>& lane, int count,
                             Chunk<K, Steps>& chunk) {
  constexpr int Width = K::kWidth;
  using T = Team<Width>;
  if constexpr (kTeamwork<K>) make_gram<K, Steps>(task, lane, count, chunk);
  for (int index = lane.index; index < count * T::kTeams; index += 32) {
    const int t = index / T::kTeams, team = index % T::kTeams;
    Factors& f = chunk.factors[t][team];
    const float dt = chunk.dt[t], scale = K::phi(task) == ScanPhi::Tanh ? kTwoLog2E : 1.0f;
    f.dt = dt;
    if constexpr (!kTeamwork<K>) f.square = dot<Width>(chunk.p[t][0][team], chunk.p[t][0][team]);
    if (K::kFlows) {
      make_flow_factors<K>(task, chunk.beta[t][0][team], f);
      continue;
    }
    float beta[kScanStages];
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) beta[i] = chunk.beta[t][task.beta_rows == 1 ? 0 : i][team];
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) {
      f.beta[i] = beta[i];
      f.write[i] = dt * task.b[i] * beta[i];
#pragma unroll
      for (int j = 0; j < i; ++j) {
        float gram = f.square;
        if constexpr (kTeamwork<K>) {
          gram = f.read[pair_of(i, j)];
        } else if constexpr (!K::kShared) {
          gram = i < K::stages(task) ? dot<Width>(chunk.p[t][i][team], chunk.p[t][j][team]) : 0.0f;
        }
        f.read[pair_of(i, j)] =
            task.a[pair_of(i, j)] * gram * (Direction == Pass::Forward ? scale * dt * beta[j] : 1.0f);
      }
    }
  }
}

// psi and its derivatives in place of e, which is kept after them for queries
template <typename K, int Steps>
__device__ void make_psi(const Task& task, const Lane<K::kWidth>& lane, Chunk<K, Steps>& chunk) {
  constexpr int kRows = Team<K::kWidth>::kRows;
  __syncwarp();
  const auto store = [&](int t, int r, const Psi& psi) {
    chunk.own[t][0][r][lane.index] = psi.mean;
    chunk.own[t][1][r][lane.index] = psi.by_e;
    chunk.own[t][2][r][lane.index] = psi.by_x;
    chunk.own[t][3][r][lane.index] = psi.end;
  };
  float e[Steps][kRows];
  bool far = false;
  // all at once and without branches; steps that the chunk does not have do not matter
#pragma unroll
  for (int t = 0; t < Steps; ++t) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Decay d = chunk.factors[t][lane.team].decay();
      e[t][r] = chunk.own[t][0][r][lane.index];
      if constexpr (K::kExtras) {
        chunk.own[t][kScanStages][r][lane.index] = e[t][r];
        store(t, r, psi_of(K::phi(task), e[t][r], d));
      } else {
        store(t, r, near_tanh_psi(e[t][r], d));
        far = far || fabsf(e[t][r]) > kFar;
      }
    }
  }
  if (!far) return;
#pragma unroll
  for (int t = 0; t < Steps; ++t) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (fabsf(e[t][r]) > kFar) store(t, r, far_tanh_psi(e[t][r], chunk.factors[t][lane.team].decay()));
    }
  }
}

}  // namespace fastweights::kernels::cuda

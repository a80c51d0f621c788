#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "ops/scan/cuda/fast.cuh"
#include "ops/scan/cuda/scan.h"

/// How a warp shares the recurrences of some heads of one sample, and what it fetches ahead of its steps.
///
/// A head is done by a team of lanes, and a lane owns one row of M (two of heads wider than 32). Steps come
/// in chunks: while one warp works on a chunk, another one fetches the next, and on the way back a third one
/// sums up what the rows of the last one left. `Width` is the width of a head or a little more; columns and
/// rows beyond are zero.

namespace fastweights::kernels::cuda {

inline constexpr int kPairs = 6;  // (i, j) with j < i < 4: i (i - 1) / 2 + j
__host__ __device__ constexpr int pair_of(int i, int j) { return i * (i - 1) / 2 + j; }

/// What kernels are told. Pointers as in ScanArrays, CudaSamples and CudaKept.
struct Task {
  int width, heads, stages;
  float a[kPairs], b[kScanStages];
  ScanPhi phi;
  ScanStep step;
  ScanMatrix matrix;
  ScanRead read;
  int p_rows, s_rows, beta_rows, queries;
  ScanArrays<float> arrays, grads;
  CudaSamples samples;
  CudaKept kept;
};

/// From a plan with parts that are given.
inline Task task_of(const ScanPlan& plan, const ScanArrays<float>& arrays, const CudaSamples& samples,
                    const CudaKept& kept) {
  Task task = {};
  task.width = static_cast<int>(plan.width);
  task.heads = static_cast<int>(plan.heads);
  task.stages = static_cast<int>(plan.stages);
  for (int i = 0; i < task.stages; ++i) {
    task.b[i] = static_cast<float>(plan.b[i]);
    for (int j = 0; j < i; ++j) task.a[pair_of(i, j)] = static_cast<float>(plan.a[i][j]);
  }
  task.phi = plan.phi;
  task.step = plan.step;
  task.matrix = plan.matrix;
  task.read = plan.read;
  task.p_rows = static_cast<int>(plan.p.rows);
  task.s_rows = static_cast<int>(plan.s.rows);
  task.beta_rows = static_cast<int>(plan.beta.rows);
  task.queries = static_cast<int>(plan.queries);
  task.arrays = arrays;
  task.samples = samples;
  task.kept = kept;
  return task;
}

/// What is known of a call when its kernel is compiled. Stages 0, Phi -1: only the task knows. Extras:
/// queries, slopes, gradients of dt and the exact flow, which other kernels do not look for.
template <int Width_, bool Shared_, int Phi_, int Stages_, bool Extras_>
struct Kind {
  static constexpr int kWidth = Width_;
  static constexpr bool kShared = Shared_, kExtras = Extras_;
  static constexpr int kPRows = Shared_ ? 1 : kScanStages;  // of p in shared memory

  __device__ static int stages(const Task& task) { return Stages_ > 0 ? Stages_ : task.stages; }
  __device__ static ScanPhi phi(const Task& task) { return Phi_ < 0 ? task.phi : static_cast<ScanPhi>(Phi_); }
  __device__ static bool flows(const Task& task) { return kExtras && task.step == ScanStep::ExactFlow; }
};

template <int Width>
struct Team {
  static constexpr int kLanes = Width > 16 ? 32 : Width > 8 ? 16 : Width > 4 ? 8 : 4;
  static constexpr int kRows = (Width + 31) / 32;  // of M per lane
  static constexpr int kTeams = 32 / kLanes;
  static constexpr int kRoom = (Width + 3) / 4 * 4;  // of a vector in shared memory
};

/// Numbers that a step needs beside p, s and M: README.md, section 2. The write takes `write[i]` of phi_i,
/// and the read of stage i takes `read[i, j]` of phi_j: dt a_ij G_ij beta_j, for a tanh times kTwoLog2E; in a
/// backward pass a_ij G_ij alone.
struct alignas(16) Factors {
  float read[kPairs], write[kScanStages];
  float beta[kScanStages];  // as the step takes them: with the exact flow beta h(x)
  float dt, square;         // square: p . p of a shared p
};

/// One chunk of steps in shared memory.
template <typename K, int Steps>
struct Chunk {
  using T = Team<K::kWidth>;
  alignas(16) float p[Steps][K::kPRows][T::kTeams][T::kRoom];
  Factors factors[Steps][T::kTeams];
  float own[Steps][kScanStages][T::kRows][32];  // s or phi of each lane's rows
  float beta[Steps][kScanStages][T::kTeams];
  float dt[Steps];
};

/// Who a lane is.
template <int Width>
struct Lane {
  int index, team, place;  // in the warp; the team and the place in it
  int64_t sample, first, steps;
  int head0, head;
  bool active;  // whether there is such a head

  __device__ Lane(const Task& task, int heads_groups) {
    using T = Team<Width>;
    index = static_cast<int>(threadIdx.x % 32);
    // kept in a register: asking for it again takes longer than anything else in a step
    asm volatile("" : "+r"(index));
    team = index / T::kLanes;
    place = index % T::kLanes;
    sample = blockIdx.x / heads_groups;
    head0 = static_cast<int>(blockIdx.x % heads_groups) * T::kTeams;
    head = head0 + team;
    active = head < task.heads;
    first = task.samples.offsets[sample];
    steps = task.samples.offsets[sample + 1] - first;
  }
  __device__ int row(int r) const { return place + 32 * r; }
  __device__ bool owns(const Task& task, int r) const { return active && row(r) < task.width; }
};

// all of a chunk is zero before anything is fetched: what lies beyond heads and widths stays so
template <typename C>
__device__ void clear(C& chunk) {
  float* numbers = reinterpret_cast<float*>(&chunk);
  const int count = static_cast<int>(sizeof(C) / sizeof(float)), threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) numbers[i] = 0;
}

__device__ inline void fetch(float* to, const float* from) {
  __pipeline_memcpy_async(to, from, sizeof(float));
}

// p, beta and dt of `count` steps from row `begin` on, and of each lane's own rows s, or phi (own_rows: how
// many of them there are for each step)
template <typename K, int Steps>
__device__ void fetch_chunk(const Task& task, const Lane<K::kWidth>& lane, int64_t begin, int count,
                            const float* own, int own_rows, Chunk<K, Steps>& to) {
  using T = Team<K::kWidth>;
  const int heads = task.heads, width = task.width, row = heads * width, p_rows = task.p_rows;
  const int here = min(T::kTeams, heads - lane.head0) * width;
  const float* p = task.arrays.p + begin * (p_rows * row) + lane.head0 * width;
  const float* mine = own + begin * (own_rows * row) + lane.head * width;
#pragma unroll
  for (int r = 0; r < T::kRows; ++r) {
    const int element = lane.index + 32 * r, head = element / width, j = element % width;
    if (element < here) {
      for (int t = 0; t < count; ++t) {
        for (int c = 0; c < (K::kShared ? 1 : K::stages(task)); ++c)
          fetch(&to.p[t][c][head][j], p + (t * p_rows + (p_rows == 1 ? 0 : c)) * row + element);
      }
    }
    if (lane.owns(task, r)) {
      for (int t = 0; t < count; ++t) {
        for (int c = 0; c < own_rows; ++c)
          fetch(&to.own[t][c][r][lane.index], mine + (t * own_rows + c) * row + lane.row(r));
      }
    }
  }
  const float* beta = task.arrays.beta + begin * (task.beta_rows * heads) + lane.head0;
  for (int i = lane.index; i < count * T::kTeams; i += 32) {
    const int t = i / T::kTeams, head = i % T::kTeams;
    if (lane.head0 + head >= heads) continue;
    for (int c = 0; c < task.beta_rows; ++c)
      fetch(&to.beta[t][c][head], beta + (t * task.beta_rows + c) * heads + head);
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

// (1 - e^-x) / x and its derivative
struct Flow {
  float value, slope;
};
__device__ inline Flow flow_of(float x) {
  if (fabsf(x) < 0.5f) {
    // sum over k of (-x)^k / (k + 1)!, and its derivative
    float value = 0, slope = 0;
    constexpr float kTerms[] = {1.0f,        -1.0f / 2,   1.0f / 6,      -1.0f / 24,    1.0f / 120,
                                -1.0f / 720, 1.0f / 5040, -1.0f / 40320, 1.0f / 362880, -1.0f / 3628800};
#pragma unroll
    for (int k = 9; k >= 0; --k) {
      slope = slope * x + value;
      value = value * x + kTerms[k];
    }
    return {value, slope};
  }
  const float minus = expm1f(-x);
  return {-minus / x, (minus / x + minus + 1) / x};
}

enum class Pass { Forward, Backward };

// sums over the lanes of a team; every lane gets it
template <int Width>
__device__ float team_sum(float x) {
#pragma unroll
  for (int far = Team<Width>::kLanes / 2; far > 0; far /= 2) x += __shfl_xor_sync(~0u, x, far);
  return x;
}

template <int Width>
__device__ float team_max(float x) {
#pragma unroll
  for (int far = Team<Width>::kLanes / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, far));
  return x;
}

// eight sums over the lanes of a team of eight or more at once: in each exchange a lane gives away half of
// the sums that it has and gets its part of the others. The lane ends with sum number place / (kLanes / 8)
template <int Width>
__device__ float team_sums(const float (&x)[8], int place) {
  constexpr int kLanes = Team<Width>::kLanes;
  float left[4], less[2];
  const bool upper = place & (kLanes / 2), middle = place & (kLanes / 4), lower = place & (kLanes / 8);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    left[i] = (upper ? x[i + 4] : x[i]) + __shfl_xor_sync(~0u, upper ? x[i] : x[i + 4], kLanes / 2);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    less[i] =
        (middle ? left[i + 2] : left[i]) + __shfl_xor_sync(~0u, middle ? left[i] : left[i + 2], kLanes / 4);
  float sum = (lower ? less[1] : less[0]) + __shfl_xor_sync(~0u, lower ? less[0] : less[1], kLanes / 8);
#pragma unroll
  for (int far = kLanes / 16; far > 0; far /= 2) sum += __shfl_xor_sync(~0u, sum, far);
  return sum;
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
    const float sum = team_sums<K::kWidth>(products, lane.place);
    const int which = lane.place / (T::kLanes / 8);
    Factors& f = chunk.factors[t][lane.team];
    if (lane.place % (T::kLanes / 8) == 0 && which <= kPairs)
      (which < kPairs ? f.read[which] : f.square) = sum;
  }
  __syncwarp();
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
    float beta[kScanStages];
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) beta[i] = chunk.beta[t][task.beta_rows == 1 ? 0 : i][team];
    if (K::flows(task)) beta[0] *= flow_of(beta[0] * dt * f.square).value;
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

// where M[i, j] stands in memory: M is W, or its transpose
__device__ inline int64_t place_of(const Task& task, int64_t matrix, int i, int j) {
  const int width = task.width;
  return matrix * width * width + (task.matrix == ScanMatrix::Plain ? i * width + j : j * width + i);
}

// row of kept matrices behind step n of a sample
__device__ inline int64_t kept_row(int64_t first, int64_t sample, int64_t n) {
  return first / kCudaStretch + sample + n / kCudaStretch;
}

}  // namespace fastweights::kernels::cuda

#pragma once

#include <cuda_runtime.h>

#include "ops/scan/cuda/flow.cuh"
#include "ops/scan/cuda/lanes.cuh"
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

/// Arguments of kernels. Pointers as in ScanArrays, CudaSamples and CudaKept.
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

/// What a kernel computes: steps of stages, or flows. Extras: with queries, slopes and gradients of dt, which
/// the others do not look for.
enum class Scope { Stages, Flow, StageExtras, FlowExtras };

/// What is known of a call when its kernel is compiled. Stages 0, Phi -1: only the task knows.
template <int Width_, bool Shared_, int Phi_, int Stages_, Scope Scope_>
struct Kind {
  static constexpr int kWidth = Width_;
  static constexpr bool kShared = Shared_,
                        kExtras = Scope_ == Scope::StageExtras || Scope_ == Scope::FlowExtras,
                        kFlows = Scope_ == Scope::Flow || Scope_ == Scope::FlowExtras;
  static constexpr int kPRows = Shared_ ? 1 : kScanStages;  // of p in shared memory
  // of s or phi; of a flow backwards e, or where psi bends Psi, and for queries both
  static constexpr int kOwnRows = Scope_ == Scope::FlowExtras ? kScanStages + 1
                                  : Scope_ == Scope::Flow && Phi_ != static_cast<int>(ScanPhi::Tanh)
                                      ? 1
                                      : kScanStages;

  __device__ static int stages(const Task& task) { return Stages_ > 0 ? Stages_ : task.stages; }
  __device__ static ScanPhi phi(const Task& task) { return Phi_ < 0 ? task.phi : static_cast<ScanPhi>(Phi_); }
  /// A flow whose psi is computed for each row; that of others is e times a factor of the step.
  __device__ static bool bends(const Task& task) { return kFlows && (kExtras || phi(task) == ScanPhi::Tanh); }
};

template <int Width>
struct Team {
  static constexpr int kLanes = Width > 16 ? 32 : Width > 8 ? 16 : Width > 4 ? 8 : 4;
  static constexpr int kRows = (Width + 31) / 32;  // of M per lane
  static constexpr int kTeams = 32 / kLanes;
  static constexpr int kRoom = (Width + 3) / 4 * 4;  // of a vector in shared memory
};

// of a row of lanes in shared memory: neighbours begin in other banks
inline constexpr int kLaneRow = 33;

/// Numbers that a step needs beside p, s and M: README.md, section 2. The write takes `write[i]` of phi_i,
/// and the read of stage i takes `read[i, j]` of phi_j: dt a_ij G_ij beta_j, for a tanh times kTwoLog2E; in a
/// backward pass a_ij G_ij alone. A flow has one stage, and its Decay in place of `read`.
struct alignas(16) Factors {
  float read[kPairs], write[kScanStages];
  float beta[kScanStages];  // of a flow that does not bend: beta h(x)
  float dt, square;         // square: p . p of a shared p

  __device__ Decay decay() const { return {read[0], read[1], read[2], read[3], read[4]}; }
  __device__ void set(const Decay& d) {
    read[0] = d.x;
    read[1] = d.left;
    read[2] = d.mean;
    read[3] = d.slope;
    read[4] = d.inverse;
  }
};

/// One chunk of steps in shared memory.
template <typename K, int Steps>
struct Chunk {
  using T = Team<K::kWidth>;
  alignas(16) float p[Steps][K::kPRows][T::kTeams][T::kRoom];
  Factors factors[Steps][T::kTeams];
  // s or phi of each lane's rows; of a flow that bends, backwards, Psi and then e
  float own[Steps][K::kOwnRows][T::kRows][32];
  float beta[Steps][kScanStages][T::kTeams];
  float dt[Steps];
};

/// Who a lane is.
template <int Width>
struct Lane {
  int index, team, position;  // in the warp; the team and the position in it
  int64_t sample, first, steps;
  int head0, head;
  bool active;  // whether this head exists

  __device__ Lane(const Task& task, int heads_groups) {
    using T = Team<Width>;
    index = static_cast<int>(threadIdx.x % 32);
    // kept in a register: asking for it again takes longer than anything else in a step
    asm volatile("" : "+r"(index));
    team = index / T::kLanes;
    position = index % T::kLanes;
    sample = blockIdx.x / heads_groups;
    head0 = static_cast<int>(blockIdx.x % heads_groups) * T::kTeams;
    head = head0 + team;
    active = head < task.heads;
    first = task.samples.offsets[sample];
    steps = task.samples.offsets[sample + 1] - first;
  }
  __device__ int row(int r) const { return position + 32 * r; }
  __device__ bool owns(const Task& task, int r) const { return active && row(r) < task.width; }
};

// all of a chunk is zero before anything is fetched: what lies beyond heads and widths stays so
template <typename C>
__device__ void clear(C& chunk) {
  float* values = reinterpret_cast<float*>(&chunk);
  const int count = static_cast<int>(sizeof(C) / sizeof(float)), threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) values[i] = 0;
}

// sums over the lanes of a team; every lane gets it
template <int Width>
__device__ float team_sum(float x) {
  return lanes_sum<Team<Width>::kLanes>(x);
}
template <int Width>
__device__ float team_max(float x) {
  return lanes_max<Team<Width>::kLanes>(x);
}

// where M[i, j] stands in memory: M is W, or its transpose
__device__ inline int64_t offset_of(const Task& task, int64_t matrix, int i, int j) {
  const int width = task.width;
  return matrix * width * width + (task.matrix == ScanMatrix::Plain ? i * width + j : j * width + i);
}

// row of kept matrices after step n of a sample
__device__ inline int64_t kept_row(int64_t first, int64_t sample, int64_t n) {
  return first / kCudaStretch + sample + n / kCudaStretch;
}

}  // namespace fastweights::kernels::cuda

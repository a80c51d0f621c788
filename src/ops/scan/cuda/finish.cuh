#pragma once

#include "ops/scan/cuda/backward.cuh"

/// Sums over the rows of M at the end of a chunk: gradients of p, beta and dt. And the way of all warps
/// through the chunks.

namespace fastweights::kernels::cuda {

template <int Width>
__device__ float sum_of_rows(const float* parts, int team) {
  constexpr int kLanes = Team<Width>::kLanes;
  const float* from = parts + team * kLanes;
  float sums[4] = {};
#pragma unroll
  for (int i = 0; i < (Width < kLanes ? Width : kLanes); ++i) sums[i % 4] += from[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// a flow's terms of x = beta dt |p|^2; the gradient of x is beta times `grad`
template <typename K>
__device__ void finish_flow(const Task& task, const Factors& f, float beta, float* total) {
  float grad = total[kSumGram];
  if (!K::bends(task)) {
    if (K::phi(task) == ScanPhi::Value) return;
    // psi is h e, and so far the sum is that of psi's gradients times e
    grad = total[kSumBeta] * f.decay().slope;
    total[kSumBeta] *= f.decay().left;
  }
  total[kSumDt] += grad * beta * beta * f.square;
  total[kSumGram] = grad * beta * beta * f.dt;
}

// beta, dt and the Gram matrix, a team's step for each lane
template <typename K, int Steps>
__device__ void total_sums(const Task& task, const Lane<K::kWidth>& lane, int64_t row, int count,
                           const Chunk<K, Steps>& chunk, Parts<K, Steps>& parts) {
  using T = Team<K::kWidth>;
#pragma unroll
  for (int first = 0; first < kSums<K>; first += T::kLanes) {
    const int k = first + lane.position;
    if (k >= kSums<K>) break;
#pragma unroll
    for (int t = 0; t < Steps; ++t)
      parts.totals[t][lane.team][k] = sum_of_rows<K::kWidth>(parts.sums[t][k], lane.team);
  }
  __syncwarp();
  for (int index = lane.index; index < count * T::kTeams; index += 32) {
    const int t = index / T::kTeams, team = index % T::kTeams, head = lane.head0 + team;
    if (head >= task.heads) continue;
    float* total = parts.totals[t][team];
    if (K::kFlows) finish_flow<K>(task, chunk.factors[t][team], chunk.beta[t][0][team], total);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kScanStages; ++i) {
      if (i >= K::stages(task)) break;
      sum += total[kSumBeta + i];
      if (task.beta_rows > 1)
        task.grads.beta[((row + t) * task.beta_rows + i) * task.heads + head] = total[kSumBeta + i];
    }
    if (task.beta_rows == 1) task.grads.beta[(row + t) * task.heads + head] = sum;
    if (K::kExtras && task.grads.dt) task.grads.dt[(row + t) * task.heads + head] = total[kSumDt];
  }
  __syncwarp();
}

// dp of program c, column j: sums of rows, and the Gram matrix's part
template <typename K, int Steps>
__device__ float p_gradient(const Task& task, const Lane<K::kWidth>& lane, const Chunk<K, Steps>& chunk,
                            const Parts<K, Steps>& parts, int t, int c, int j) {
  const float* total = parts.totals[t][lane.team];
  float sum = sum_of_rows<K::kWidth>(parts.p[t][c][j], lane.team);
  // a flow has one stage, and its |p|^2 stands where the pairs of stages would
  if (K::kShared || K::kFlows) sum += 2 * total[kSumGram] * chunk.p[t][c][lane.team][j];
#pragma unroll
  for (int e = 0; e < K::kPRows; ++e) {
    if (e == c || e >= K::stages(task)) continue;
    sum += total[kSumGram + (e < c ? pair_of(c, e) : pair_of(e, c))] * chunk.p[t][e][lane.team][j];
  }
  return sum;
}

template <typename K, int Steps>
__device__ void finish_chunk(const Task& task, const Lane<K::kWidth>& lane, int64_t row, int count,
                             const Chunk<K, Steps>& chunk, Parts<K, Steps>& parts) {
  __syncwarp();
  total_sums<K, Steps>(task, lane, row, count, chunk, parts);
#pragma unroll
  for (int r = 0; r < Team<K::kWidth>::kRows; ++r) {
    const int j = lane.row(r);
    if (!lane.owns(task, r)) continue;
#pragma unroll
    for (int t = 0; t < Steps; ++t) {
      if (t >= count) break;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < K::kPRows; ++c) {
        if (c >= K::stages(task)) break;
        const float grad = p_gradient<K, Steps>(task, lane, chunk, parts, t, c, j);
        sum += grad;
        if (!K::kShared && task.p_rows > 1)
          task.grads.p[(((row + t) * task.p_rows + c) * task.heads + lane.head) * task.width + j] = grad;
      }
      if (K::kShared || task.p_rows == 1)
        task.grads.p[((row + t) * task.heads + lane.head) * task.width + j] = sum;
    }
  }
  __syncwarp();
}

template <int Width>
__device__ void add_matrix(const Task& task, const Lane<Width>& lane, const float* from, int64_t matrix,
                           Rows<Width>& to) {
  Rows<Width> more;
  load_matrix<Width>(task, lane, from, matrix, more);
#pragma unroll
  for (int r = 0; r < Team<Width>::kRows; ++r) {
#pragma unroll
    for (int j = 0; j < Width; ++j) to[r][j] += more[r][j];
  }
}

// chunks of a sample, the last one first
template <typename K>
struct Pieces {
  static constexpr int kSteps = kBackwardSteps<K>;
  int steps, count;
  __device__ explicit Pieces(const Lane<K::kWidth>& lane)
      : steps(static_cast<int>(lane.steps)), count((steps + kSteps - 1) / kSteps) {}
  __device__ int steps_of(int piece) const { return min(kSteps, steps - piece * kSteps); }
};

// the warp that fetches: a chunk is made ready while another warp works on the one before it, and the next
// ones are on their way meanwhile
template <typename K, typename Piece>
__device__ void fetch_backward(const Task& task, const Lane<K::kWidth>& lane,
                               Piece (&chunks)[kBackwardRing]) {
  constexpr int kSteps = kBackwardSteps<K>;
  const Pieces<K> pieces(lane);
  const auto start_fetching = [&](int piece) {
    if (piece >= 0)
      fetch_chunk<Pass::Backward, K, kSteps>(task, lane, lane.first + piece * kSteps, pieces.steps_of(piece),
                                             task.kept.phi, K::stages(task), chunks[piece % kBackwardRing]);
    __pipeline_commit();
  };
  start_fetching(pieces.count - 1);
  start_fetching(pieces.count - 2);
  for (int piece = pieces.count - 1; piece >= 0; --piece) {
    start_fetching(piece - 2);
    __pipeline_wait_prior(2);
    __syncwarp();
    make_factors<Pass::Backward, K, kSteps>(task, lane, pieces.steps_of(piece),
                                            chunks[piece % kBackwardRing]);
    // other kinds have no room for it
    if constexpr (K::kFlows && K::kOwnRows >= kScanStages) {
      if (K::bends(task)) make_psi<K, kSteps>(task, lane, chunks[piece % kBackwardRing]);
    }
    __syncthreads();
  }
  __syncthreads();
}

// the warp that finishes what the one that steps has left
template <typename K, typename Piece, typename Part>
__device__ void finish_backward(const Task& task, const Lane<K::kWidth>& lane,
                                const Piece (&chunks)[kBackwardRing], Part (&parts)[2]) {
  constexpr int kSteps = kBackwardSteps<K>;
  const Pieces<K> pieces(lane);
  const auto finish = [&](int piece) {
    finish_chunk<K, kSteps>(task, lane, lane.first + piece * kSteps, pieces.steps_of(piece),
                            chunks[piece % kBackwardRing], parts[piece & 1]);
  };
  for (int piece = pieces.count - 1; piece >= 0; --piece) {
    // the warp that steps is at piece + 1
    if (piece + 2 < pieces.count) finish(piece + 2);
    __syncthreads();
  }
  if (pieces.count > 1) finish(1);
  __syncthreads();
  if (pieces.count > 0) finish(0);
}

// the warp that steps
template <typename K, typename Piece, typename Part>
__device__ void step_all_backward(const Task& task, const Lane<K::kWidth>& lane,
                                  const Piece (&chunks)[kBackwardRing], Part (&parts)[2],
                                  QueryRoom<K::kWidth, K::kExtras>& room) {
  constexpr int kWidth = K::kWidth, kSteps = kBackwardSteps<K>;
  const int steps = static_cast<int>(lane.steps), pieces = (steps + kSteps - 1) / kSteps;
  // Hebb's rule does not read M: nothing is kept of it unless a query does
  const bool reads = K::phi(task) != ScanPhi::Value || (K::kExtras && task.queries > 0);
  Rows<kWidth> m = {}, lambda = {};
  int64_t left = task.samples.output_offsets[lane.sample + 1];
  const int64_t first_output = task.samples.output_offsets[lane.sample];
  // adds the gradients of outputs from step n on, and says where the next one is
  const auto add_outputs = [&](int n) {
    for (; left > first_output && task.samples.output_steps[left - 1] >= n; --left)
      if (task.grads.out)
        add_matrix<kWidth>(task, lane, task.grads.out, (left - 1) * task.heads + lane.head, lambda);
    return left > first_output ? static_cast<int>(task.samples.output_steps[left - 1]) : -1;
  };
  int due = add_outputs(steps), stage = task.heads * task.width, rows = task.s_rows;
  asm volatile("" : "+r"(stage), "+r"(rows));
  const bool reads_queries = task.queries > 0 && task.grads.y;
  if constexpr (K::kExtras) {
    if (reads_queries && steps > 0) {
      fetch_vectors<K>(task, lane, task.arrays.q, lane.first + steps - 1, room.q[(steps - 1) & 1]);
      fetch_vectors<K>(task, lane, task.grads.y, lane.first + steps - 1, room.grad_y[(steps - 1) & 1]);
    }
    __pipeline_commit();
  }
  float* to = task.grads.s + (lane.first + steps) * rows * stage + lane.head * task.width + lane.position;
  for (int piece = pieces - 1; piece >= 0; --piece) {
    __syncthreads();
    const Piece& chunk = chunks[piece % kBackwardRing];
    const int n0 = piece * kSteps, count = min(kSteps, steps - n0), end = n0 + count;
    if (reads && (end % kCudaStretch == 0 || end == steps))
      load_matrix<kWidth>(task, lane, task.kept.m,
                          kept_row(lane.first, lane.sample, end - 1) * task.heads + lane.head, m);
    Step<K> coming;
    coming.load(lane, chunk, count - 1, kScanStages);
    for (int t = count - 1; t >= 0; --t) {
      const int n = n0 + t;
      const Step<K> step = coming;
      const auto p = [&](int c) { return K::kShared ? step.p : chunk.p[t][c][lane.team]; };
      coming.load(lane, chunk, max(t - 1, 0), kScanStages);
      if (n + 1 <= due) due = add_outputs(n + 1);
      const int turn = n & 1;
      if constexpr (K::kExtras)
        turn_queries<Pass::Backward, K>(task, lane, lane.first + n - 1, reads_queries && n > 0, turn ^ 1,
                                        room);
      Inner<kWidth> inner;
      step_backward<K, kSteps>(task, lane, chunk, t, lane.first + n, step, p, m, lambda, inner,
                               parts[piece & 1], turn, room);
      to -= rows * stage;
      store_s_gradient<K>(task, lane, to, stage, rows, inner);
    }
  }
  __syncthreads();
  add_outputs(0);
  if (task.grads.start)
    store_matrix<kWidth>(task, lane, lambda, lane.sample * task.heads + lane.head, task.grads.start);
}

/// Shared memory of a block.
template <typename K>
struct BackwardRoom {
  Chunk<K, kBackwardSteps<K>> chunks[kBackwardRing];
  Parts<K, kBackwardSteps<K>> parts[2];
  QueryRoom<K::kWidth, K::kExtras> queries;
};

template <typename K>
__device__ void backward(const Task& task, int head_groups) {
  extern __shared__ float4 bytes[];
  auto& room = *reinterpret_cast<BackwardRoom<K>*>(bytes);
  const Lane<K::kWidth> lane(task, head_groups);
  clear(room);
  __syncthreads();
  if (threadIdx.x < 32) {
    step_all_backward<K>(task, lane, room.chunks, room.parts, room.queries);
  } else if (threadIdx.x < 64) {
    fetch_backward<K>(task, lane, room.chunks);
  } else {
    finish_backward<K>(task, lane, room.chunks, room.parts);
  }
}

}  // namespace fastweights::kernels::cuda

#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/signature.h"

/// What a block does for one window: an entry of the tensors for each thread, and then the next. The formulas
/// are those of kernels/signature_impl.h.

namespace fastweights::kernels::cuda {

/// Sizes of a plan, as threads like them.
struct Levels {
  int depth;
  unsigned channels, power[kMaxDepth + 1], start[kMaxDepth + 2];
  double inverse[kMaxDepth + 1];  // 1 / l
};

inline Levels levels_of(const SignaturePlan& plan) {
  Levels levels = {static_cast<int>(plan.depth), static_cast<unsigned>(plan.channels), {}, {}, {}};
  for (int64_t l = 0; l <= plan.depth; ++l) levels.power[l] = static_cast<unsigned>(plan.power[l]);
  for (int64_t l = 0; l <= plan.depth + 1; ++l) levels.start[l] = static_cast<unsigned>(plan.start[l]);
  for (int64_t l = 1; l <= plan.depth; ++l) levels.inverse[l] = 1.0 / static_cast<double>(l);
  return levels;
}

/// Numbers of a window: x, the segment, and two quotients.
inline int64_t window_room(const SignaturePlan& plan) {
  return plan.start[plan.depth + 1] + plan.channels + 2 * plan.start[plan.depth];
}

// new x at an entry of this level: x_k + H_(k-1) (x) d, with Horner's scheme along the entry's own letters
__device__ inline double appended(const Levels& levels, int level, unsigned entry, const double* x,
                                  const double* d) {
  unsigned below = levels.power[level - 1], word = entry / below;
  double horner = x[word] + d[word] * levels.inverse[level];
  for (int j = 2; j < level; ++j) {
    below /= levels.channels;
    word = entry / below;
    horner = x[levels.start[j] + word] + horner * levels.inverse[level - j + 1] * d[word % levels.channels];
  }
  return x[levels.start[level] + entry] + horner * d[entry % levels.channels];
}

// x <- x (x) exp(d), from the highest level down so that lower ones are still the old ones
__device__ inline void append_segment(const Levels& levels, const double* d, double* x) {
  for (int level = levels.depth; level >= 2; --level) {
    for (unsigned i = threadIdx.x; i < levels.power[level]; i += blockDim.x)
      x[levels.start[level] + i] = appended(levels, level, i, x, d);
    __syncthreads();
  }
  for (unsigned c = threadIdx.x; c < levels.channels; c += blockDim.x) x[c] += d[c];
}

// Q_m = 1/m - x Q_(m+1) at an entry of this level
__device__ inline double quotient(const Levels& levels, int m, int level, unsigned entry, const double* x,
                                  const double* next) {
  double sum = x[levels.start[level] + entry] * -levels.inverse[m + 1];
  for (int i = 1; i < level; ++i) {
    const unsigned columns = levels.power[level - i];
    sum -= x[levels.start[i] + entry / columns] * next[levels.start[level - i] + entry % columns];
  }
  return sum;
}

// Q_1, in one of two buffers
__device__ inline const double* first_quotient(const Levels& levels, const double* x, double* here,
                                               double* next) {
  for (int m = levels.depth - 1; m >= 1; --m) {
    for (int level = 1; level <= levels.depth - m; ++level) {
      for (unsigned i = threadIdx.x; i < levels.power[level]; i += blockDim.x)
        here[levels.start[level] + i] = quotient(levels, m, level, i, x, next);
    }
    __syncthreads();
    double* made = here;
    here = next;
    next = made;
  }
  return next;
}

// coefficients at the words: x(w) and the products over all cuts of w
__device__ inline void read_words(const Levels& levels, const CudaSignature& task, const double* x,
                                  const double* q1, float* out) {
  for (int64_t w = threadIdx.x; w < task.plan.words; w += blockDim.x) {
    const int length = task.length[w];
    const auto position = static_cast<unsigned>(task.position[w]);
    double sum = x[levels.start[length] + position];
    for (int i = 1; i < length; ++i) {
      const unsigned columns = levels.power[length - i];
      sum += x[levels.start[i] + position / columns] * q1[levels.start[length - i] + position % columns];
    }
    out[w] = static_cast<float>(sum);
  }
}

// one window, in window_room() values of the block
__device__ inline void logsignature_window(const Levels& levels, const CudaSignature& task, int64_t window,
                                           double* room) {
  const unsigned all = levels.start[levels.depth + 1], channels = levels.channels;
  double* x = room;
  double* d = x + all;
  double* quotients = d + channels;
  for (unsigned i = threadIdx.x; i < all; i += blockDim.x) x[i] = 0;
  const float* point = task.points + task.first[window] * channels;
  for (int64_t i = 1; i < task.count[window]; ++i, point += channels) {
    // a thread changes only its own entries of d and of level 1
    for (unsigned c = threadIdx.x; c < channels; c += blockDim.x)
      d[c] = static_cast<double>(point[channels + c]) - static_cast<double>(point[c]);
    __syncthreads();
    append_segment(levels, d, x);
  }
  __syncthreads();
  const double* q1 = first_quotient(levels, x, quotients, quotients + levels.start[levels.depth]);
  read_words(levels, task, x, q1, task.out + window * task.plan.words);
  __syncthreads();
}

}  // namespace fastweights::kernels::cuda

#pragma once

#include "ops/scan/cuda/program.h"

/// From a signal with its scale to what enters the rule, in one kernel. The slow net's projections, which
/// are many times as long as the signal, are never stored. README.md, sections 5 and 7.

namespace fastweights::kernels {

/// O projections of a signal x of C channels: r (W x + w) + shift; without a scale W x + w.
struct CudaMap {
  const float* x;       // [N, C]
  const float* r;       // [N], or null: no scale
  const float* weight;  // [O, C + 2]: W, w, shift; without a scale [O, C + 1]
};

struct CudaNet {
  int64_t rows, channels, heads, width;
  CudaMap keys;       // O = H (2 D + 1): per head key, value, rate; or H (D + 1) beside values of their own
  CudaMap values;     // O = H D; x null: values are among the keys' projections
  const float* mask;  // [B, H, D], factors of the values; or null
  const int64_t* samples;  // [N / times]: the sample of each step; null without a mask
  int64_t times;           // rows for each entry of `samples`
  ScanForm key, value, rate;
  const int64_t*
      steps;  // [1] on the device: number of steps of `times` rows, later rows are padding; null: all
};

/// Whether the kernels are worth it: the fewer channels, the more so.
bool cuda_net_pays(int64_t channels, int64_t width);

/// Sets k, v and beta.
void cuda_net(const CudaNet& net, const CudaProgramOutput& out, void* stream);

/// How many partial sums a backward pass leaves: of weights, and of the scale (one for each group of heads).
struct CudaNetParts {
  int64_t weights, scales;
};
CudaNetParts cuda_net_parts(const CudaNet& net);

/// Partial sums of gradients, all of them set. Of a scale only if the map has one; values' where they have a
/// map of their own.
struct CudaNetGradients {
  float *keys, *values;            // [parts, O, C + 2 or C + 1]
  float *key_scale, *value_scale;  // [parts, N]
};

/// `made` is what the forward pass put out, `grads` the gradients of that.
void cuda_net_backward(const CudaNet& net, const CudaProgramOutput& made, const CudaProgramOutput& grads,
                       const CudaNetGradients& to, void* stream);

}  // namespace fastweights::kernels

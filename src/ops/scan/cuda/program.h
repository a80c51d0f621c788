#pragma once

#include "ops/scan/kernel.h"

/// From a signal to features (README.md, section 5), and from the slow net's projections to what enters the
/// rule. Pointers are of the device, `stream` is a cudaStream_t; a launch that fails throws.

namespace fastweights::kernels {

/// Projections per row and head: D of the key, then D of the value unless `values` has them, then one of the
/// rate.
struct CudaProgram {
  int64_t rows, heads, width;
  const float* projections;  // [N, H, 2 D + 1] or [N, H, D + 1]
  const float* values;       // [N, H, D] or null
  const float* mask;         // [B, H, D], factors of the values; or null
  const int64_t* samples;    // [N / times]: the sample of each step; null without a mask
  int64_t times;             // rows for each entry of `samples`
  ScanForm key, value, rate;
  const int64_t*
      steps;  // [1] on the device: number of steps of `times` rows, later rows are padding; null: all
};

/// k [N, H, D], v [N, H, D], beta [N, H]
struct CudaProgramOutput {
  float *k, *v, *beta;
};
void cuda_program(const CudaProgram& task, const CudaProgramOutput& out, void* stream);

/// `made` is the output of the forward pass, `grads` its gradients. Sets those of projections and values;
/// zero in padding.
void cuda_program_backward(const CudaProgram& task, const CudaProgramOutput& made,
                           const CudaProgramOutput& grads, float* grad_projections, float* grad_values,
                           void* stream);

/// Channels that the kernel has room for, in the 99 KB of shared memory that every device since 8.0 has.
inline constexpr int64_t kCudaNormaliseChannels = 79;

/// x~ r with x~ = [x; 1] and r = 1 / sqrt(x~^T G x~ + eps).
struct CudaNormalise {
  int64_t rows, channels;
  const float* x;      // [N, C]
  const double* gram;  // [C + 1, C + 1]
  double epsilon;
  int64_t out_row;  // stride of the result's rows
  const int64_t*
      steps;  // [1] on the device: number of steps of `times` rows, later rows are padding; null: all
  int64_t times;
};

/// Sets the first C + 1 entries of each row of `out`, unless null, and r [N].
void cuda_normalise(const CudaNormalise& task, float* out, float* r, void* stream);

/// Incoming gradients: of the result, as `out`; or of r alone, in `parts` partial sums [parts, N].
struct CudaNormaliseGradient {
  const float* out;
  const float* r;
  int64_t parts;
};

/// Number of partial sums of the gradient of G.
int64_t cuda_normalise_parts(const CudaNormalise& task);
/// grad_x [N, C] unless null; grad_grams [parts, C + 1, C + 1] is set.
void cuda_normalise_backward(const CudaNormalise& task, const CudaNormaliseGradient& grad, const float* r,
                             float* grad_x, float* grad_grams, void* stream);

}  // namespace fastweights::kernels

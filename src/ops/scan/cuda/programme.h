#pragma once

#include "ops/scan/kernel.h"

/// On a GPU: from a signal to features (README.md, section 5), and from the slow net's numbers to what enters
/// the rule. Pointers are of the device, `stream` is a cudaStream_t; a launch that fails throws.

namespace fastweights::kernels {

/// Numbers per time and head, n of them: D of the key, then D of the value if those are among them, then one
/// of the rate. Values from elsewhere stand in `values`.
struct CudaProgramme {
  int64_t rows, heads, width;
  const float* numbers;    // [N, H, 2 D + 1] or [N, H, D + 1]
  const float* values;     // [N, H, D] or null
  const float* mask;       // [B, H, D], factors of the values; or null
  const int64_t* samples;  // [N / times]: whose a row is; null without a mask
  int64_t times;           // rows for each entry of `samples`
  ScanForm key, value, rate;
  const int64_t* steps;  // [1]: steps of `times` rows each that there are, on the device; null: all rows
};

/// k [N, H, D], v [N, H, D], beta [N, H]
struct CudaProgrammeOutput {
  float *k, *v, *beta;
};
void cuda_programme(const CudaProgramme& task, const CudaProgrammeOutput& out, void* stream);

/// `made` is what the forward pass put out, `grads` the gradients of that. Sets those of numbers and values;
/// of rows that are not there to zero.
void cuda_programme_backward(const CudaProgramme& task, const CudaProgrammeOutput& made,
                             const CudaProgrammeOutput& grads, float* grad_numbers, float* grad_values,
                             void* stream);

/// Channels that the kernel has room for, in the 99 KB of shared memory that every device since 8.0 has.
inline constexpr int64_t kCudaNormaliseChannels = 79;

/// x~ r with x~ = [x; 1] and r = 1 / sqrt(x~^T G x~ + eps).
struct CudaNormalise {
  int64_t rows, channels;
  const float* x;      // [N, C]
  const double* gram;  // [C + 1, C + 1]
  double epsilon;
  int64_t out_row;       // numbers from one row of the result to the next
  const int64_t* steps;  // [1]: steps of `times` rows each that there are, on the device; null: all rows
  int64_t times;
};

/// Sets C + 1 numbers of each row of `out`, unless that is null, and r [N].
void cuda_normalise(const CudaNormalise& task, float* out, float* r, void* stream);

/// What is known of gradients: of the result, as `out`; or of r alone, in `parts` partial sums [parts, N].
struct CudaNormaliseGradient {
  const float* out;
  const float* r;
  int64_t parts;
};

/// Partial sums of the gradient of G: so many of them.
int64_t cuda_normalise_parts(const CudaNormalise& task);
/// grad_x [N, C] unless null; grad_grams [parts, C + 1, C + 1] is set.
void cuda_normalise_backward(const CudaNormalise& task, const CudaNormaliseGradient& grad, const float* r,
                             float* grad_x, float* grad_grams, void* stream);

}  // namespace fastweights::kernels

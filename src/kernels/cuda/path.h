#pragma once

#include <cstdint>

#include "kernels/path.h"

/// Paths of a ragged batch on a GPU, float32 with times and arithmetic in float64. What kernels/path.h says
/// of one series holds here for each. Pointers are of the device, `stream` is a cudaStream_t; a launch that
/// fails throws.

namespace fastweights::kernels {

/// Sample b owns rows offsets[b] .. offsets[b + 1] - 1, and one piece fewer.
struct CudaSeries {
  const float* data;       // [rows, channels], NaN where a value is missing
  const double* times;     // [rows]
  const int64_t* offsets;  // [samples + 1]
  int64_t rows, samples, channels;
};

/// Coefficients [rows - samples, terms, channels] of linear and Hermite paths.
void cuda_straight_path(PathKind kind, const CudaSeries& series, float* coefficients, void* stream);

/// Coefficients of natural cubic paths, only of samples first .. first + count - 1; scratch is
/// path_scratch(rows of those samples) * channels.
void cuda_natural_path(PathKind kind, const CudaSeries& series, int64_t first, int64_t count,
                       float* coefficients, double* scratch, void* stream);

/// [2 rows - samples, channels], as rectilinear_knots; times are not read.
void cuda_rectilinear_knots(const CudaSeries& series, int64_t time_channel, float* doubled, void* stream);

/// The last observation of each channel so far; before the first one, the first; 0 if never observed:
/// [rows, channels]. Times are not read.
void cuda_last_observations(const CudaSeries& series, float* out, void* stream);

/// The times at which paths are sampled: sample b owns times offsets[b] .. offsets[b + 1] - 1.
struct CudaPathSample {
  const double* knots;          // [rows]
  const int64_t* knot_offsets;  // [samples + 1]
  const float* coefficients;    // [rows - samples, terms, channels]
  const double* times;          // [count]
  const int64_t* offsets;       // [samples + 1]
  int64_t count, samples, terms, channels;
  float *value, *derivative;  // [count, channels]
};

void cuda_path_sample(const CudaPathSample& task, void* stream);

}  // namespace fastweights::kernels

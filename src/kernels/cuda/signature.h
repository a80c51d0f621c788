#pragma once

#include <cstdint>

#include "kernels/signature.h"

/// Log-signatures of windows on a GPU, of points in float32 and computed in float64.

namespace fastweights::kernels {

/// Pointers of the plan are on the CPU and not read; all others are of the device.
struct CudaSignature {
  SignaturePlan plan;
  const float* points;      // [N, channels]
  const int64_t* first;     // [windows], row of the window's first point
  const int64_t* count;     // [windows], its points
  const int32_t* length;    // [words], as in the plan
  const int32_t* position;  // [words]
  int64_t windows;
  float* out;  // [windows, words]
};

/// Numbers of scratch for a call; 0: blocks have room for a window by themselves.
int64_t cuda_logsignature_scratch(const CudaSignature& task);

/// `stream` is a cudaStream_t; a launch that fails throws.
void cuda_logsignature(const CudaSignature& task, double* scratch, void* stream);

}  // namespace fastweights::kernels

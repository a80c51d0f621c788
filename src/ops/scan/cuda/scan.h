#pragma once

#include "ops/scan/kernel.h"

/// The recurrence on a GPU: every pointer is one of the device, and `stream` is a cudaStream_t. Calls return
/// when the work is queued; a launch that fails throws std::runtime_error. README.md, section 7.

namespace fastweights::kernels {

/// Steps between two matrices that are kept for a backward pass.
inline constexpr int64_t kCudaStretch = 16;

/// The rows and outputs of each sample.
struct CudaSamples {
  const int64_t* offsets;         // [B + 1]: rows
  const int64_t* output_steps;    // [M]: return M after this many steps, rising within each sample
  const int64_t* output_offsets;  // [B + 1]
  int64_t samples;
};

/// What a forward pass leaves for the backward pass; both null where none follows.
struct CudaKept {
  float* phi;  // [R, S, H, D]; of a flow e = s - M p, or s for Hebb's rule
  float* m;    // [cuda_kept_rows, H, D, D]: M after every kCudaStretch steps and after the last one
};

/// Rows of `m` for so many steps of all samples together.
constexpr int64_t cuda_kept_rows(int64_t steps, int64_t samples) { return steps / kCudaStretch + samples; }

/// p, s and beta are given (ScanSource::Given); arrays of features are not looked at.
void cuda_scan_forward(const ScanPlan& plan, const ScanArrays<float>& arrays, const CudaSamples& samples,
                       const CudaKept& kept, void* stream);

/// As scan_backward, but for the gradient of dt, which is [R, H]: one for each head.
void cuda_scan_backward(const ScanPlan& plan, const ScanArrays<float>& arrays, const ScanArrays<float>& grads,
                        const CudaSamples& samples, const CudaKept& kept, void* stream);

/// Sets rows *used .. rows - 1 of x to zero: those that a recorded batch has room for and the present one
/// does not have. The recurrence leaves them alone, and what follows computes with all rows.
void cuda_clear_unused(float* x, int64_t rows, int64_t row_size, const int64_t* used, void* stream);

}  // namespace fastweights::kernels

#pragma once

#include <cuda_runtime.h>

/// Functions in a few instructions, to about 1e-7.

namespace fastweights::kernels::cuda {

// e^2x is 2 to the power of this times x
inline constexpr float kTwoLog2E = 2.88539008f;

// instructions of a GPU; elsewhere, where tests run the same code, what they stand for
__device__ inline float fast_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

__device__ inline float fast_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / x;
#endif
}

__device__ inline float fast_rsqrt(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f / sqrtf(x);
#endif
}

__device__ inline float fast_log2(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return log2f(x);
#endif
}

// tanh of x / kTwoLog2E: 1 - 2 / (e^2x + 1), to about 1e-7
__device__ inline float fast_tanh(float x) {
  return __fmaf_rn(-2.0f, fast_reciprocal(fast_exp2(x) + 1.0f), 1.0f);
}

__device__ inline float fast_sigmoid(float x) {
  return fast_reciprocal(1.0f + fast_exp2(-0.5f * kTwoLog2E * x));
}

}  // namespace fastweights::kernels::cuda

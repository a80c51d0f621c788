#pragma once

#include "ops/scan/cuda/fast.cuh"
#include "ops/scan/kernel.h"

/// A step in closed form (README.md, section 3): psi(e, x), the mean of phi while e' = -phi(e) runs for x,
/// and its derivatives. What depends on x alone is computed once for a step, the rest for each row of M.

namespace fastweights::kernels::cuda {

inline constexpr float kLog2 = 0.69314718f;

struct Decay {
  float x, left;      // left: e^-x
  float mean, slope;  // h(x) = (1 - e^-x) / x, and its derivative
  float inverse;      // 1 / x, not used where x is small
};
__device__ inline Decay decay_of(float x) {
  const float left = expf(-x), inverse = fast_reciprocal(x);
  if (fabsf(x) < 0.5f) {
    // sum over k of (-x)^k / (k + 1)!, and its derivative
    float value = 0, slope = 0;
    constexpr float kTerms[] = {1.0f,        -1.0f / 2,   1.0f / 6,      -1.0f / 24,    1.0f / 120,
                                -1.0f / 720, 1.0f / 5040, -1.0f / 40320, 1.0f / 362880, -1.0f / 3628800};
#pragma unroll
    for (int k = 9; k >= 0; --k) {
      slope = slope * x + value;
      value = value * x + kTerms[k];
    }
    return {x, left, value, slope, inverse};
  }
  const float mean = (1.0f - left) * inverse;
  return {x, left, mean, (left - mean) * inverse, inverse};
}

/// psi, its derivatives with respect to e and x, and phi(e+) = psi + x dpsi/dx.
struct Psi {
  float mean, by_e, by_x, end;
};

// sinh and cosh of e >= 0 and of e+, where sinh(e+) = sinh(e) e^-x. All are divided by e^e: nothing
// overflows.
struct Arc {
  float scale;  // 1 / e^2e
  float sinh, cosh, sinh_end, cosh_end;
  float inverse;  // 1 / cosh_end
};
__device__ inline Arc arc_of(float e, float left) {
  const float root = fast_exp2(-0.5f * kTwoLog2E * e), scale = root * root, e2 = e * e;
  const float series = root * e * (1.0f + e2 * (1.0f / 6 + e2 * (1.0f / 120 + e2 * (1.0f / 5040))));
  const float sinh = e < 0.5f ? series : 0.5f - 0.5f * scale, end = sinh * left;
  const float square = scale + end * end, inverse = fast_rsqrt(square);
  return {scale, sinh, 0.5f + 0.5f * scale, end, square * inverse, inverse};
}

// (e - e+) / x. With z = tanh((e - e+) / 2) it is 2 atanh(z) / x, and z / x does not cancel; a larger way is
// -log(e^e+ / e^e)
__device__ inline float arc_mean(const Arc& a, const Decay& d) {
  const float share = d.mean * a.sinh * fast_reciprocal(a.cosh + a.cosh_end), z = share * d.x;
  const float z2 = z * z, z4 = z2 * z2;
  const float series =
      (1.0f + z2 * (1.0f / 3)) + z4 * ((1.0f / 5 + z2 * (1.0f / 7)) + z4 * (1.0f / 9 + z2 * (1.0f / 11)));
  const float log = -kLog2 * fast_log2(a.sinh_end + a.cosh_end);
  return z2 < 1.0f / 16 ? 2.0f * share * series : log * d.inverse;
}

// from here on tanh(e) is 1, and e^-2e is soon no normal number
inline constexpr float kFar = 40.0f;

// for e > kFar: sinh(e+) = e^(e - x) / 2
__device__ inline Psi far_psi(float e, const Decay& d) {
  const float rest = e - d.x;
  if (rest > 20.0f) return {1.0f, 0.0f, 0.0f, 1.0f};
  const float sinh = 0.5f * fast_exp2(0.5f * kTwoLog2E * rest), square = 1.0f + sinh * sinh;
  const float inverse = fast_rsqrt(square), sum = sinh + square * inverse, end = sinh * inverse;
  const float mean = (e - kLog2 * fast_log2(sum)) * d.inverse;
  return {mean, d.inverse * inverse * fast_reciprocal(sum), (end - mean) * d.inverse, end};
}

__device__ inline float mean_tanh(float e, const Decay& d) {
  const float size = fabsf(e);
  const float mean = size > kFar ? far_psi(size, d).mean : arc_mean(arc_of(size, d.left), d);
  return copysignf(mean, e);
}

// for |e| <= kFar
__device__ inline Psi near_tanh_psi(float e, const Decay& d) {
  const Arc a = arc_of(fabsf(e), d.left);
  const float mean = arc_mean(a, d), end = a.sinh_end * a.inverse;
  const float by_e =
      d.mean * (1.0f + d.left) * (a.scale * a.inverse) * fast_reciprocal(a.cosh_end + a.cosh * d.left);
  // the derivatives of tanh(e) along e' = -tanh(e) give psi's series
  const float t = a.sinh * fast_reciprocal(a.cosh), t2 = t * t;
  const float third = 1.0f / 8 + t2 * (-3.0f / 2 + t2 * (15.0f / 8));
  const float fourth = -1.0f / 30 + t2 * (39.0f / 30 + t2 * (-135.0f / 30 + t2 * (105.0f / 30)));
  const float series = t * (t2 - 1.0f) * (0.5f + d.x * (t2 - 1.0f / 3 + d.x * (third + d.x * fourth)));
  const float by_x = fabsf(d.x) < 0.05f ? series : (end - mean) * d.inverse;
  return {copysignf(mean, e), by_e, copysignf(1.0f, e) * by_x, copysignf(end, e)};
}

__device__ inline Psi far_tanh_psi(float e, const Decay& d) {
  const Psi psi = far_psi(fabsf(e), d);
  const float sign = copysignf(1.0f, e);
  return {sign * psi.mean, psi.by_e, sign * psi.by_x, sign * psi.end};
}

__device__ inline Psi psi_of(ScanPhi phi, float e, const Decay& d) {
  if (phi == ScanPhi::Value) return {e, 1.0f, 0.0f, e};
  if (phi == ScanPhi::Difference) return {d.mean * e, d.mean, d.slope * e, d.left * e};
  return fabsf(e) > kFar ? far_tanh_psi(e, d) : near_tanh_psi(e, d);
}

__device__ inline float mean_of(ScanPhi phi, float e, const Decay& d) {
  return phi == ScanPhi::Value ? e : phi == ScanPhi::Difference ? d.mean * e : mean_tanh(e, d);
}

}  // namespace fastweights::kernels::cuda

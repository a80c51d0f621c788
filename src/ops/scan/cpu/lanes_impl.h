#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/// Numbers of several lanes side by side and functions of them, compiled once for each instruction set inside
/// a namespace of its own: FW_ISA names it. Nothing here may be an inline function of the standard library
/// that the linker could share between those files.

namespace fastweights::kernels::FW_ISA {

// native registers: wider ones are taken apart badly
#if defined(__AVX512F__)
inline constexpr int64_t kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int64_t kVectorBytes = 32;
#else
inline constexpr int64_t kVectorBytes = 16;
#endif

template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  using Pack = float __attribute__((vector_size(kVectorBytes)));
  using Bits = int32_t __attribute__((vector_size(kVectorBytes)));
  static constexpr float kLog2E = 1.44269504f;
  // ln 2 in two parts: products of the first with a small integer are exact
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // adding and subtracting it rounds to an integer
  static constexpr float kRound = 12582912.0f;
  static constexpr int32_t kRoundBits = 0x4B400000;
  static constexpr int kMantissa = 23, kTerms = 7;
  static constexpr float kLargest = 87.0f;
  static constexpr float kTanhLargest = 9.1f;
};

template <>
struct Lanes<double> {
  using Pack = double __attribute__((vector_size(kVectorBytes)));
  using Bits = int64_t __attribute__((vector_size(kVectorBytes)));
  static constexpr double kLog2E = 1.4426950408889634074;
  static constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 6755399441055744.0;
  static constexpr int64_t kRoundBits = 0x4338000000000000;
  static constexpr int kMantissa = 52, kTerms = 13;
  static constexpr double kLargest = 708.0;
  static constexpr double kTanhLargest = 22.0;
};

template <typename T>
using Pack = typename Lanes<T>::Pack;
template <typename T>
inline constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

template <typename T>
inline Pack<T> all(T value) noexcept {
  return Pack<T>{} + value;
}

template <typename T>
inline T& element(Pack<T>* packs, int64_t index, int64_t lane) noexcept {
  return reinterpret_cast<T*>(packs + index)[lane];
}

template <typename T>
inline Pack<T> dot(const Pack<T>* a, const Pack<T>* b, int64_t count) noexcept {
  Pack<T> sum = a[0] * b[0];
  for (int64_t j = 1; j < count; ++j) sum += a[j] * b[j];
  return sum;
}

// b where a or b is not a number. The masks are whole; plain intrinsics warn of uninitialised values.
inline Pack<float> smaller(Pack<float> a, Pack<float> b) noexcept {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xFFFF, a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#elif defined(__SSE2__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

inline Pack<float> larger(Pack<float> a, Pack<float> b) noexcept {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xFFFF, a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

inline Pack<double> smaller(Pack<double> a, Pack<double> b) noexcept { return a < b ? a : b; }
inline Pack<double> larger(Pack<double> a, Pack<double> b) noexcept { return a > b ? a : b; }

// NaN stays
template <typename T>
inline Pack<T> clamp(Pack<T> x, T bound) noexcept {
  return larger(all<T>(-bound), smaller(all<T>(bound), x));
}

inline constexpr double kInverseFactorials[] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// x = n ln 2 + r with |r| <= ln 2 / 2
template <typename T>
struct Reduced {
  Pack<T> scale;  // 2^n
  Pack<T> tail;   // exp(r) - 1, without cancellation
};

template <typename T>
inline Reduced<T> reduce(Pack<T> x) noexcept {
  using L = Lanes<T>;
  const Pack<T> moved = x * L::kLog2E + L::kRound;
  const typename L::Bits n = reinterpret_cast<typename L::Bits>(moved) - L::kRoundBits;
  const Pack<T> whole = moved - L::kRound;
  const Pack<T> r = (x - whole * L::kLn2High) - whole * L::kLn2Low;
  // r + r^2 / 2! + ..., from the smallest term
  Pack<T> sum = all<T>(static_cast<T>(kInverseFactorials[L::kTerms]));
#pragma GCC unroll 16
  for (int k = L::kTerms - 1; k >= 1; --k) sum = sum * r + static_cast<T>(kInverseFactorials[k]);
  const Pack<T> one = all<T>(T{1});
  const typename L::Bits scale = reinterpret_cast<typename L::Bits>(one) + (n << L::kMantissa);
  return {reinterpret_cast<Pack<T>>(scale), sum * r};
}

template <typename T>
inline Pack<T> vector_exp(Pack<T> x) noexcept {
  const Reduced<T> e = reduce<T>(clamp<T>(x, Lanes<T>::kLargest));
  return e.scale * e.tail + e.scale;
}

// e^x - 1
template <typename T>
inline Pack<T> vector_expm1(Pack<T> x) noexcept {
  const Reduced<T> e = reduce<T>(clamp<T>(x, Lanes<T>::kLargest));
  return e.scale * e.tail + (e.scale - T{1});
}

// 1 / x for 1 <= x < 2^100: a division takes longer than a guess and Newton's steps
inline Pack<float> reciprocal(Pack<float> x) noexcept {
#if defined(__AVX512F__)
  const Pack<float> guess = _mm512_maskz_rcp14_ps(0xFFFF, x);
#else
  using Bits = Lanes<float>::Bits;
  Pack<float> guess = reinterpret_cast<Pack<float>>(0x7EF311C7 - reinterpret_cast<Bits>(x));
  guess = guess * (2.0f - x * guess);
  guess = guess * (2.0f - x * guess);
#endif
  return guess + guess * (1.0f - x * guess);
}
inline Pack<double> reciprocal(Pack<double> x) noexcept { return 1.0 / x; }

// (e^2x - 1) / (e^2x + 1), good for small x, too
template <typename T>
inline Pack<T> vector_tanh(Pack<T> x) noexcept {
  const Pack<T> bounded = clamp<T>(x, Lanes<T>::kTanhLargest);
  const Reduced<T> e = reduce<T>(bounded + bounded);
  const Pack<T> minus_one = e.scale * e.tail + (e.scale - T{1});
  return minus_one * reciprocal(minus_one + T{2});
}

template <typename T>
inline Pack<T> vector_sigmoid(Pack<T> x) noexcept {
  return T{1} / (T{1} + vector_exp<T>(-x));
}

inline Pack<float> vector_sqrt_of(Pack<float> x) noexcept {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xFFFF, x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  for (int64_t l = 0; l < kLanes<float>; ++l)
    element<float>(&x, 0, l) = __builtin_sqrtf(element<float>(&x, 0, l));
  return x;
#endif
}

inline Pack<double> vector_sqrt_of(Pack<double> x) noexcept {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_pd(0xFF, x);
#elif defined(__AVX2__)
  return _mm256_sqrt_pd(x);
#elif defined(__SSE2__)
  return _mm_sqrt_pd(x);
#else
  for (int64_t l = 0; l < kLanes<double>; ++l)
    element<double>(&x, 0, l) = __builtin_sqrt(element<double>(&x, 0, l));
  return x;
#endif
}

template <typename T>
inline Pack<T> vector_sqrt(Pack<T> x) noexcept {
  return vector_sqrt_of(x);
}

// log(1 + x) for 0 <= x < 2^60
template <typename T>
inline Pack<T> vector_log1p(Pack<T> x) noexcept {
  using L = Lanes<T>;
  using Bits = typename L::Bits;
  const Pack<T> one = all<T>(T{1}), sum = x + T{1};
  // sum = 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)
  const Bits base = reinterpret_cast<Bits>(all<T>(T(0.70710678118654752)));
  const Bits n = (reinterpret_cast<Bits>(sum) - base) >> L::kMantissa;
  const Pack<T> reduced = reinterpret_cast<Pack<T>>(reinterpret_cast<Bits>(sum) - (n << L::kMantissa));
  const Pack<T> s = (reduced - T{1}) / (reduced + T{1}), square = s * s;
  // log(1 + f) = 2 atanh(s), |s| < 0.172
  constexpr int kOdd = sizeof(T) == sizeof(float) ? 9 : 21;
  Pack<T> series = all<T>(T{1} / T{kOdd});
#pragma GCC unroll 16
  for (int k = kOdd - 2; k >= 1; k -= 2) series = series * square + T{1} / static_cast<T>(k);
  // the digits that were lost in 1 + x
  const Pack<T> lost = (x - (sum - one)) / sum, whole = __builtin_convertvector(n, Pack<T>);
  return whole * L::kLn2High + (T{2} * s * series + (whole * L::kLn2Low + lost));
}

// in place
template <typename T>
inline void vector_softmax(Pack<T>* x, int64_t count) noexcept {
  Pack<T> largest = x[0], sum = Pack<T>{};
  for (int64_t i = 1; i < count; ++i) largest = larger(x[i], largest);
  for (int64_t i = 0; i < count; ++i) {
    x[i] = vector_exp<T>(x[i] - largest);
    sum += x[i];
  }
  const Pack<T> scale = T{1} / sum;
  for (int64_t i = 0; i < count; ++i) x[i] *= scale;
}

}  // namespace fastweights::kernels::FW_ISA

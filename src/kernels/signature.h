#pragma once

#include <array>
#include <cstdint>

/// Signatures and log-signatures of one piecewise linear path, on raw pointers.
/// A truncated tensor series x is stored level by level: x_1 [C], x_2 [C, C], ..., x_N [C, ..., C].

namespace fastweights::kernels {

inline constexpr int64_t kMaxDepth = 5;

enum class SignatureKind { Signature, Logarithm };

/// Sizes, and the words at which the result is read. Filled in once per call by the caller.
struct SignaturePlan {
  SignatureKind kind;
  int64_t channels;
  int64_t depth;
  std::array<int64_t, kMaxDepth + 2> power;  // power[l] = channels^l
  std::array<int64_t, kMaxDepth + 2> start;  // start[l] = position of level l; start[depth + 1] = all entries
  int64_t words;
  const int32_t* length;    // [words]
  const int32_t* position;  // [words], index inside the level
  const int32_t* splits;    // for each word and each cut i = 1 .. length - 1: index of prefix and of suffix

  /// Doubles of scratch that the functions below need; the backward one for a path of this many points.
  int64_t forward_scratch() const;
  int64_t backward_scratch(int64_t points) const;
};

/// Points [count, channels] to coefficients [words].
template <typename T>
void signature(const SignaturePlan& plan, const T* points, int64_t count, T* out, double* scratch) noexcept;

/// Adds the gradient with respect to the points.
template <typename T>
void signature_backward(const SignaturePlan& plan, const T* points, int64_t count, const T* grad_out,
                        T* grad_points, double* scratch) noexcept;

}  // namespace fastweights::kernels

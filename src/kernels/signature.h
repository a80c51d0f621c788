#pragma once

#include <array>
#include <cstdint>

/// Signatures and log-signatures of piecewise linear paths, on raw pointers.
/// A truncated tensor series x is stored level by level: x_1 [C], x_2 [C, C], ..., x_N [C, ..., C].

namespace fastweights::kernels {

inline constexpr int64_t kMaxDepth = 5;

/// Paths that are worked on side by side, one per lane of a vector register.
inline constexpr int64_t kSignatureLanes = 8;

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

  /// Segments between the states that the backward function keeps of a path of this many points.
  int64_t stretch(int64_t points) const;

  /// Doubles of scratch per path; the backward function needs them for the longest path it gets.
  int64_t forward_scratch() const;
  int64_t backward_scratch(int64_t points) const;
};

/// One path: its points [count, channels] and where the coefficients [words] go.
template <typename T>
struct SignatureTask {
  const T* points;
  int64_t count;
  T* out;
};

/// One path with gradients: of the coefficients, and of the points, to which is added.
template <typename T>
struct SignatureBackwardTask {
  const T* points;
  int64_t count;
  const T* grad_out;
  T* grad_points;
};

/// Works on `tasks` paths. If that is more than one, on up to kSignatureLanes of them at a time, and scratch
/// must be that many times as large.
template <typename T>
void signature(const SignaturePlan& plan, const SignatureTask<T>* tasks, int64_t count,
               double* scratch) noexcept;

template <typename T>
void signature_backward(const SignaturePlan& plan, const SignatureBackwardTask<T>* tasks, int64_t count,
                        double* scratch) noexcept;

}  // namespace fastweights::kernels

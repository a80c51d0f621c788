#pragma once

#include <cstdint>

namespace fastweights::kernels {

inline constexpr int64_t kMaxTerms = 16;

/// out = base + sum_j factors[j] terms[j], each [size]; base may be null.
template <typename T>
void weighted_sum(const T* base, const T* const* terms, const T* factors, int64_t count, int64_t size,
                  T* out) noexcept;

}  // namespace fastweights::kernels

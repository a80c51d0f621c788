#include "kernels/weighted_sum.h"

#include <algorithm>

namespace fastweights::kernels {

template <typename T>
void weighted_sum(const T* base, const T* const* terms, const T* factors, int64_t count, int64_t size,
                  T* out) noexcept {
  // blocks that stay in the first-level cache while the terms are added one after another
  constexpr int64_t kBlock = 1024;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, size);
    if (base) {
      std::copy(base + begin, base + end, out + begin);
    } else {
      std::fill(out + begin, out + end, T(0));
    }
    for (int64_t j = 0; j < count; ++j) {
      const T* term = terms[j];
      const T factor = factors[j];
      for (int64_t i = begin; i < end; ++i) out[i] += factor * term[i];
    }
  }
}

template void weighted_sum<float>(const float*, const float* const*, const float*, int64_t, int64_t,
                                  float*) noexcept;
template void weighted_sum<double>(const double*, const double* const*, const double*, int64_t, int64_t,
                                   double*) noexcept;

}  // namespace fastweights::kernels

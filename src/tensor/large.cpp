#include "tensor/large.h"

#include <sys/mman.h>

#include <cstdint>

namespace fastweights {

Tensor empty_large(at::IntArrayRef sizes, const at::TensorOptions& options) {
  constexpr uintptr_t kHugePage = 2 << 20, kWorthwhile = 32 << 20;
  Tensor result = at::empty(sizes, options);
#if defined(MADV_HUGEPAGE)
  if (result.nbytes() >= kWorthwhile) {
    // whole huge pages inside the tensor; a system that refuses changes nothing
    const auto begin = (reinterpret_cast<uintptr_t>(result.data_ptr()) + kHugePage - 1) & ~(kHugePage - 1);
    const auto end = (reinterpret_cast<uintptr_t>(result.data_ptr()) + result.nbytes()) & ~(kHugePage - 1);
    if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return result;
}

}  // namespace fastweights

#include "tensor/parallel.h"

#include <ATen/Parallel.h>

namespace fastweights {

// the only file that needs OpenMP: LibTorch's template is silently serial where it is not switched on
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { body(begin, end); });
}

}  // namespace fastweights

#pragma once

#include <cstdint>
#include <functional>

namespace fastweights {

/// Runs body(begin, end) over parts of [0, count) on LibTorch's threads; a part holds at least `grain` items.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace fastweights

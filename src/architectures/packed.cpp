#include "architectures/packed.h"

#include <algorithm>
#include <numeric>

namespace fastweights {

Packed pack(const Tensor& offsets) {
  const Tensor contiguous = offsets.contiguous();
  const int64_t* o = contiguous.data_ptr<int64_t>();
  const int64_t samples = contiguous.size(0) - 1;
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return o[a + 1] - o[a] > o[b + 1] - o[b]; });
  std::vector<int64_t> packed_to_batch(static_cast<size_t>(o[samples])),
      batch_to_packed(packed_to_batch.size());
  Packed result;
  int64_t active = samples, next = 0;
  for (int64_t n = 0; next < o[samples]; ++n) {
    while (o[order[active - 1] + 1] - o[order[active - 1]] <= n) --active;
    result.begin.push_back(next);
    result.active.push_back(active);
    for (int64_t i = 0; i < active; ++i, ++next) {
      packed_to_batch[next] = o[order[i]] + n;
      batch_to_packed[packed_to_batch[next]] = next;
    }
  }
  result.packed_to_sample = at::tensor(order, at::kLong);
  result.packed_to_batch = at::tensor(packed_to_batch, at::kLong);
  result.batch_to_packed = at::tensor(batch_to_packed, at::kLong);
  return result;
}

std::vector<Tensor> Packed::split(const Tensor& rows) const {
  // autograd looks at all parts of a split whenever it has the gradient of one, so they are few
  constexpr int64_t kParts = 128;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<int64_t> counts;
  for (int64_t n = 0; n < steps(); n += kParts) {
    sizes.emplace_back(active.begin() + n, active.begin() + std::min(n + kParts, steps()));
    counts.push_back(std::accumulate(sizes.back().begin(), sizes.back().end(), int64_t{0}));
  }
  const std::vector<Tensor> blocks = at::split_with_sizes(rows, counts, 0);
  std::vector<Tensor> result;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::vector<Tensor> parts = at::split_with_sizes(blocks[i], sizes[i], 0);
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

}  // namespace fastweights

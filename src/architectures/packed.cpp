#include "architectures/packed.h"

#include <algorithm>
#include <numeric>

#include "tensor/device.h"

namespace fastweights {

Packed pack(const Tensor& offsets, const at::Device& device) {
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
  result.position.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) result.position[order[i]] = static_cast<int64_t>(i);
  result.packed_to_sample = index_on_device(order, device);
  result.packed_to_batch = index_on_device(packed_to_batch, device);
  result.batch_to_packed = index_on_device(batch_to_packed, device);
  return result;
}

Tensor last_packed_rows(const Packed& packed, const Tensor& offsets, const at::Device& device) {
  const int64_t* o = offsets.data_ptr<int64_t>();
  std::vector<int64_t> rows;
  for (int64_t b = 0; b + 1 < offsets.size(0); ++b) rows.push_back(packed.row(b, o[b + 1] - o[b] - 1));
  return index_on_device(rows, device);
}

std::vector<int64_t> selected_rows(const Packed& batch, const std::vector<int64_t>& samples,
                                   const Packed& selected) {
  std::vector<int64_t> order(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) order[selected.position[i]] = samples[i];
  std::vector<int64_t> rows;
  for (int64_t n = 0; n < selected.steps(); ++n) {
    for (int64_t i = 0; i < selected.active[n]; ++i) rows.push_back(batch.row(order[i], n));
  }
  return rows;
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

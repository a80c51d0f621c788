#include "ops/chunkwise.h"

#include <algorithm>
#include <vector>

#include "fastweights/error.h"

namespace fastweights {
namespace {

// Rows in chunks of C: the first chunk of every sample, then the second of all that have one, and so on;
// samples with more chunks stand before others. What is behind the end of a sample is a copy of its last row,
// which changes nothing that anybody reads.
struct Chunks {
  Tensor rows;                 // [G * C] int64: the row that stands at each place
  Tensor places;               // [R] int64: where each row stands
  std::vector<int64_t> going;  // samples that have a chunk c
};

Chunks cut(const Tensor& given, int64_t size) {
  const Tensor offsets = given.contiguous();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t samples = offsets.size(0) - 1;
  std::vector<int64_t> order;
  for (int64_t b = 0; b < samples; ++b) {
    if (o[b + 1] > o[b]) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return o[a + 1] - o[a] > o[b + 1] - o[b]; });
  std::vector<int64_t> rows, places(static_cast<size_t>(o[samples]));
  Chunks result;
  for (int64_t begin = 0; !order.empty(); begin += size) {
    while (!order.empty() && o[order.back() + 1] - o[order.back()] <= begin) order.pop_back();
    if (order.empty()) break;
    result.going.push_back(static_cast<int64_t>(order.size()));
    for (const int64_t b : order) {
      for (int64_t row = o[b] + begin; row < o[b] + begin + size; ++row) {
        if (row < o[b + 1]) places[row] = static_cast<int64_t>(rows.size());
        rows.push_back(std::min(row, o[b + 1] - 1));
      }
    }
  }
  result.rows = at::tensor(rows, at::kLong);
  result.places = at::tensor(places, at::kLong);
  return result;
}

// W at the beginning of each chunk, [G * H, V, K], from W+ = W A + B; without A it is 1
Tensor first_weights(const Chunks& chunks, int64_t heads, const Tensor& a, const Tensor& b) {
  std::vector<int64_t> sizes;
  for (const int64_t going : chunks.going) sizes.push_back(going * heads);
  const std::vector<Tensor> bs = at::split_with_sizes(b, sizes, 0);
  std::vector<Tensor> as;
  if (a.defined()) as = at::split_with_sizes(a, sizes, 0);
  Tensor w = at::zeros({sizes[0], b.size(1), b.size(2)}, b.options().requires_grad(false));
  std::vector<Tensor> result = {w};
  for (size_t c = 0; c + 1 < sizes.size(); ++c) {
    w = a.defined() ? at::baddbmm(bs[c], w, as[c]) : bs[c] + w;
    w = w.narrow(0, 0, sizes[c + 1]);
    result.push_back(w);
  }
  return at::cat(result, 0);
}

}  // namespace

Tensor chunkwise_reads(const RowProgramme& rows, int64_t chunk) {
  FW_CHECK(chunk > 0, "[chunkwise] chunks must have rows, got ", chunk);
  const int64_t heads = rows.k.size(1), width = rows.v.size(2);
  const Tensor lengths = rows.offsets.slice(0, 1) - rows.offsets.slice(0, 0, -1);
  const int64_t size = std::min(chunk, lengths.max().item<int64_t>());
  const Chunks chunks = cut(rows.offsets, size);
  // [R, H, D] to [G * H, C, D]
  const auto in_chunks = [&](const Tensor& x) {
    return x.index_select(0, chunks.rows)
        .view({-1, size, heads, x.size(2)})
        .transpose(1, 2)
        .reshape({-1, size, x.size(2)});
  };
  const Tensor q = in_chunks(rows.q), k = in_chunks(rows.k), v = in_chunks(rows.v);
  const Tensor inside = at::bmm(q, k.transpose(1, 2)).tril();  // [G * H, C, C]
  Tensor y;
  if (rows.beta.defined()) {
    const Tensor beta = in_chunks(rows.beta.unsqueeze(2));
    const Tensor lower = at::bmm(beta * k, k.transpose(1, 2));
    const Tensor both = at::linalg_solve_triangular(lower, beta * at::cat({v, k}, 2), /*upper=*/false,
                                                    /*left=*/true, /*unitriangular=*/true);
    const Tensor u = both.narrow(2, 0, width), p = both.narrow(2, width, k.size(2));
    const Tensor a = at::eye(k.size(2), k.options()) - at::bmm(p.transpose(1, 2), k);
    const Tensor w = first_weights(chunks, heads, a, at::bmm(u.transpose(1, 2), k)).transpose(1, 2);
    y = at::baddbmm(at::bmm(q, w), inside, at::baddbmm(u, p, w, 1, -1));
  } else {
    const Tensor w = first_weights(chunks, heads, {}, at::bmm(v.transpose(1, 2), k)).transpose(1, 2);
    y = at::baddbmm(at::bmm(q, w), inside, v);
  }
  return y.view({-1, heads, size, width})
      .transpose(1, 2)
      .reshape({-1, heads, width})
      .index_select(0, chunks.places);
}

}  // namespace fastweights

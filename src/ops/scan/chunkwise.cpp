#include "ops/scan/chunkwise.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// W at the beginning of each chunk, [G * H, V, K], from W+ = W A + B; without A it is 1
Tensor first_weights(const Chunks& chunks, int64_t heads, const Tensor& a, const Tensor& b) {
  std::vector<int64_t> sizes;
  for (const int64_t active : chunks.active) sizes.push_back(active * heads);
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

// all chunks of all samples and heads: g of W_n = W_{n-1} + g_n k_n^T, and W at the beginning of each
struct Written {
  Tensor g;  // [G * H, C, V]
  Tensor w;  // [G * H, V, K]
};

Written write_delta(const Chunks& chunks, int64_t heads, const Tensor& k, const Tensor& v,
                    const Tensor& beta) {
  const Tensor lower = at::bmm(beta * k, k.transpose(1, 2));
  const Tensor both = at::linalg_solve_triangular(lower, beta * at::cat({v, k}, 2), /*upper=*/false,
                                                  /*left=*/true, /*unitriangular=*/true);
  const Tensor u = both.narrow(2, 0, v.size(2)), p = both.narrow(2, v.size(2), k.size(2));
  const Tensor a = at::eye(k.size(2), k.options().requires_grad(false)) - at::bmm(p.transpose(1, 2), k);
  const Tensor w = first_weights(chunks, heads, a, at::bmm(u.transpose(1, 2), k));
  return {at::baddbmm(u, p, w.transpose(1, 2), 1, -1), w};
}

Written write_sums(const Chunks& chunks, int64_t heads, const Tensor& k, const Tensor& v) {
  return {v, first_weights(chunks, heads, {}, at::bmm(v.transpose(1, 2), k))};
}

// W after some rows: that of their chunk, and what was written in it up to the row
Tensor weights_after(const Tensor& positions, int64_t heads, const Tensor& k, const Written& written) {
  const int64_t size = k.size(1), count = positions.size(0);
  const Tensor chunk = at::div(positions, size, "floor");
  const auto picked = [&](const Tensor& x) {
    return x.view({-1, heads, x.size(1), x.size(2)}).index_select(0, chunk).flatten(0, 1);
  };
  const Tensor row = at::arange(size, positions.options()).unsqueeze(0);
  const Tensor until = row.le(positions.remainder(size).unsqueeze(1)).to(k.scalar_type());  // [M, C]
  const Tensor g = picked(written.g) * until.repeat_interleave(heads, 0).unsqueeze(2);
  const Tensor w = at::baddbmm(picked(written.w), g.transpose(1, 2), picked(k));
  return w.view({count, heads, w.size(1), w.size(2)});
}

}  // namespace

Chunks cut_chunks(const Tensor& given, const at::Device& device, int64_t size) {
  FW_CHECK(size > 0, "[chunkwise] chunks must have rows, got ", size);
  const Tensor offsets = given.contiguous();
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t samples = offsets.size(0) - 1;
  std::vector<int64_t> order;
  int64_t longest = 0;
  for (int64_t b = 0; b < samples; ++b) {
    if (o[b + 1] > o[b]) order.push_back(b);
    longest = std::max(longest, o[b + 1] - o[b]);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return o[a + 1] - o[a] > o[b + 1] - o[b]; });
  std::vector<int64_t> rows, positions(static_cast<size_t>(o[samples]));
  Chunks result;
  result.size = std::min(size, longest);
  for (int64_t begin = 0; !order.empty(); begin += result.size) {
    while (!order.empty() && o[order.back() + 1] - o[order.back()] <= begin) order.pop_back();
    if (order.empty()) break;
    result.active.push_back(static_cast<int64_t>(order.size()));
    for (const int64_t b : order) {
      for (int64_t row = o[b] + begin; row < o[b] + begin + result.size; ++row) {
        if (row < o[b + 1]) positions[row] = static_cast<int64_t>(rows.size());
        rows.push_back(std::min(row, o[b + 1] - 1));
      }
    }
  }
  result.rows = index_on_device(rows, device);
  result.positions = index_on_device(positions, device);
  return result;
}

RowReads chunkwise(const RowProgram& rows, const Chunks& chunks) {
  const int64_t heads = rows.k.size(1), width = rows.v.size(2), size = chunks.size;
  // [R, H, D] to [G * H, C, D]
  const auto in_chunks = [&](const Tensor& x) {
    const Tensor ordered = x.index_select(0, chunks.rows).view({-1, size, heads, x.size(2)});
    return ordered.transpose(1, 2).reshape({-1, size, x.size(2)});
  };
  const Tensor q = in_chunks(rows.q), k = in_chunks(rows.k), v = in_chunks(rows.v);
  const Written written = rows.beta.defined()
                              ? write_delta(chunks, heads, k, v, in_chunks(rows.beta.unsqueeze(2)))
                              : write_sums(chunks, heads, k, v);
  const Tensor inside = at::bmm(q, k.transpose(1, 2)).tril();  // [G * H, C, C]
  const Tensor y = at::baddbmm(at::bmm(q, written.w.transpose(1, 2)), inside, written.g);
  const Tensor ordered = y.view({-1, heads, size, width}).transpose(1, 2).reshape({-1, heads, width});
  RowReads result = {ordered.index_select(0, chunks.positions), {}, "reference"};
  if (rows.outputs.defined())
    result.w = weights_after(chunks.positions.index_select(0, rows.outputs), heads, k, written);
  return result;
}

}  // namespace fastweights

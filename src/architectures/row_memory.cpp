#include "architectures/row_memory.h"

#include "model/output_index.h"

namespace fastweights {
namespace {

constexpr double kSmall = 1e-6;  // as published

// kernels are for the CPU
RowReads reads_of(const RowProgram& rows, const RowOrder& order, Backend backend) {
  return order.chunks ? chunkwise(rows, *order.chunks) : row_scan(rows, backend);
}

}  // namespace

RowReads linear_transformer(const Tensor& projections, const RowOrder& order, Backend backend) {
  const int64_t width = projections.size(2) / 3;
  const std::vector<Tensor> parts = projections.chunk(3, 2);
  // a one after the values puts z below W; a zero after the keys keeps W square, as kernels require
  const Tensor zero =
      at::zeros({projections.size(0), projections.size(1), 1}, projections.options().requires_grad(false));
  const auto key = [&](const Tensor& x) { return at::cat({at::elu(x) + 1, zero}, 2); };
  const RowReads sums = reads_of({key(parts[0]),
                                  key(parts[1]),
                                  at::cat({parts[2], zero + 1}, 2),
                                  {},
                                  order.offsets,
                                  order.outputs,
                                  order.output_offsets},
                                 order, backend);
  const Tensor y = sums.y.narrow(2, 0, width) / (sums.y.narrow(2, width, 1) + kSmall);
  return {y, sums.w.defined() ? sums.w.narrow(2, 0, width).narrow(3, 0, width) : Tensor(), sums.backend};
}

RowReads delta_net(const Tensor& projections, const RowOrder& order, Backend backend) {
  const int64_t width = projections.size(2) / 3;
  const auto part = [&](int64_t i) { return projections.narrow(2, i * width, width); };
  const Tensor beta = at::sigmoid(projections.select(2, 3 * width));
  return reads_of({at::softmax(part(0), -1), at::softmax(part(1), -1), part(2), beta, order.offsets,
                   order.outputs, order.output_offsets},
                  order, backend);
}

// row by row, since what is read at a row is written with at the next
RowReads recurrent_fwp(const Tensor& projections, const RowOrder& order, const Tensor& again) {
  const Packed& packed = order.packed;
  const int64_t heads = projections.size(1), width = projections.size(2) / 3,
                all = heads * projections.size(2);
  const std::vector<Tensor> steps =
      packed.split(projections.view({-1, all}).index_select(0, packed.packed_to_batch));
  const Tensor weight = again.t();
  const auto plain = projections.options().requires_grad(false);
  Tensor w = at::zeros({packed.active[0] * heads, width, width}, plain);
  Tensor y = at::zeros({packed.active[0], heads * width}, plain);
  std::vector<Tensor> reads, picked;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const int64_t active = packed.active[n], lanes = active * heads;
    w = w.narrow(0, 0, lanes);
    const Tensor now = at::addmm(steps[n], at::tanh(y.narrow(0, 0, active)), weight).view({lanes, -1});
    const Tensor qk = at::softmax(now.narrow(1, 0, 2 * width).view({lanes, 2, width}), -1);
    const Tensor q = qk.narrow(1, 0, 1), k = qk.narrow(1, 1, 1);  // [G, 1, h]
    const Tensor beta = at::sigmoid(now.narrow(1, 3 * width, 1)), v = now.narrow(1, 2 * width, width);
    const Tensor g = beta * (v - at::bmm(w, k.transpose(1, 2)).squeeze(2));
    w = at::baddbmm(w, g.unsqueeze(2), k);
    y = at::bmm(w, q.transpose(1, 2)).view({active, -1});
    reads.push_back(y);
    if (order.picked && order.picked->any(n))
      picked.push_back(order.picked->of_step(n, w.view({active, heads, width, width})));
  }
  RowReads result = {
      at::cat(reads, 0).index_select(0, packed.batch_to_packed).view({-1, heads, width}), {}, "reference"};
  if (!picked.empty()) result.w = rows_at(at::cat(picked, 0), order.picked->output_to_picked);
  return result;
}

}  // namespace fastweights

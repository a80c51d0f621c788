#include "systems/row_memory.h"

namespace fastweights {
namespace {

constexpr double kSmall = 1e-6;  // as published

// places among a step's rows that are wanted, step by step
struct RowPicks {
  std::vector<std::vector<int64_t>> places;  // [N]
  Tensor back;                               // [M] int64: from that order to the one asked for

  bool wanted(int64_t n) const { return !places.empty() && !places[n].empty(); }
  Tensor of_step(int64_t n, const Tensor& x) const {
    return x.index_select(0, at::tensor(places[n], at::kLong));
  }
};

RowPicks pick_rows(const Packed& packed, const Tensor& rows) {
  const Tensor places = packed.packed.index_select(0, rows), order = places.argsort();
  const Tensor sorted = places.index_select(0, order).contiguous();
  RowPicks result = {std::vector<std::vector<int64_t>>(packed.going.size()), order.argsort()};
  size_t n = 0;
  for (int64_t i = 0; i < sorted.size(0); ++i) {
    const int64_t place = sorted.data_ptr<int64_t>()[i];
    while (place >= packed.begin[n] + packed.going[n]) ++n;
    result.places[n].push_back(place - packed.begin[n]);
  }
  return result;
}

}  // namespace

RowReads linear_transformer(const Tensor& numbers, const RowOrder& order, Backend backend) {
  const int64_t width = numbers.size(2) / 3;
  const std::vector<Tensor> parts = numbers.chunk(3, 2);
  // a one behind the values puts z below W; a zero behind the keys keeps W square, as kernels have it
  const Tensor more =
      at::zeros({numbers.size(0), numbers.size(1), 1}, numbers.options().requires_grad(false));
  const auto key = [&](const Tensor& x) { return at::cat({at::elu(x) + 1, more}, 2); };
  const RowReads sums = row_scan({key(parts[0]),
                                  key(parts[1]),
                                  at::cat({parts[2], more + 1}, 2),
                                  {},
                                  order.offsets,
                                  order.outputs,
                                  order.output_offsets},
                                 backend);
  const Tensor y = sums.y.narrow(2, 0, width) / (sums.y.narrow(2, width, 1) + kSmall);
  return {y, sums.w.defined() ? sums.w.narrow(2, 0, width).narrow(3, 0, width) : Tensor(), sums.backend};
}

RowReads delta_net(const Tensor& numbers, const RowOrder& order, Backend backend) {
  const int64_t width = numbers.size(2) / 3;
  const auto part = [&](int64_t i) { return numbers.narrow(2, i * width, width); };
  const Tensor beta = at::sigmoid(numbers.select(2, 3 * width));
  return row_scan({at::softmax(part(0), -1), at::softmax(part(1), -1), part(2), beta, order.offsets,
                   order.outputs, order.output_offsets},
                  backend);
}

// row by row, since what is read at a row is written with at the next
RowReads recurrent_fwp(const Tensor& numbers, const RowOrder& order, const Tensor& again) {
  const Packed& packed = order.packed;
  const int64_t heads = numbers.size(1), width = numbers.size(2) / 3, all = heads * numbers.size(2);
  const std::vector<Tensor> steps = packed.split(numbers.view({-1, all}).index_select(0, packed.rows));
  const RowPicks picks = order.outputs.defined() ? pick_rows(packed, order.outputs) : RowPicks();
  const Tensor weight = again.t();
  const auto plain = numbers.options().requires_grad(false);
  Tensor w = at::zeros({packed.going[0] * heads, width, width}, plain);
  Tensor y = at::zeros({packed.going[0], heads * width}, plain);
  std::vector<Tensor> reads, picked;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const int64_t going = packed.going[n], lanes = going * heads;
    w = w.narrow(0, 0, lanes);
    const Tensor now = at::addmm(steps[n], at::tanh(y.narrow(0, 0, going)), weight).view({lanes, -1});
    const Tensor qk = at::softmax(now.narrow(1, 0, 2 * width).view({lanes, 2, width}), -1);
    const Tensor q = qk.narrow(1, 0, 1), k = qk.narrow(1, 1, 1);  // [G, 1, h]
    const Tensor beta = at::sigmoid(now.narrow(1, 3 * width, 1)), v = now.narrow(1, 2 * width, width);
    const Tensor g = beta * (v - at::bmm(w, k.transpose(1, 2)).squeeze(2));
    w = at::baddbmm(w, g.unsqueeze(2), k);
    y = at::bmm(w, q.transpose(1, 2)).view({going, -1});
    reads.push_back(y);
    if (picks.wanted(n)) picked.push_back(picks.of_step(n, w.view({going, heads, width, width})));
  }
  RowReads result = {
      at::cat(reads, 0).index_select(0, packed.packed).view({-1, heads, width}), {}, "reference"};
  if (!picked.empty()) result.w = at::cat(picked, 0).index_select(0, picks.back);
  return result;
}

}  // namespace fastweights

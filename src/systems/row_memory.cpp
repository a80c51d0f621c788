#include "systems/row_memory.h"

#include <algorithm>

#include "fastweights/scan.h"

namespace fastweights {
namespace {

constexpr double kSmall = 1e-6;  // as published

// Kernels do up to 16 recurrences at the price of one, and that price grows with the square of the width.
// Products in chunks cost each of them about the same, so they win where heads are few and wide: from this
// square for each recurrence on, as measured on one series of 100,000 rows.
constexpr double kDeltaSquare = 512, kSumsSquare = 256;

bool chunks_are_faster(const RowProgramme& rows) {
  const Tensor lengths = rows.offsets.slice(0, 1) - rows.offsets.slice(0, 0, -1);
  const int64_t count = rows.k.size(0), heads = rows.k.size(1), width = rows.k.size(2);
  const double side_by_side = static_cast<double>(count * heads) / lengths.max().item<double>();
  const double square = rows.beta.defined() ? kDeltaSquare : kSumsSquare;
  return static_cast<double>(width * width) >= square * std::min(side_by_side, 16.0);
}

ScanInput scan_input(const RowProgramme& rows, const RowOrder& order) {
  const int64_t samples = rows.offsets.size(0) - 1, heads = rows.k.size(1);
  const auto plain = rows.k.options().requires_grad(false);
  ScanInput in;
  in.k = rows.k.unsqueeze(1);
  in.v = rows.v.unsqueeze(1);
  const Tensor rate = rows.beta.defined() ? rows.beta : at::ones({rows.k.size(0), heads}, plain);
  in.beta = rate.unsqueeze(1);
  in.q = rows.q.unsqueeze(1).unsqueeze(1);
  in.dt = at::ones({rows.k.size(0)}, plain);
  in.w0 = at::zeros({samples, heads, rows.v.size(2), rows.k.size(2)}, plain);
  in.offsets = rows.offsets;
  if (rows.outputs.defined()) {
    const Tensor counts = order.output_offsets.slice(0, 1) - order.output_offsets.slice(0, 0, -1);
    in.output_steps = rows.outputs - rows.offsets.slice(0, 0, -1).repeat_interleave(counts) + 1;
    in.output_offsets = order.output_offsets;
  }
  return in;
}

}  // namespace

// a unit step of Euler is the rule itself, and W_n q = W_{n-1} q + W' q
RowReads write_and_read(const RowProgramme& rows, const RowOrder& order, Backend backend) {
  const ScanOptions options = {.rule = rows.beta.defined() ? delta_pre() : hebb(),
                               .method = euler(),
                               .reads = ScanReads::Both,
                               .backend = backend};
  const ScanInput in = scan_input(rows, order);
  if (backend == Backend::Auto && (chunks_are_faster(rows) || !scan_refusal(in, options).empty()))
    return chunkwise(rows);
  const ScanOutput out = scan(in, options);
  return {(out.y + out.dy).view(rows.v.sizes()), rows.outputs.defined() ? out.w : Tensor(), out.backend};
}

namespace {

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
  const RowReads sums = write_and_read(
      {key(parts[0]), key(parts[1]), at::cat({parts[2], more + 1}, 2), {}, order.offsets, order.outputs},
      order, backend);
  const Tensor y = sums.y.narrow(2, 0, width) / (sums.y.narrow(2, width, 1) + kSmall);
  return {y, sums.w.defined() ? sums.w.narrow(2, 0, width).narrow(3, 0, width) : Tensor(), sums.backend};
}

RowReads delta_net(const Tensor& numbers, const RowOrder& order, Backend backend) {
  const int64_t width = numbers.size(2) / 3;
  const auto part = [&](int64_t i) { return numbers.narrow(2, i * width, width); };
  const Tensor beta = at::sigmoid(numbers.select(2, 3 * width));
  return write_and_read(
      {at::softmax(part(0), -1), at::softmax(part(1), -1), part(2), beta, order.offsets, order.outputs},
      order, backend);
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

#include "ops/scan/row_scan.h"

#include <algorithm>

#include "fastweights/scan.h"
#include "ops/scan/chunkwise.h"

namespace fastweights {
namespace {

// Kernels compute up to 16 recurrences at the price of one, which grows with the square of the width.
// Products in chunks cost each recurrence about the same, so they win where heads are few and wide: from this
// square per recurrence, as measured on one series of 100,000 rows.
constexpr double kDeltaSquare = 512, kSumsSquare = 256;

bool chunks_are_faster(const RowProgram& rows) {
  const Tensor lengths = rows.offsets.slice(0, 1) - rows.offsets.slice(0, 0, -1);
  const int64_t count = rows.k.size(0), heads = rows.k.size(1), width = rows.k.size(2);
  const double side_by_side = static_cast<double>(count * heads) / lengths.max().item<double>();
  const double square = rows.beta.defined() ? kDeltaSquare : kSumsSquare;
  return static_cast<double>(width * width) >= square * std::min(side_by_side, 16.0);
}

ScanInput scan_input(const RowProgram& rows) {
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
    const Tensor counts = rows.output_offsets.slice(0, 1) - rows.output_offsets.slice(0, 0, -1);
    in.output_steps = rows.outputs - rows.offsets.slice(0, 0, -1).repeat_interleave(counts) + 1;
    in.output_offsets = rows.output_offsets;
  }
  return in;
}

}  // namespace

// a unit step of Euler is the rule itself, and W_n q = W_{n-1} q + W' q
RowReads row_scan(const RowProgram& rows, Backend backend) {
  const ScanOptions options = {.rule = rows.beta.defined() ? delta_pre() : hebb(),
                               .method = euler(),
                               .reads = ScanReads::Both,
                               .backend = backend};
  const ScanInput in = scan_input(rows);
  if (backend == Backend::Auto && (chunks_are_faster(rows) || !scan_refusal(in, options).empty()))
    return chunkwise(rows, cut_chunks(rows.offsets));
  const ScanOutput out = scan(in, options);
  return {(out.y + out.dy).view(rows.v.sizes()), rows.outputs.defined() ? out.w : Tensor(), out.backend};
}

}  // namespace fastweights

#include "ops/scan/chunkwise.h"

#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights::testing {
namespace {

// three samples, the second one without rows, the third one longer than some chunks
RowProgram some_rows() {
  const int64_t rows = 5 + 0 + 23;
  return {random({rows, 2, 3}, 1),
          at::softmax(random({rows, 2, 3}, 2), -1),
          random({rows, 2, 4}, 3),
          at::sigmoid(random({rows, 2}, 4)),
          at::tensor(at::ArrayRef<int64_t>{0, 5, 5, rows}, at::kLong),
          at::tensor(at::ArrayRef<int64_t>{2, 4, 5, 11, 12, 27}, at::kLong)};
}

// one row after another
RowReads row_by_row(const RowProgram& rows) {
  std::vector<Tensor> ys, ws;
  for (int64_t b = 0; b + 1 < rows.offsets.size(0); ++b) {
    Tensor w = at::zeros({2, 4, 3}, at::kDouble);
    for (int64_t n = rows.offsets[b].item<int64_t>(); n < rows.offsets[b + 1].item<int64_t>(); ++n) {
      const Tensor k = rows.k[n].unsqueeze(-1), v = rows.v[n].unsqueeze(-1);
      const Tensor g = rows.beta.defined() ? rows.beta[n].view({2, 1, 1}) * (v - at::bmm(w, k)) : v;
      w = w + at::bmm(g, k.transpose(1, 2));
      ws.push_back(w);
      ys.push_back(at::bmm(w, rows.q[n].unsqueeze(-1)).squeeze(-1));
    }
  }
  return {at::stack(ys), at::stack(ws).index_select(0, rows.outputs), {}};
}

void expect_rows(RowProgram rows, int64_t chunk) {
  std::vector<Tensor> inputs = {rows.q, rows.k, rows.v};
  if (rows.beta.defined()) inputs.push_back(rows.beta);
  for (Tensor& input : inputs) input.set_requires_grad(true);
  const RowReads expected = row_by_row(rows),
                 got = chunkwise(rows, cut_chunks(rows.offsets, at::kCPU, chunk));
  EXPECT_LT(relative_error(got.y.detach(), expected.y.detach()), 1e-12) << "in chunks of " << chunk;
  EXPECT_LT(relative_error(got.w.detach(), expected.w.detach()), 1e-12) << "in chunks of " << chunk;
  const std::vector<Tensor> loss = {random(got.y.sizes(), 5), random(got.w.sizes(), 6)};
  const std::vector<Tensor> found = vector_jacobian({got.y, got.w}, inputs, loss),
                            right = vector_jacobian({expected.y, expected.w}, inputs, loss);
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LT(relative_error(found[i], right[i]), 1e-12) << "input " << i << " in chunks of " << chunk;
}

TEST(Chunkwise, DeltaRuleIsTheRecurrence) {
  for (const int64_t chunk : {1, 4, 7, 23, 64}) expect_rows(some_rows(), chunk);
}

TEST(Chunkwise, SumsAreTheRecurrence) {
  for (const int64_t chunk : {1, 4, 7, 23, 64}) {
    RowProgram rows = some_rows();
    rows.beta = Tensor();
    expect_rows(rows, chunk);
  }
}

TEST(RowScan, AutomaticTakesKernelsForNarrowHeadsAndChunksForWideOnes) {
  const auto rows_of_width = [](int64_t width) {
    return RowProgram{.q = random({40, 1, width}, 1),
                      .k = at::softmax(random({40, 1, width}, 2), -1),
                      .v = random({40, 1, width}, 3),
                      .beta = at::sigmoid(random({40, 1}, 4)),
                      .offsets = at::tensor({0, 40}, at::kLong)};
  };
  for (const int64_t width : {4, 32}) {
    const RowProgram rows = rows_of_width(width);
    const RowReads automatic = row_scan(rows, Backend::Auto), kernels = row_scan(rows, Backend::Cpu);
    EXPECT_EQ(automatic.backend, width == 4 ? kernels.backend : "reference");
    EXPECT_LT(relative_error(automatic.y, kernels.y), 1e-12) << width;
  }
}

TEST(Chunkwise, ChunksWithoutRowsAreRefused) {
  EXPECT_EQ(error_message([] { cut_chunks(some_rows().offsets, at::kCPU, 0); }),
            "[chunkwise] chunks must have rows, got 0");
}

}  // namespace
}  // namespace fastweights::testing

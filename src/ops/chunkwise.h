#pragma once

#include <string>

#include "fastweights/tensor.h"

/// Fast weights that are written at every row of a series, chunk by chunk: matrix products inside of chunks
/// of rows, and one step from chunk to chunk. With W_0 = 0, at every row n
///
///     W_n = W_{n-1} + beta_n (v_n - W_{n-1} k_n) k_n^T    or, without beta,    W_n = W_{n-1} + v_n k_n^T
///     y_n = W_n q_n
///
/// src/ops/scan/README.md derives it.

namespace fastweights {

/// R rows are those of all samples, one after another: sample b owns offsets[b] .. offsets[b + 1] - 1.
struct RowProgramme {
  Tensor q, k;     // [R, H, K]
  Tensor v;        // [R, H, V]
  Tensor beta;     // [R, H], or undefined
  Tensor offsets;  // [B + 1] int64
  Tensor outputs;  // [M] int64: rows behind which W is wanted, or none
};

struct RowReads {
  Tensor y;             // [R, H, V]
  Tensor w;             // [M, H, V, K], if asked for
  std::string backend;  ///< that ran
};

/// Differentiable with respect to q, k, v and beta.
RowReads chunkwise(const RowProgramme& rows, int64_t chunk = 64);

}  // namespace fastweights

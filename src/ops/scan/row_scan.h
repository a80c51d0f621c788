#pragma once

#include <string>

#include "fastweights/tensor.h"

/// Fast weights that are written and read at every row of a series. With W_0 = 0, at every row n
///
///     W_n = W_{n-1} + beta_n (v_n - W_{n-1} k_n) k_n^T    or, without beta,    W_n = W_{n-1} + v_n k_n^T
///     y_n = W_n q_n

namespace fastweights {

/// R rows are those of all samples, one after another: sample b owns offsets[b] .. offsets[b + 1] - 1.
struct RowProgram {
  Tensor q, k;                 // [R, H, K]
  Tensor v;                    // [R, H, V]
  Tensor beta;                 // [R, H], or undefined
  Tensor offsets;              // [B + 1] int64
  Tensor outputs = {};         // [M] int64, rising: rows after which W is requested, or undefined
  Tensor output_offsets = {};  // [B + 1] int64: the outputs of each sample
};

struct RowReads {
  Tensor y;             // [R, H, V]
  Tensor w;             // [M, H, V, K], if requested
  std::string backend;  ///< that ran
};

/// Differentiable with respect to q, k, v and beta. Backend::Auto takes the kernels of `scan` or products in
/// chunks of rows, whichever is faster.
RowReads row_scan(const RowProgram& rows, Backend backend);

}  // namespace fastweights

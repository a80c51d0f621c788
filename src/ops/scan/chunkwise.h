#pragma once

#include <vector>

#include "ops/scan/row_scan.h"

/// Rows chunk by chunk: matrix products inside chunks, and one step from chunk to chunk (README.md, section
/// 9).

namespace fastweights {

/// Rows in chunks: the first chunk of every sample, then the second of all that have one, and so on; samples
/// with more chunks come first. The last chunk of a sample is padded with copies of its last row, which no
/// result reads: their gradient is zero.
struct Chunks {
  int64_t size = 0;             // C, rows of a chunk
  Tensor rows;                  // [G * C] int64: from chunks to rows
  Tensor positions;             // [R] int64: from rows to chunks
  std::vector<int64_t> active;  // samples that have a chunk c
};

/// Chunks of at most `size` rows. offsets [B + 1] are on the CPU, the positions on the device.
Chunks cut_chunks(const Tensor& offsets, const at::Device& device = at::kCPU, int64_t size = 64);

/// Differentiable with respect to q, k, v and beta, on any device. RowProgram::outputs are on it, too.
RowReads chunkwise(const RowProgram& rows, const Chunks& chunks);

}  // namespace fastweights

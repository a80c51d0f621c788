#pragma once

#include "ops/scan/row_scan.h"

/// Rows chunk by chunk: matrix products inside chunks, and one step from chunk to chunk (README.md, section
/// 9).

namespace fastweights {

/// `chunk`: rows per chunk. Differentiable with respect to q, k, v and beta.
RowReads chunkwise(const RowProgram& rows, int64_t chunk = 64);

}  // namespace fastweights

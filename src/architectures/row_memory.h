#pragma once

#include <optional>

#include "architectures/rows.h"
#include "ops/scan/chunkwise.h"

/// Fast weights that are written and read at every row. The projections of the slow net are
/// [R, H, 3 h + 1]: q, k, v of a head and b of its rate, or [R, H, 3 h] for sums of outer products, which
/// have no rate.

namespace fastweights {

/// Rows of a batch, one sample after another. Offsets are on the CPU, positions on the device of the rows.
struct RowOrder {
  const Packed& packed;
  Tensor offsets;                         // [B + 1] int64
  Tensor outputs = {};                    // [M] int64: rows after which W is requested, or undefined ...
  Tensor output_offsets = {};             // [B + 1] int64: ... for each sample
  std::optional<PickedRows> picked = {};  // the same rows in packed order
  std::optional<Chunks> chunks = {};      // in which a GPU computes
};

RowReads linear_transformer(const Tensor& projections, const RowOrder& order, Backend backend);
RowReads delta_net(const Tensor& projections, const RowOrder& order, Backend backend);
/// again [H (3 h + 1), H h]: what the slow net makes of tanh(y) of the row before.
RowReads recurrent_fwp(const Tensor& projections, const RowOrder& order, const Tensor& again);

}  // namespace fastweights

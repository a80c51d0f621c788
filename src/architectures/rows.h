#pragma once

#include "architectures/baseline.h"
#include "architectures/packed.h"

/// Series as discrete architectures read them: row by row.

namespace fastweights {

/// All rows of a batch in packed order. Times are in units of time_unit.
struct RowData {
  Packed packed;
  Tensor values;    // [R, C]: missing ones filled as the control says
  Tensor mask;      // [R, C]: 1 where a value was observed
  Tensor observed;  // [R] bool: whether any was, of channels that are not always known
  Tensor gap;       // [R, 1]: time since the sample's row before; 0 at its first
  Tensor since;     // [R, 1]: time since the sample's last row before this one in which anything was observed

  /// [R, 1 + 2 C]: gap, values and mask.
  Tensor input() const { return at::cat({gap, values, mask}, 1); }
};

RowData make_rows(const SharedOptions& config, const RaggedSeries& series);

/// Positions of outputs among the rows.
struct OutputRows {
  Tensor packed_rows;  // [M] int64: the packed row at or before each output
  Tensor elapsed;      // [M, 1]: time from that row to the output
};

OutputRows output_rows(const SharedOptions& config, const CheckedInput& input, const RowData& rows);

}  // namespace fastweights

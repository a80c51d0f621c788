#pragma once

#include "architectures/baseline.h"
#include "architectures/packed.h"

/// Series as discrete architectures read them: row by row.

namespace fastweights {

/// All rows of a batch in packed order, on the device of the network. Times are in units of time_unit.
struct RowData {
  Packed packed;
  Tensor input;     // [R, 1 + 2 C]: gap, values and mask
  Tensor gap;       // [R, 1]: time since the sample's row before; 0 at its first
  Tensor since;     // [R, 1]: time since the sample's last row before this one in which anything was observed
  Tensor observed;  // [R] bool: whether any was, of channels that are not always known

  int64_t channels() const { return (input.size(1) - 1) / 2; }
  /// [R, C]: missing ones filled as the control says.
  Tensor values() const { return input.narrow(1, 1, channels()); }
  /// [R, C]: 1 where a value was observed.
  Tensor mask() const { return input.narrow(1, 1 + channels(), channels()); }
};

/// The series is on the CPU.
RowData make_rows(const SharedOptions& config, const RaggedSeries& series, const at::Device& device);

/// The rows of some samples; offsets [B + 1] on the CPU: the rows of each of them.
RowData select_samples(const RowData& rows, const std::vector<int64_t>& samples, const Tensor& offsets);

/// Positions of outputs among the rows.
struct OutputRows {
  std::vector<int64_t> on_cpu;  // [M]: the packed row at or before each output
  Tensor packed_rows;           // [M] int64: the same on the device
  Tensor elapsed;               // [M, 1]: time from that row to the output
};

/// Times of rows and outputs are on the CPU.
OutputRows output_rows(double time_unit, const RaggedTimes& times, const RaggedTimes& requested,
                       const RowData& rows);

/// Some rows of all packed rows, step by step.
struct PickedRows {
  Tensor rows;                 // [K] int64: positions among the rows of their step
  std::vector<int64_t> begin;  // [N + 1]: the first of each step
  Tensor output_to_picked;     // [M] int64

  bool any(int64_t n) const { return begin[n + 1] > begin[n]; }
  /// Those of step n, of x [active, ...].
  Tensor of_step(int64_t n, const Tensor& x) const {
    return x.index_select(0, rows.narrow(0, begin[n], begin[n + 1] - begin[n]));
  }
};

/// The rows that outputs read, each once.
PickedRows picked_rows(const Packed& packed, const std::vector<int64_t>& packed_rows,
                       const at::Device& device);

}  // namespace fastweights

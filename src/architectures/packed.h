#pragma once

#include <cstdint>
#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

/// Rows of a ragged batch in the order in which a recurrence goes through them: the first row of every
/// sample, then the second of all that have one, and so on. Samples with more rows stand before others, so
/// that those with a row n are the first active[n] of them.
struct Packed {
  // on the device of the rows
  Tensor packed_to_sample;  // [B] int64: samples in packed order
  Tensor packed_to_batch;   // [R] int64: the row of the batch of each packed row
  Tensor batch_to_packed;   // [R] int64: the inverse, the packed row of each row of the batch
  // on the CPU
  std::vector<int64_t> active;    // [N]: samples that have a row n
  std::vector<int64_t> begin;     // [N]: the first packed row of step n
  std::vector<int64_t> position;  // [B]: of each sample in packed order

  int64_t steps() const { return static_cast<int64_t>(active.size()); }
  /// The packed row of row n of a sample.
  int64_t row(int64_t sample, int64_t n) const { return begin[n] + position[sample]; }
  /// Rows of step n of a tensor in packed order.
  Tensor step(const Tensor& rows, int64_t n) const { return rows.narrow(0, begin[n], active[n]); }
  /// Rows of all steps. The gradient of one that is taken alone by step() is as long as that of all.
  std::vector<Tensor> split(const Tensor& rows) const;
};

/// offsets [B + 1] int64 on the CPU: rows of each sample.
Packed pack(const Tensor& offsets, const at::Device& device = at::kCPU);

/// The packed row of each sample's last row: [B] int64.
Tensor last_packed_rows(const Packed& packed, const Tensor& offsets, const at::Device& device);

/// For samples that are selected from a batch: the packed row of the batch for each of their packed rows,
/// [R'] on the CPU.
std::vector<int64_t> selected_rows(const Packed& batch, const std::vector<int64_t>& samples,
                                   const Packed& selected);

}  // namespace fastweights

#pragma once

#include <optional>
#include <vector>

#include "fastweights/task.h"

namespace fastweights {

inline Tensor int64_tensor(const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); }

/// Rows of some samples, one sample after another.
struct Rows {
  std::vector<int64_t> index;          // [R]: rows of the whole set
  std::vector<int64_t> offsets = {0};  // [B + 1]
};

/// offsets [B + 1] of the whole set
Rows rows_of(at::IntArrayRef offsets, const std::vector<int64_t>& samples);

/// Rows of a batch at which outputs are requested.
struct RequestedRows {
  Tensor index;    // [M] int64
  Tensor offsets;  // [B + 1] int64
};

/// An error unless the horizon is a fraction or a number of rows.
void check_horizon(const TaskConfig& config);

/// Rows as a task gives them to a model.
struct TaskRows {
  Rows rows;
  Tensor values;                              // [R, C] float32, without the values that are held out
  Tensor times;                               // [R] float64: of the data
  Tensor held_out = {};                       // [M, C] float32, or undefined
  std::optional<RequestedRows> outputs = {};  // absent: one output at the end of each series
};

/// `seed` and the index of a series in its set choose the values that imputation holds out.
TaskRows task_rows(const PreparedData& data, const TaskConfig& task, const std::vector<int64_t>& samples,
                   uint64_t seed, Targets targets);

}  // namespace fastweights

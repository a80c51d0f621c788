#pragma once

#include <vector>

#include "fastweights/tensor.h"

/// States at outputs, picked from the states that a solve kept.

namespace fastweights {

/// An output lies at one of the kept rows, or on a straight line between two.
struct OutputPosition {
  int64_t left = 0, right = 0;
  double fraction = 0;
};

struct OutputIndex {
  Tensor left, right;  // [M] int64
  Tensor fraction;     // [M]; it and `right` are undefined if all outputs lie at rows
};

/// On a device, with fractions of the type of the states.
OutputIndex make_output_index(const std::vector<OutputPosition>& positions, const at::Device& device,
                              at::ScalarType type);

/// Rows of x [R, ...]. Gradients of rows that are used more than once are added in a fixed order.
Tensor rows_at(const Tensor& x, const Tensor& index);

/// States [M, ...] at the outputs from kept states [R, ...].
Tensor at_outputs(const Tensor& states, const OutputIndex& index);

}  // namespace fastweights

#pragma once

#include "architectures/baseline.h"
#include "architectures/packed.h"

namespace fastweights {

/// A gated recurrent unit, as PyTorch has it. Of an input x and a state h:
///
///     r = sigmoid(x_r + h_r),  z = sigmoid(x_z + h_z),  n = tanh(x_n + r h_n),  h+ = (1 - z) n + z h
///
/// where x_* = input(x) and h_* = state(h), each 3 d wide. Inputs of all rows are projected at once.
struct GruCell {
  nn::Linear input, state;

  Tensor operator()(const Tensor& projected, const Tensor& h) const;
};
/// Initial values as PyTorch's cells have them, all within 1 / sqrt(d).
GruCell make_gru_cell(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make);

/// States after all rows [R, d], from inputs [R, E] in packed order and first states [B, d] in their order.
Tensor gru_states(const GruCell& cell, const Packed& packed, const Tensor& input, const Tensor& first);

/// A layer whose weights and biases are uniform within 1 / sqrt(d).
nn::Linear make_cell_layer(const std::string& name, int64_t inputs, int64_t outputs, int64_t size,
                           nn::ParameterMaker& make);

}  // namespace fastweights

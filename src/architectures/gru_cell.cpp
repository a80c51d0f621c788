#include "architectures/gru_cell.h"

#include <cmath>

namespace fastweights {

Tensor GruCell::operator()(const Tensor& projected, const Tensor& h) const {
  const int64_t d = h.size(1);
  const Tensor own = linear(state, h);
  const Tensor gates = at::sigmoid(projected.narrow(1, 0, 2 * d) + own.narrow(1, 0, 2 * d));
  const Tensor candidate =
      at::tanh(projected.narrow(1, 2 * d, d) + gates.narrow(1, 0, d) * own.narrow(1, 2 * d, d));
  return candidate + gates.narrow(1, d, d) * (h - candidate);
}

nn::Linear make_cell_layer(const std::string& name, int64_t inputs, int64_t outputs, int64_t size,
                           nn::ParameterMaker& make) {
  const double bound = 1 / std::sqrt(static_cast<double>(size));
  const Tensor weight = make.uniform(name + ".weight", {outputs, inputs}, bound);
  return {weight, make.uniform(name + ".bias", {outputs}, bound)};
}

GruCell make_gru_cell(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make) {
  const nn::Linear input = make_cell_layer(name + ".input", inputs, 3 * size, size, make);
  return {input, make_cell_layer(name + ".state", size, 3 * size, size, make)};
}

Tensor gru_states(const GruCell& cell, const Packed& packed, const Tensor& input, const Tensor& first) {
  const std::vector<Tensor> projected = packed.split(linear(cell.input, input));
  Tensor h = first;
  std::vector<Tensor> states;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    h = cell(projected[n], h.narrow(0, 0, packed.active[n]));
    states.push_back(h);
  }
  return at::cat(states, 0);
}

}  // namespace fastweights

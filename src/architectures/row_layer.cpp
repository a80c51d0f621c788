#include "architectures/row_layer.h"

#include <cmath>

#include "architectures/gru_cell.h"

namespace fastweights {
namespace {

// An LSTM. Of an input x and a state h, c:
//
//     i, f, o = sigmoid(x_* + h_*),  g = tanh(x_g + h_g),  c+ = f c + i g,  h+ = o tanh(c+)
struct LstmCell {
  nn::Linear input, state;  // to i, f, o, g
};

Tensor lstm_states(const LstmCell& cell, const Packed& packed, const Tensor& input, Tensor h) {
  const std::vector<Tensor> projected = packed.split(linear(cell.input, input));
  const int64_t d = h.size(1);
  Tensor c = at::zeros_like(h);
  std::vector<Tensor> states;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const int64_t active = packed.active[n];
    const Tensor preactivations = projected[n] + linear(cell.state, h.narrow(0, 0, active));
    const Tensor gates = at::sigmoid(preactivations.narrow(1, 0, 3 * d)),
                 g = at::tanh(preactivations.narrow(1, 3 * d, d));
    c = gates.narrow(1, d, d) * c.narrow(0, 0, active) + gates.narrow(1, 0, d) * g;
    h = gates.narrow(1, 2 * d, d) * at::tanh(c);
    states.push_back(h);
  }
  return at::cat(states, 0);
}

// Long expressive memory (Rusch et al. 2022). Of an input u and a state y, z:
//
//     a = sigmoid(W1 y + V1 u + b1),  b = sigmoid(W2 y + V2 u + b2)
//     z+ = (1 - a) z + a tanh(Wz y + Vz u + bz)
//     y+ = (1 - b) y + b tanh(Wy z+ + Vy u + by)
struct LemCell {
  nn::Linear input;  // V1, V2, Vz, Vy
  Tensor from_y;     // [3 d, d]: W1, W2, Wz
  Tensor from_z;     // [d, d]: Wy
};

Tensor lem_states(const LemCell& cell, const Packed& packed, const Tensor& input, Tensor y) {
  const int64_t d = y.size(1);
  const Tensor projected = linear(cell.input, input);
  const std::vector<Tensor> for_y = packed.split(projected.narrow(1, 0, 3 * d)),
                            for_z = packed.split(projected.narrow(1, 3 * d, d));
  const Tensor from_y = cell.from_y.t(), from_z = cell.from_z.t();
  Tensor z = at::zeros(y.sizes(), projected.options().requires_grad(false));
  std::vector<Tensor> states;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    y = y.narrow(0, 0, packed.active[n]);
    z = z.narrow(0, 0, packed.active[n]);
    const Tensor preactivations = at::addmm(for_y[n], y, from_y);
    const std::vector<Tensor> times = at::sigmoid(preactivations.narrow(1, 0, 2 * d)).chunk(2, 1);
    z = at::lerp(z, at::tanh(preactivations.narrow(1, 2 * d, d)), times[0]);
    y = at::lerp(y, at::tanh(at::addmm(for_z[n], z, from_z)), times[1]);
    states.push_back(y);
  }
  return at::cat(states, 0);
}

}  // namespace

RowLayer make_gru_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make) {
  return [cell = make_gru_cell(name, inputs, size, make)](const Packed& packed, const Tensor& input,
                                                          const Tensor& first) {
    return gru_states(cell, packed, input, first);
  };
}

RowLayer make_lstm_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make) {
  const nn::Linear input = make_cell_layer(name + ".input", inputs, 4 * size, size, make);
  const LstmCell cell = {input, make_cell_layer(name + ".state", size, 4 * size, size, make)};
  return [cell](const Packed& packed, const Tensor& rows, const Tensor& first) {
    return lstm_states(cell, packed, rows, first);
  };
}

RowLayer make_lem_layer(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make) {
  const nn::Linear input = make_cell_layer(name + ".input", inputs, 4 * size, size, make);
  const double bound = 1 / std::sqrt(static_cast<double>(size));
  const Tensor from_y = make.uniform(name + ".from_y.weight", {3 * size, size}, bound);
  const LemCell cell = {input, from_y, make.uniform(name + ".from_z.weight", {size, size}, bound)};
  return [cell](const Packed& packed, const Tensor& rows, const Tensor& first) {
    return lem_states(cell, packed, rows, first);
  };
}

}  // namespace fastweights

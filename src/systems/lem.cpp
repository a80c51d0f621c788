#include <cmath>

#include "fastweights/error.h"
#include "systems/gru_cell.h"
#include "systems/rows.h"

/// Long expressive memory (Rusch et al. 2022) over rows u of gap, values and mask, layer upon layer:
///
///     a = sigmoid(W1 y + V1 u + b1),  b = sigmoid(W2 y + V2 u + b2)
///     z+ = (1 - a) z + a tanh(Wz y + Vz u + bz)
///     y+ = (1 - b) y + b tanh(Wy z+ + Vy u + by)

namespace fastweights {
namespace {

struct LemLayer {
  nn::Linear input;  // V1, V2, Vz, Vy
  Tensor from_y;     // [3 d, d]: W1, W2, Wz
  Tensor from_z;     // [d, d]: Wy
};

LemLayer make_layer(const std::string& name, int64_t inputs, int64_t d, nn::ParameterMaker& make) {
  const nn::Linear input = make_cell_layer(name + ".input", inputs, 4 * d, d, make);
  const double bound = 1 / std::sqrt(static_cast<double>(d));
  const Tensor from_y = make.uniform(name + ".from_y.weight", {3 * d, d}, bound);
  return {input, from_y, make.uniform(name + ".from_z.weight", {d, d}, bound)};
}

// y behind all rows, [R, d] from inputs [R, E], all in packed order; y is that before the first row
Tensor go_through(const LemLayer& layer, const Packed& packed, const Tensor& input, Tensor y) {
  const int64_t d = y.size(1);
  const Tensor projected = linear(layer.input, input);
  const std::vector<Tensor> for_y = packed.split(projected.narrow(1, 0, 3 * d)),
                            for_z = packed.split(projected.narrow(1, 3 * d, d));
  const Tensor from_y = layer.from_y.t(), from_z = layer.from_z.t();
  Tensor z = at::zeros(y.sizes(), projected.options().requires_grad(false));
  std::vector<Tensor> states;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    y = y.narrow(0, 0, packed.going[n]);
    z = z.narrow(0, 0, packed.going[n]);
    const Tensor numbers = at::addmm(for_y[n], y, from_y);
    const std::vector<Tensor> times = at::sigmoid(numbers.narrow(1, 0, 2 * d)).chunk(2, 1);
    z = at::lerp(z, at::tanh(numbers.narrow(1, 2 * d, d)), times[0]);
    y = at::lerp(y, at::tanh(at::addmm(for_z[n], z, from_z)), times[1]);
    states.push_back(y);
  }
  return at::cat(states, 0);
}

class Lem : public ComparedSystem {
 public:
  Lem(const ModelConfig& config, const ModelOptions& options) {
    nn::ParameterMaker make(options.seed, options.type);
    int64_t width = 1 + 2 * config.channels;
    for (int64_t l = 0; l < config.layers; ++l) {
      layers_.push_back(make_layer(message("layers.", l), width, config.hidden_size, make));
      width = config.hidden_size;
    }
    static_ = make_static_net(config, config.hidden_size, make);
    head_ = make.linear("head", config.hidden_size, config.outputs);
    parameters_ = make.parameters();
  }

  ModelOutput forward(const ModelConfig& config, const ModelInput& input,
                      const ForwardOptions& options) const override {
    const CheckedInput checked = check_system_input(config, type(), input);
    const RowData rows = make_rows(config, checked.series);
    const Packed& packed = rows.packed;
    Tensor states = rows.input();
    const Tensor zeros =
        at::zeros({packed.going[0], config.hidden_size}, states.options().requires_grad(false));
    for (size_t l = 0; l < layers_.size(); ++l) {
      const bool told = l == 0 && static_;
      const Tensor y = told ? (*static_)(checked.static_features).index_select(0, packed.samples) : zeros;
      states = go_through(layers_[l], packed, states, y);
    }
    const OutputRows outputs = output_rows(config, checked, rows);
    ModelOutput result = read_states(config, options, head_, checked, states.index_select(0, outputs.rows));
    result.steps = packed.steps();
    return result;
  }

 private:
  std::vector<LemLayer> layers_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_lem(const ModelConfig& config, const ModelOptions& options) {
  return std::make_shared<Lem>(config, options);
}

}  // namespace fastweights

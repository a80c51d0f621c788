#include "fastweights/error.h"
#include "systems/gru_cell.h"
#include "systems/rows.h"

/// GRU and LSTM over rows of gap, values and mask, layer upon layer. The LSTM of an input x and a state h, c:
///
///     i, f, o = sigmoid(x_* + h_*),  g = tanh(x_g + h_g),  c+ = f c + i g,  h+ = o tanh(c+)

namespace fastweights {
namespace {

struct Cell {
  nn::Linear input, state;
};

// states behind all rows, [R, d] from inputs [R, E], all in packed order
Tensor lstm_layer(const Cell& cell, const Packed& packed, const Tensor& input, Tensor h) {
  const std::vector<Tensor> projected = packed.split(linear(cell.input, input));
  const int64_t d = h.size(1);
  Tensor c = at::zeros_like(h);
  std::vector<Tensor> states;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const int64_t going = packed.going[n];
    const Tensor numbers = projected[n] + linear(cell.state, h.narrow(0, 0, going));
    const Tensor gates = at::sigmoid(numbers.narrow(1, 0, 3 * d)), g = at::tanh(numbers.narrow(1, 3 * d, d));
    c = gates.narrow(1, d, d) * c.narrow(0, 0, going) + gates.narrow(1, 0, d) * g;
    h = gates.narrow(1, 2 * d, d) * at::tanh(c);
    states.push_back(h);
  }
  return at::cat(states, 0);
}

class Recurrent : public ComparedSystem {
 public:
  Recurrent(const ModelConfig& config, const ModelOptions& options) {
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size, numbers = (config.system == System::Gru ? 3 : 4) * d;
    int64_t width = 1 + 2 * config.channels;
    for (int64_t l = 0; l < config.layers; ++l) {
      const std::string name = message("layers.", l);
      const nn::Linear input = make_cell_layer(name + ".input", width, numbers, d, make);
      cells_.push_back({input, make_cell_layer(name + ".state", d, numbers, d, make)});
      width = d;
    }
    static_ = make_static_net(config, d, make);
    head_ = make.linear("head", d, config.outputs);
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
    for (size_t l = 0; l < cells_.size(); ++l) {
      const bool told = l == 0 && static_;
      const Tensor h = told ? (*static_)(checked.static_features).index_select(0, packed.samples) : zeros;
      states = config.system == System::Gru
                   ? gru_states({cells_[l].input, cells_[l].state}, packed, states, h)
                   : lstm_layer(cells_[l], packed, states, h);
    }
    const OutputRows outputs = output_rows(config, checked, rows);
    ModelOutput result = read_states(config, options, head_, checked, states.index_select(0, outputs.rows));
    result.steps = packed.steps();
    return result;
  }

 private:
  std::vector<Cell> cells_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_recurrent(const ModelConfig& config, const ModelOptions& options) {
  return std::make_shared<Recurrent>(config, options);
}

}  // namespace fastweights

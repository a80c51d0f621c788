#include "fastweights/error.h"
#include "systems/row_layer.h"
#include "systems/rows.h"

/// GRU, LSTM and LEM over rows of gap, values and mask, layer upon layer.

namespace fastweights {
namespace {

RowLayer make_layer(System system, const std::string& name, int64_t inputs, int64_t size,
                    nn::ParameterMaker& make) {
  if (system == System::Gru) return make_gru_layer(name, inputs, size, make);
  if (system == System::Lstm) return make_lstm_layer(name, inputs, size, make);
  return make_lem_layer(name, inputs, size, make);
}

class Recurrent : public ComparedSystem {
 public:
  Recurrent(const ModelConfig& config, const ModelOptions& options) {
    nn::ParameterMaker make(options.seed, options.type);
    int64_t width = 1 + 2 * config.channels;
    for (int64_t l = 0; l < config.layers; ++l) {
      layers_.push_back(make_layer(config.system, message("layers.", l), width, config.hidden_size, make));
      width = config.hidden_size;
    }
    static_ = make_static_net(config, config.hidden_size, make);
    head_ = make.linear("head", config.hidden_size, config.outputs);
    parameters_ = make.parameters();
  }

  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<Recurrent>(*this); }

  ModelOutput forward(const ModelConfig& config, const CheckedInput& checked,
                      const ForwardOptions& options) const override {
    const RowData rows = make_rows(config, checked.series);
    const Packed& packed = rows.packed;
    Tensor states = rows.input();
    const Tensor zeros =
        at::zeros({packed.going[0], config.hidden_size}, states.options().requires_grad(false));
    for (size_t l = 0; l < layers_.size(); ++l) {
      const bool told = l == 0 && static_;
      states = layers_[l](packed, states,
                          told ? (*static_)(checked.static_features).index_select(0, packed.samples) : zeros);
    }
    const OutputRows outputs = output_rows(config, checked, rows);
    ModelOutput result = read_states(config, options, head_, checked, states.index_select(0, outputs.rows));
    result.steps = packed.steps();
    return result;
  }

 private:
  std::vector<RowLayer> layers_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_recurrent(const ModelConfig& config, const ModelOptions& options) {
  return std::make_shared<Recurrent>(config, options);
}

}  // namespace fastweights

#include "architectures/row_layer.h"
#include "architectures/row_network.h"
#include "base/error.h"
#include "model/architecture_spec.h"
#include "model/output_index.h"

/// GRU, LSTM and LEM over rows of gap, values and mask, layer upon layer.

namespace fastweights {
namespace {

RowLayer make_layer(RecurrentCell cell, const std::string& name, int64_t inputs, int64_t size,
                    nn::ParameterMaker& make) {
  if (cell == RecurrentCell::Gru) return make_gru_layer(name, inputs, size, make);
  if (cell == RecurrentCell::Lstm) return make_lstm_layer(name, inputs, size, make);
  return make_lem_layer(name, inputs, size, make);
}

class RecurrentNetwork : public RowNetwork {
 public:
  RecurrentNetwork(const ModelConfig& model, const Recurrent& config, const ModelOptions& options)
      : RowNetwork(model) {
    nn::ParameterMaker make(options.seed, options.type);
    int64_t width = 1 + 2 * model.channels;
    for (int64_t l = 0; l < config.layers; ++l) {
      layers_.push_back(make_layer(config.cell, message("layers.", l), width, config.hidden_size, make));
      width = config.hidden_size;
    }
    static_ = make_static_net(shared(model), config.hidden_size, make);
    head_ = make.linear("head", config.hidden_size, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<RecurrentNetwork>(*this); }
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<Recurrent>());
  }

  ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                      const PassOptions& options) const override {
    const SharedOptions config = shared(model);
    const Packed& packed = batch.rows.packed;
    Tensor states = batch.rows.input;
    const Tensor zeros =
        at::zeros({packed.active[0], config.hidden_size}, states.options().requires_grad(false));
    for (size_t l = 0; l < layers_.size(); ++l) {
      const bool from_static = l == 0 && static_;
      states = layers_[l](
          packed, states,
          from_static ? (*static_)(batch.static_features).index_select(0, packed.packed_to_sample) : zeros);
    }
    ModelOutput result =
        read_states(config, options, head_, batch.requested, rows_at(states, batch.outputs.packed_rows));
    result.steps = packed.steps();
    return result;
  }

 private:
  std::vector<RowLayer> layers_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

const Names<RecurrentCell> kCells = {
    {RecurrentCell::Gru, "gru"}, {RecurrentCell::Lstm, "lstm"}, {RecurrentCell::Lem, "lem"}};

std::string cell_name(const Recurrent& o) {
  for (const auto& [cell, name] : kCells) {
    if (cell == o.cell) return name;
  }
  return "";
}

template <RecurrentCell cell>
Architecture recurrent_for_data(const DataShape& shape) {
  Recurrent o = fitted(Recurrent{.cell = cell}, shape);
  o.control.path = Hold{};
  return o;
}

void visit_options(Recurrent& o, Fields& visit) {
  visit("control", o.control);
  visit("layers", o.layers);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const Recurrent& o) {
  const SharedOptions shared = shared_options(model, o);
  check_rows(shared);
  check_layers("layers", o.layers, 1);
  check_count(base_parameters(shared, o.layers), "parameters", size_keys(shared, {{"layers", o.layers}}));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const Recurrent& o,
                                    const ModelOptions& options) {
  return std::make_shared<RecurrentNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const Recurrent&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<Recurrent>(
      {.names = {{"gru", Recurrent{.cell = RecurrentCell::Gru}},
                 {"lstm", Recurrent{.cell = RecurrentCell::Lstm}},
                 {"lem", Recurrent{.cell = RecurrentCell::Lem}}},
       .name = cell_name,
       .fields = visit_options,
       .check = check,
       .make = make,
       .models = {{"gru", "gated recurrent units over rows, with time and mask", "Cho et al. 2014",
                   recurrent_for_data<RecurrentCell::Gru>},
                  {"lstm", "long short-term memory over rows, with time and mask",
                   "Hochreiter and Schmidhuber 1997", recurrent_for_data<RecurrentCell::Lstm>},
                  {"lem", "long expressive memory over rows, with time and mask", "Rusch et al. 2022",
                   recurrent_for_data<RecurrentCell::Lem>}}}));
  return kType;
}

}  // namespace fastweights

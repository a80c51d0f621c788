#include "architectures/evolve.h"
#include "architectures/gru_cell.h"
#include "architectures/row_network.h"
#include "base/error.h"
#include "model/architecture_spec.h"
#include "model/output_index.h"

/// A GRU that reads observations when there are some, and whose state meanwhile
///
///     GRU-dt    stays as it is; the GRU reads the time since the last observation
///     GRU-D     decays: h exp(-relu(decay(gap)))          (Che et al. 2018, the state's part)
///     ODE-RNN   follows an equation: h' = f(h)            (Rubanova et al. 2019)

namespace fastweights {
namespace {

// what the cell reads at a row, and whether it reads at all
struct CellInput {
  Tensor values;    // [R, E], rows in packed order
  Tensor observed;  // [R, 1] bool
};

CellInput masked_input(const RowData& rows) {
  return {at::cat({rows.since, rows.input.narrow(1, 1, 2 * rows.channels())}, 1), rows.observed.unsqueeze(1)};
}

// differences of counts; in place each is taken from one that is a difference already
Tensor count_differences(const Tensor& counts, const Packed& packed, RowInput kind) {
  std::vector<Tensor> steps;
  Tensor before = at::zeros_like(packed.step(counts, 0));
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const Tensor now = packed.step(counts, n);
    steps.push_back(now - before.narrow(0, 0, now.size(0)));
    before = kind == RowInput::PublishedInPlace ? steps.back() : now;
  }
  return at::cat(steps, 0);
}

// The published inputs. Elapsed time grows by every gap in which a sample saw nothing while another one of
// the batch did, never falls, and is added to whatever comes first.
CellInput published_input(const RowConfig& config, const RowData& rows) {
  const Packed& packed = rows.packed;
  const int64_t half = (rows.channels() - 1) / 2;
  const Tensor indicators = count_differences(rows.values().narrow(1, 1, half), packed, config.input);
  const Tensor observed = std::get<0>(indicators.max(1, /*keepdim=*/true)) > 0.5;
  // channel 0 is time, read as the gap since the row before
  const Tensor gap = rows.gap;
  const Tensor values = rows.values().narrow(1, 1 + half, half);
  const Tensor all = config.values_only ? values : at::cat({gap, indicators, values}, 1);
  Tensor elapsed = at::zeros({packed.active[0], 1}, gap.options());
  std::vector<Tensor> first;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const Tensor seen = packed.step(observed, n);
    elapsed = elapsed.narrow(0, 0, seen.size(0));
    first.push_back(packed.step(all, n).narrow(1, 0, 1) + elapsed);
    const Tensor grows = seen.logical_not().logical_and(seen.any());
    elapsed = elapsed + at::where(grows, packed.step(gap, n), at::zeros_like(elapsed));
  }
  return {at::cat({at::cat(first, 0), all.narrow(1, 1, all.size(1) - 1)}, 1), observed};
}

int64_t input_size(int64_t channels, const RowConfig& rows) {
  if (rows.input == RowInput::Masked) return 1 + 2 * channels;
  return rows.values_only ? (channels - 1) / 2 : channels;
}

// what both architectures have; Options is OdeRnn or GapGru
template <typename Options>
class ObservedGru : public RowNetwork {
 public:
  ObservedGru(const ModelConfig& model, const Options& config, const ModelOptions& options)
      : RowNetwork(model) {
    nn::ParameterMaker make(options.seed, options.type);
    cell_ = make_gru_cell("cell", input_size(model.channels, config.rows), config.hidden_size, make);
    if constexpr (std::is_same_v<Options, OdeRnn>) {
      field_ = make_field_net("field", config.field, config.hidden_size, make);
    } else if (config.form == GapForm::Decay) {
      decay_ = make.linear("decay", 1, config.hidden_size);
    }
    static_ = make_static_net(shared(model), config.hidden_size, make);
    head_ = make.linear("head", config.hidden_size, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<ObservedGru>(*this); }
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<Options>());
  }

  ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                      const PassOptions& options) const override {
    const Options& config = model.architecture.get<Options>();
    const Tensor states = go_through(config, batch.rows, batch.static_features);
    const Tensor read = passed(config, rows_at(states, batch.outputs.packed_rows), batch.outputs.elapsed);
    ModelOutput result = read_states(shared(model), options, head_, batch.requested, read);
    result.steps = batch.rows.packed.steps();
    return result;
  }

 private:
  // the state when the time dt [R, 1] has passed without an observation
  Tensor passed(const Options& config, const Tensor& h, const Tensor& dt) const {
    if constexpr (std::is_same_v<Options, OdeRnn>) {
      return evolve(config.solver, field_, h, dt);
    } else {
      if (config.form == GapForm::Input) return h;
      // the decay has a bias: a state does not decay where no time has passed
      return at::where(dt > 0, h * at::exp(-at::relu(linear(decay_, dt))), h);
    }
  }

  // states after all rows: [R, d]
  Tensor go_through(const Options& config, const RowData& rows, const Tensor& static_features) const {
    const Packed& packed = rows.packed;
    const CellInput in =
        config.rows.input == RowInput::Masked ? masked_input(rows) : published_input(config.rows, rows);
    const std::vector<Tensor> projected = packed.split(linear(cell_.input, in.values));
    Tensor h =
        static_ ? (*static_)(static_features).index_select(0, packed.packed_to_sample)
                : at::zeros({packed.active[0], config.hidden_size}, in.values.options().requires_grad(false));
    std::vector<Tensor> states;
    for (int64_t n = 0; n < packed.steps(); ++n) {
      h = h.narrow(0, 0, packed.active[n]);
      if (n > 0) h = passed(config, h, packed.step(rows.gap, n));
      const Tensor seen = packed.step(in.observed, n);
      h = at::where(seen, cell_(projected[n], h), h);
      states.push_back(h);
    }
    return at::cat(states, 0);
  }

  GruCell cell_;
  nn::Linear decay_;
  FieldNet field_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

template <typename Options>
void check_observed(const ModelConfig& model, const Options& o) {
  const SharedOptions shared = shared_options(model, o);
  check_rows(shared);
  check_published_rows(shared, o.rows);
}

void visit_options(OdeRnn& o, Fields& visit) {
  visit("control", o.control);
  visit("solver", o.solver);
  visit("field", o.field);
  visit("rows", o.rows);
  visit_common(o, visit);
}

void visit_options(GapGru& o, Fields& visit) {
  visit("control", o.control);
  visit("rows", o.rows);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const OdeRnn& o) {
  check_observed(model, o);
  check_solver(o.solver, o.control);
  check_plain_method(o.solver);
  check_field(o.field.hidden_size, o.field.layers);
  const auto d = static_cast<double>(o.hidden_size);
  const SharedOptions shared = shared_options(model, o);
  check_count(base_parameters(shared) +
                  field_parameters(d, static_cast<double>(o.field.hidden_size), o.field.layers, d),
              "parameters", size_keys(shared, {{"field.hidden_size", o.field.hidden_size}}));
}

void check(const ModelConfig& model, const GapGru& o) {
  check_observed(model, o);
  const SharedOptions shared = shared_options(model, o);
  check_count(base_parameters(shared), "parameters", size_keys(shared));
}

template <typename Options>
std::shared_ptr<const Network> make(const ModelConfig& model, const Options& o, const ModelOptions& options) {
  return std::make_shared<ObservedGru<Options>>(model, o, options);
}

template <typename Options>
Architecture gru_for_data(Options options, const DataShape& shape) {
  options = fitted(options, shape);
  options.control.path = Hold{};
  options.rows.known_channels = shape.known_channels;
  return options;
}

}  // namespace

const ArchitectureType& architecture_type(const OdeRnn&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<OdeRnn>(
      {.names = {{"ode_rnn", OdeRnn{}}},
       .fields = visit_options,
       .check = check,
       .make = make<OdeRnn>,
       .solver = [](OdeRnn& o) { return &o.solver; },
       .models = {{"ode-rnn", "a GRU at observations, a neural ODE in between", "Rubanova et al. 2019",
                   [](const DataShape& shape) { return gru_for_data(OdeRnn{}, shape); }}}}));
  return kType;
}

const ArchitectureType& architecture_type(const GapGru&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<GapGru>(
      {.names = {{"gru_dt", GapGru{.form = GapForm::Input}}, {"gru_d", GapGru{.form = GapForm::Decay}}},
       .name = [](const GapGru& o) -> std::string { return o.form == GapForm::Input ? "gru_dt" : "gru_d"; },
       .fields = visit_options,
       .check = check,
       .make = make<GapGru>,
       .models = {
           {"gru-dt", "a GRU that reads the time since the last observation", "Rubanova et al. 2019",
            [](const DataShape& shape) { return gru_for_data(GapGru{.form = GapForm::Input}, shape); }},
           {"gru-d", "a GRU whose state decays between observations", "Che et al. 2018",
            [](const DataShape& shape) { return gru_for_data(GapGru{.form = GapForm::Decay}, shape); }}}}));
  return kType;
}

}  // namespace fastweights

#include "fastweights/error.h"
#include "systems/evolve.h"
#include "systems/gru_cell.h"
#include "systems/rows.h"

/// A GRU that reads observations when there are some, and whose state meanwhile
///
///     GRU-dt    stays as it is; the GRU is told the time since the last observation
///     GRU-D     decays: h exp(-relu(decay(gap)))          (Che et al. 2018, the state's part)
///     ODE-RNN   follows an equation: h' = f(h)            (Rubanova et al. 2019)

namespace fastweights {
namespace {

// what the cell reads at a row, and whether it reads at all
struct CellInput {
  Tensor numbers;   // [R, E], rows in packed order
  Tensor observed;  // [R, 1] bool
};

CellInput masked_input(const RowData& rows) {
  return {at::cat({rows.since, rows.values, rows.mask}, 1), rows.observed.unsqueeze(1)};
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
// the batch did, never falls, and is added to whatever is the first number.
CellInput published_input(const ModelConfig& config, const RowData& rows) {
  const Packed& packed = rows.packed;
  const int64_t half = (config.channels - 1) / 2;
  const Tensor indicators = count_differences(rows.values.narrow(1, 1, half), packed, config.rows.input);
  const Tensor observed = std::get<0>(indicators.max(1, /*keepdim=*/true)) > 0.5;
  // channel 0 is time, read as the gap since the row before
  const Tensor gap = rows.gap;
  const Tensor values = rows.values.narrow(1, 1 + half, half);
  const Tensor all = config.rows.values_only ? values : at::cat({gap, indicators, values}, 1);
  Tensor elapsed = at::zeros({packed.going[0], 1}, gap.options());
  std::vector<Tensor> first;
  for (int64_t n = 0; n < packed.steps(); ++n) {
    const Tensor seen = packed.step(observed, n);
    elapsed = elapsed.narrow(0, 0, seen.size(0));
    first.push_back(packed.step(all, n).narrow(1, 0, 1) + elapsed);
    if (seen.any().item<bool>())
      elapsed = elapsed + at::where(seen, at::zeros_like(elapsed), packed.step(gap, n));
  }
  return {at::cat({at::cat(first, 0), all.narrow(1, 1, all.size(1) - 1)}, 1), observed};
}

int64_t input_size(const ModelConfig& config) {
  if (config.rows.input == RowInput::Masked) return 1 + 2 * config.channels;
  return config.rows.values_only ? (config.channels - 1) / 2 : config.channels;
}

class ObservedGru : public ComparedSystem {
 public:
  ObservedGru(const ModelConfig& config, const ModelOptions& options) : system_(config.system) {
    nn::ParameterMaker make(options.seed, options.type);
    cell_ = make_gru_cell("cell", input_size(config), config.hidden_size, make);
    if (system_ == System::GruD) decay_ = make.linear("decay", 1, config.hidden_size);
    if (system_ == System::OdeRnn) field_ = make_field_net("field", config.field, config.hidden_size, make);
    static_ = make_static_net(config, config.hidden_size, make);
    head_ = make.linear("head", config.hidden_size, config.outputs);
    parameters_ = make.parameters();
  }

  std::shared_ptr<ComparedSystem> copy() const override { return std::make_shared<ObservedGru>(*this); }

  ModelOutput forward(const ModelConfig& config, const CheckedInput& checked,
                      const ForwardOptions& options) const override {
    const RowData rows = make_rows(config, checked.series);
    const OutputRows outputs = output_rows(config, checked, rows);
    const Tensor states = go_through(config, rows, checked.static_features);
    const Tensor read = passed(config, states.index_select(0, outputs.rows), outputs.behind);
    ModelOutput result = read_states(config, options, head_, checked, read);
    result.steps = rows.packed.steps();
    return result;
  }

 private:
  // the state when the time dt [R, 1] has passed without an observation
  Tensor passed(const ModelConfig& config, const Tensor& h, const Tensor& dt) const {
    if (system_ == System::GruDt) return h;
    // the decay has a bias: where no time has passed there is none
    if (system_ == System::GruD) return at::where(dt > 0, h * at::exp(-at::relu(linear(decay_, dt))), h);
    return evolve(config.solver, field_, h, dt);
  }

  // states behind all rows: [R, d]
  Tensor go_through(const ModelConfig& config, const RowData& rows, const Tensor& static_features) const {
    const Packed& packed = rows.packed;
    const CellInput in =
        config.rows.input == RowInput::Masked ? masked_input(rows) : published_input(config, rows);
    const std::vector<Tensor> projected = packed.split(linear(cell_.input, in.numbers));
    Tensor h =
        static_ ? (*static_)(static_features).index_select(0, packed.samples)
                : at::zeros({packed.going[0], config.hidden_size}, in.numbers.options().requires_grad(false));
    std::vector<Tensor> states;
    for (int64_t n = 0; n < packed.steps(); ++n) {
      h = h.narrow(0, 0, packed.going[n]);
      if (n > 0) h = passed(config, h, packed.step(rows.gap, n));
      const Tensor seen = packed.step(in.observed, n);
      h = at::where(seen, cell_(projected[n], h), h);
      states.push_back(h);
    }
    return at::cat(states, 0);
  }

  System system_;
  GruCell cell_;
  nn::Linear decay_;
  FieldNet field_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

}  // namespace

std::shared_ptr<const ComparedSystem> make_observed_gru(const ModelConfig& config,
                                                        const ModelOptions& options) {
  return std::make_shared<ObservedGru>(config, options);
}

}  // namespace fastweights

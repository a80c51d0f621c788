#include <algorithm>

#include "architectures/evolve.h"
#include "architectures/gru_cell.h"
#include "architectures/latent.h"
#include "architectures/rows.h"
#include "base/error.h"
#include "model/architecture_spec.h"

/// Latent ODEs (Rubanova et al. 2019). An ODE-RNN reads the rows from the last one to the first and says how
/// the first state z(t0) is distributed; all values follow from that alone:
///
///     z' = f(z),  value = decoder(z(t)),  output = head([z(t0), z(t)])

namespace fastweights {
namespace {

// rows and outputs of each sample on one axis of rising times, each time once
struct TimeGrid {
  Packed packed;           // of the grid's points
  Tensor gap;              // [G, 1], in packed order; in units of time_unit, 0 at a sample's first point
  Tensor row_to_point;     // [R] int64: packed point of each row of the batch
  Tensor output_to_point;  // [M] int64: packed point of each output
};

TimeGrid make_grid(double time_unit, const CheckedInput& input) {
  const Tensor times = input.series.times.contiguous(), offsets = input.series.offsets.contiguous();
  const Tensor requested = input.requested.times.contiguous(),
               requested_offsets = input.requested.offsets.contiguous();
  const double *t = times.data_ptr<double>(), *r = requested.data_ptr<double>();
  const int64_t *o = offsets.data_ptr<int64_t>(), *ro = requested_offsets.data_ptr<int64_t>();
  std::vector<double> all, gaps;
  std::vector<int64_t> grid_offsets = {0}, rows, outputs;
  for (int64_t b = 0; b < input.series.samples(); ++b) {
    const int64_t begin = grid_offsets.back();
    all.insert(all.end(), t + o[b], t + o[b + 1]);
    all.insert(all.end(), r + ro[b], r + ro[b + 1]);
    std::sort(all.begin() + begin, all.end());
    all.erase(std::unique(all.begin() + begin, all.end()), all.end());
    const auto find = [&](double time) {
      return std::lower_bound(all.begin() + begin, all.end(), time) - all.begin();
    };
    for (int64_t i = o[b]; i < o[b + 1]; ++i) rows.push_back(find(t[i]));
    for (int64_t i = ro[b]; i < ro[b + 1]; ++i) outputs.push_back(find(r[i]));
    grid_offsets.push_back(static_cast<int64_t>(all.size()));
    for (int64_t i = begin; i < grid_offsets.back(); ++i)
      gaps.push_back(i == begin ? 0 : (all[i] - all[i - 1]) / time_unit);
  }
  TimeGrid grid;
  grid.packed = pack(at::tensor(grid_offsets, at::kLong));
  const Tensor gap = at::tensor(gaps, at::kDouble).to(input.series.values.scalar_type());
  grid.gap = gap.index_select(0, grid.packed.packed_to_batch).unsqueeze(1);
  grid.row_to_point = grid.packed.batch_to_packed.index_select(0, at::tensor(rows, at::kLong));
  grid.output_to_point = grid.packed.batch_to_packed.index_select(0, at::tensor(outputs, at::kLong));
  return grid;
}

// packed rows in the order in which one goes through all samples backwards
Tensor backwards(const Packed& packed, const Tensor& offsets) {
  const Tensor counts = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  const Tensor ends = (offsets.slice(0, 1) + offsets.slice(0, 0, -1) - 1).repeat_interleave(counts);
  const Tensor mirrored = ends - at::arange(ends.size(0));
  return packed.batch_to_packed.index_select(0, mirrored.index_select(0, packed.packed_to_batch));
}

class LatentOdeNetwork : public Baseline {
 public:
  LatentOdeNetwork(const ModelConfig& model, const LatentOde& config, const ModelOptions& options)
      : Baseline(model) {
    const SharedOptions shared = shared_options(model, config);
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size, size = config.latent.size;
    cell_ = make_gru_cell("encoder", 2 * model.channels, d, make);
    encoder_field_ = make_field_net("encoder.field", config.field, d, make);
    latent_ = make_latent_net("latent", d, size, make);
    field_ = make_field_net("field", config.field, size, make);
    decoder_ = make.linear("decoder", size, model.channels);
    static_ = make_static_net(shared, d, make);
    head_ = make.linear("head", 2 * size, model.outputs);
    parameters_ = make.parameters();
  }

  std::shared_ptr<Baseline> copy() const override { return std::make_shared<LatentOdeNetwork>(*this); }

  ModelOutput forward(const ModelConfig& model, const CheckedInput& checked,
                      const ForwardOptions& options) const override {
    const LatentOde& config = model.architecture.get<LatentOde>();
    const SharedOptions shared = shared_options(model, config);
    const RowData rows = make_rows(shared, checked.series);
    const TimeGrid grid = make_grid(config.time_unit, checked);
    const Distribution first = encode(config, rows, checked);
    const Tensor z0 = draw(first, options);
    const Tensor z = decode(config, grid, z0.index_select(0, grid.packed.packed_to_sample));
    const Tensor counts = checked.requested.offsets.slice(0, 1) - checked.requested.offsets.slice(0, 0, -1);
    const Tensor read =
        at::cat({z0.repeat_interleave(counts, 0), z.index_select(0, grid.output_to_point)}, 1);
    ModelOutput result = read_states(shared, options, head_, checked, read);
    result.steps = grid.packed.steps();
    if (options.mode == Mode::Evaluate) return result;
    const Tensor decoded =
        linear(decoder_, z.index_select(0, grid.row_to_point).index_select(0, rows.packed.packed_to_batch));
    // channels that are always known need no reconstruction
    const int64_t known = config.rows.known_channels;
    const Tensor mask = rows.mask.slice(1, known), off = (decoded - rows.values).slice(1, known);
    const Tensor error = (mask * off.square()).sum() / mask.sum().clamp_min(1);
    result.auxiliary_loss =
        config.latent.divergence * first.divergence() + config.latent.reconstruction * error;
    return result;
  }

 private:
  // of the first states [B, latent size], samples in the batch's order
  Distribution encode(const LatentOde& config, const RowData& rows, const CheckedInput& input) const {
    const Packed& packed = rows.packed;
    const Tensor order = backwards(packed, input.series.offsets);
    const auto ordered = [&](const Tensor& forwards) { return forwards.index_select(0, order); };
    const std::vector<Tensor> projected =
        packed.split(linear(cell_.input, ordered(at::cat({rows.values, rows.mask}, 1))));
    const Tensor observed = ordered(rows.observed).unsqueeze(1), gap = ordered(rows.gap);
    Tensor h = at::zeros({packed.active[0], config.hidden_size}, gap.options());
    if (static_) h = (*static_)(input.static_features).index_select(0, packed.packed_to_sample);
    std::vector<Tensor> states;
    for (int64_t n = 0; n < packed.steps(); ++n) {
      const int64_t active = packed.active[n];
      h = h.narrow(0, 0, active);
      // a row's gap is the time to the one that comes next here
      if (n > 0) h = evolve(config.solver, encoder_field_, h, packed.step(gap, n - 1).narrow(0, 0, active));
      h = at::where(packed.step(observed, n), cell_(projected[n], h), h);
      states.push_back(h);
    }
    const Tensor last = packed.batch_to_packed.index_select(0, input.series.offsets.slice(0, 1) - 1);
    return latent_(at::cat(states, 0).index_select(0, last));
  }

  // z [G, latent size] at all points of the grid from z0, samples in packed order
  Tensor decode(const LatentOde& config, const TimeGrid& grid, Tensor z) const {
    std::vector<Tensor> states;
    for (int64_t n = 0; n < grid.packed.steps(); ++n) {
      z = z.narrow(0, 0, grid.packed.active[n]);
      if (n > 0) z = evolve(config.solver, field_, z, grid.packed.step(grid.gap, n));
      states.push_back(z);
    }
    return at::cat(states, 0);
  }

  GruCell cell_;
  FieldNet encoder_field_;
  LatentNet latent_;
  FieldNet field_;
  nn::Linear decoder_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

Architecture latent_for_data(const DataShape& shape) {
  LatentOde o = fitted(LatentOde{}, shape);
  o.control.path = Hold{};
  o.rows.known_channels = shape.known_channels;
  return o;
}

}  // namespace

void visit_fields(LatentOde::Rows& o, Fields& visit) { visit("known_channels", o.known_channels); }

void visit_fields(LatentConfig& o, Fields& visit) {
  visit("size", o.size);
  visit("divergence", o.divergence);
  visit("reconstruction", o.reconstruction);
}

namespace {

void visit_options(LatentOde& o, Fields& visit) {
  visit("control", o.control);
  visit("solver", o.solver);
  visit("field", o.field);
  visit("latent", o.latent);
  visit("rows", o.rows);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const LatentOde& o) {
  const SharedOptions shared = shared_options(model, o);
  check_rows(shared);
  check_solver(o.solver, o.control);
  check_plain_method(o.solver);
  check_field(o.field.hidden_size, o.field.layers);
  check_at_least("latent.size", o.latent.size, 1);
  FW_CHECK(std::isfinite(o.latent.divergence) && o.latent.divergence >= 0 &&
               std::isfinite(o.latent.reconstruction) && o.latent.reconstruction >= 0,
           "[config] latent.divergence and latent.reconstruction must not be negative, got ",
           o.latent.divergence, " and ", o.latent.reconstruction);
  const auto d = static_cast<double>(o.hidden_size), hidden = static_cast<double>(o.field.hidden_size),
             latent = static_cast<double>(o.latent.size);
  check_count(
      base_parameters(shared) + field_parameters(d, hidden, o.field.layers, d) +
          latent * (2 * d + 2 * hidden + static_cast<double>(model.channels + 2 * model.outputs)),
      "parameters",
      size_keys(shared, {{"field.hidden_size", o.field.hidden_size}, {"latent.size", o.latent.size}}));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const LatentOde& o,
                                    const ModelOptions& options) {
  return std::make_shared<LatentOdeNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const LatentOde&) {
  static const ArchitectureType kType = make_architecture_type<LatentOde>(
      {.names = {{"latent_ode", LatentOde{}}},
       .fields = visit_options,
       .check = check,
       .make = make,
       .solver = [](LatentOde& o) { return &o.solver; },
       .models = {{"latent-ode",
                   "variational: an ODE-RNN encodes the series backwards, a neural ODE decodes it",
                   "Rubanova et al. 2019", latent_for_data}}});
  return kType;
}

}  // namespace fastweights

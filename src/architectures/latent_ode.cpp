#include <algorithm>

#include "architectures/evolve.h"
#include "architectures/gru_cell.h"
#include "architectures/latent.h"
#include "architectures/row_network.h"
#include "base/error.h"
#include "model/architecture_spec.h"
#include "model/output_index.h"
#include "tensor/device.h"

/// Latent ODEs (Rubanova et al. 2019). An ODE-RNN reads the rows from the last one to the first and says how
/// the first state z(t0) is distributed; all values follow from that alone:
///
///     z' = f(z),  value = decoder(z(t)),  output = head([z(t0), z(t)])

namespace fastweights {
namespace {

// rows and outputs of each sample on one axis of rising times, each time once
struct TimeGrid final : RowExtra {
  Packed packed;           // of the grid's points
  Tensor gap;              // [G, 1], in packed order; in units of time_unit, 0 at a sample's first point
  Tensor row_to_point;     // [R] int64: packed point of each packed row
  Tensor output_to_point;  // [M] int64: packed point of each output
  Tensor backwards;        // [R] int64: packed rows in the order in which one goes through samples backwards
  Tensor last;             // [B] int64: the packed row of each sample's last row
};

// the rising times of each sample, and the time between two of them
struct GridPoints {
  std::vector<double> times, gaps;
  std::vector<int64_t> offsets = {0};

  int64_t find(int64_t sample, double time) const {
    const auto begin = times.begin() + offsets[sample];
    return std::lower_bound(begin, times.begin() + offsets[sample + 1], time) - begin;
  }
};

GridPoints make_points(double time_unit, const RaggedTimes& rows, const RaggedTimes& outputs) {
  const double *t = rows.times.data_ptr<double>(), *r = outputs.times.data_ptr<double>();
  const int64_t *o = rows.offsets.data_ptr<int64_t>(), *ro = outputs.offsets.data_ptr<int64_t>();
  GridPoints points;
  std::vector<double>& all = points.times;
  for (int64_t b = 0; b + 1 < rows.offsets.size(0); ++b) {
    const int64_t begin = points.offsets.back();
    all.insert(all.end(), t + o[b], t + o[b + 1]);
    all.insert(all.end(), r + ro[b], r + ro[b + 1]);
    std::sort(all.begin() + begin, all.end());
    all.erase(std::unique(all.begin() + begin, all.end()), all.end());
    points.offsets.push_back(static_cast<int64_t>(all.size()));
    for (int64_t i = begin; i < points.offsets.back(); ++i)
      points.gaps.push_back(i == begin ? 0 : (all[i] - all[i - 1]) / time_unit);
  }
  return points;
}

std::shared_ptr<const TimeGrid> make_grid(double time_unit, const RowBatch& batch, const at::Device& device) {
  const RaggedTimes &rows = batch.times, &outputs = batch.requested.times;
  const GridPoints points = make_points(time_unit, rows, outputs);
  const Packed points_packed = pack(at::tensor(points.offsets, at::kLong));
  const Packed& packed = batch.rows.packed;
  const double *t = rows.times.data_ptr<double>(), *r = outputs.times.data_ptr<double>();
  const int64_t *o = rows.offsets.data_ptr<int64_t>(), *ro = outputs.offsets.data_ptr<int64_t>();
  std::vector<int64_t> row_to_point(static_cast<size_t>(rows.times.size(0))), backwards(row_to_point.size()),
      output_to_point;
  for (int64_t b = 0; b < batch.samples(); ++b) {
    const int64_t length = o[b + 1] - o[b];
    for (int64_t n = 0; n < length; ++n) {
      row_to_point[packed.row(b, n)] = points_packed.row(b, points.find(b, t[o[b] + n]));
      backwards[packed.row(b, n)] = packed.row(b, length - 1 - n);
    }
    for (int64_t i = ro[b]; i < ro[b + 1]; ++i)
      output_to_point.push_back(points_packed.row(b, points.find(b, r[i])));
  }
  const Tensor gap = at::tensor(points.gaps, at::kDouble).to(batch.rows.input.scalar_type());
  auto grid = std::make_shared<TimeGrid>();
  grid->packed = pack(at::tensor(points.offsets, at::kLong), device);
  grid->gap = on_device(gap.index_select(0, points_packed.packed_to_batch).unsqueeze(1), device);
  grid->row_to_point = index_on_device(row_to_point, device);
  grid->output_to_point = index_on_device(output_to_point, device);
  grid->backwards = index_on_device(backwards, device);
  grid->last = last_packed_rows(packed, rows.offsets, device);
  return grid;
}

class LatentOdeNetwork : public RowNetwork {
 public:
  LatentOdeNetwork(const ModelConfig& model, const LatentOde& config, const ModelOptions& options)
      : RowNetwork(model) {
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size, size = config.latent.size;
    cell_ = make_gru_cell("encoder", 2 * model.channels, d, make);
    encoder_field_ = make_field_net("encoder.field", config.field, d, make);
    latent_ = make_latent_net("latent", d, size, make);
    field_ = make_field_net("field", config.field, size, make);
    decoder_ = make.linear("decoder", size, model.channels);
    static_ = make_static_net(shared(model), d, make);
    head_ = make.linear("head", 2 * size, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<LatentOdeNetwork>(*this); }
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<LatentOde>());
  }
  std::shared_ptr<const RowExtra> extra(const ModelConfig& model, const RowBatch& batch) const override {
    return make_grid(model.architecture.get<LatentOde>().time_unit, batch, device());
  }

  ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                      const PassOptions& options) const override {
    const LatentOde& config = model.architecture.get<LatentOde>();
    const RowData& rows = batch.rows;
    const auto& grid = batch.get<TimeGrid>();
    const Distribution first = encode(config, batch, grid);
    const Tensor z0 = draw(first, options);
    const Tensor z = decode(config, grid, z0.index_select(0, grid.packed.packed_to_sample));
    const Tensor read =
        at::cat({rows_at(z0, batch.requested.sample), z.index_select(0, grid.output_to_point)}, 1);
    ModelOutput result = read_states(shared(model), options, head_, batch.requested, read);
    result.steps = grid.packed.steps();
    if (options.mode == Mode::Evaluate) return result;
    const Tensor decoded = linear(decoder_, z.index_select(0, grid.row_to_point));
    // channels that are always known need no reconstruction
    const int64_t known = config.rows.known_channels;
    const Tensor mask = rows.mask().slice(1, known), off = (decoded - rows.values()).slice(1, known);
    const Tensor error = (mask * off.square()).sum() / mask.sum().clamp_min(1);
    result.auxiliary_loss =
        config.latent.divergence * first.divergence() + config.latent.reconstruction * error;
    return result;
  }

 private:
  // of the first states [B, latent size], samples in the batch's order
  Distribution encode(const LatentOde& config, const RowBatch& batch, const TimeGrid& grid) const {
    const RowData& rows = batch.rows;
    const Packed& packed = rows.packed;
    const auto ordered = [&](const Tensor& forwards) { return forwards.index_select(0, grid.backwards); };
    const std::vector<Tensor> projected =
        packed.split(linear(cell_.input, ordered(rows.input.narrow(1, 1, 2 * rows.channels()))));
    const Tensor observed = ordered(rows.observed).unsqueeze(1), gap = ordered(rows.gap);
    Tensor h = at::zeros({packed.active[0], config.hidden_size}, gap.options());
    if (static_) h = (*static_)(batch.static_features).index_select(0, packed.packed_to_sample);
    std::vector<Tensor> states;
    for (int64_t n = 0; n < packed.steps(); ++n) {
      const int64_t active = packed.active[n];
      h = h.narrow(0, 0, active);
      // a row's gap is the time to the one that comes next here
      if (n > 0) h = evolve(config.solver, encoder_field_, h, packed.step(gap, n - 1).narrow(0, 0, active));
      h = at::where(packed.step(observed, n), cell_(projected[n], h), h);
      states.push_back(h);
    }
    return latent_(at::cat(states, 0).index_select(0, grid.last));
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
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<LatentOde>(
      {.names = {{"latent_ode", LatentOde{}}},
       .fields = visit_options,
       .check = check,
       .make = make,
       .solver = [](LatentOde& o) { return &o.solver; },
       .models = {{"latent-ode",
                   "variational: an ODE-RNN encodes the series backwards, a neural ODE decodes it",
                   "Rubanova et al. 2019", latent_for_data}}}));
  return kType;
}

}  // namespace fastweights

#include <algorithm>

#include "architectures/evolve.h"
#include "architectures/gru_cell.h"
#include "architectures/latent.h"
#include "architectures/rfwp_cell.h"
#include "architectures/row_network.h"
#include "base/error.h"
#include "model/architecture_spec.h"
#include "model/output_index.h"

/// A recurrent fast weight programmer whose state follows an equation between observations, h' = f(h). At a
/// row x_n in which something was observed, and the time dt since the row before (Irie et al. 2022, 3.3):
///
///     ODE first    u = evolve(h, dt),  W = W + rule(x_n, u),  h = read(x_n, W)
///     data first   W = W + rule(x_n, h),  u = read(x_n, W),  h = evolve(u, dt)
///
/// At other rows the state only evolves. The latent variant draws its first state from a distribution that a
/// GRU computes from all rows.

namespace fastweights {
namespace {

// states and fast weights at the outputs' rows
struct Kept {
  Tensor h;  // [M, d]
  Tensor w;  // [M, H, V, K]
};

struct RfwpRows final : RowExtra {
  PickedRows picked;
  Tensor last;  // [B] int64: the packed row of each sample's last row
};

class OdeRfwpNetwork : public RowNetwork {
 public:
  OdeRfwpNetwork(const ModelConfig& model, const OdeRfwp& config, const ModelOptions& options)
      : RowNetwork(model) {
    nn::ParameterMaker make(options.seed, options.type);
    const int64_t d = config.hidden_size, inputs = 1 + 2 * model.channels;
    const int64_t feed_forward = config.feed_forward_size > 0 ? config.feed_forward_size : 4 * d;
    const auto named = [&](const Rule& rule) { return rule.name == config.rule; };
    const auto rule = std::find_if(all_rules().begin(), all_rules().end(), named);
    FW_CHECK(rule != all_rules().end(), "[model] architecture ", model.architecture.name(),
             " has the built-in rules only, got '", config.rule, "'");
    cell_ = make_rfwp_cell({inputs, d, config.heads, feed_forward}, *rule, make);
    field_ = make_field_net("field", config.field, d, make);
    if (config.form == RfwpForm::Latent) {
      encoder_ = make_gru_cell("encoder", inputs, d, make);
      latent_ = make_latent_net("latent", d, d, make);
    }
    static_ = make_static_net(shared(model), d, make);
    head_ = make.linear("head", d, model.outputs);
    parameters_ = make.parameters();
    place(options.device);
  }

 protected:
  std::shared_ptr<Baseline> copy() const override { return std::make_shared<OdeRfwpNetwork>(*this); }
  SharedOptions shared(const ModelConfig& model) const override {
    return shared_options(model, model.architecture.get<OdeRfwp>());
  }

  std::shared_ptr<const RowExtra> extra(const ModelConfig&, const RowBatch& batch) const override {
    auto result = std::make_shared<RfwpRows>();
    result->picked = picked_rows(batch.rows.packed, batch.outputs.on_cpu, device());
    result->last = last_packed_rows(batch.rows.packed, batch.times.offsets, device());
    return result;
  }

  ModelOutput forward(const ModelConfig& model, const RowBatch& batch,
                      const PassOptions& options) const override {
    const OdeRfwp& config = model.architecture.get<OdeRfwp>();
    const RowData& rows = batch.rows;
    const auto& own = batch.get<RfwpRows>();
    const Tensor& x = rows.input;
    Tensor h0 = at::zeros({batch.samples(), config.hidden_size}, x.options().requires_grad(false));
    if (static_) h0 = (*static_)(batch.static_features);
    Tensor divergence;
    if (latent_) {
      const Distribution first = encode(rows.packed, x, own.last);
      h0 = h0 + draw(first, options);
      divergence = config.latent.divergence * first.divergence();
    }
    const Kept kept = go_through(config, rows, h0.index_select(0, rows.packed.packed_to_sample), own.picked);
    const Tensor read = evolve(config.solver, field_, kept.h, batch.outputs.elapsed);
    ModelOutput result = read_states(shared(model), options, head_, batch.requested, read, kept.w);
    result.steps = rows.packed.steps();
    if (options.mode == Mode::Train) result.auxiliary_loss = divergence;
    return result;
  }

 private:
  // of the first states [B, d], samples in the batch's order
  Distribution encode(const Packed& packed, const Tensor& x, const Tensor& last) const {
    const Tensor zeros =
        at::zeros({packed.active[0], encoder_->state.weight.size(1)}, x.options().requires_grad(false));
    return (*latent_)(gru_states(*encoder_, packed, x, zeros).index_select(0, last));
  }

  Kept go_through(const OdeRfwp& config, const RowData& rows, Tensor h, const PickedRows& picked) const {
    const Packed& packed = rows.packed;
    const Tensor& x = rows.input;
    const RfwpCell::Projections projected = cell_.project(x);
    const std::vector<Tensor> merged = packed.split(projected.merged), queries = packed.split(projected.q);
    const nn::Wiring& wiring = cell_.wiring;
    Tensor w = at::zeros({h.size(0), wiring.heads, wiring.value_width, wiring.key_width},
                         x.options().requires_grad(false));
    const bool ode_first = config.rows.order == UpdateOrder::OdeFirst;
    std::vector<Tensor> kept_h = {h.narrow(0, 0, 0)}, kept_w = {w.narrow(0, 0, 0)};
    for (int64_t n = 0; n < packed.steps(); ++n) {
      const int64_t active = packed.active[n];
      h = h.narrow(0, 0, active);
      w = w.narrow(0, 0, active);
      const Tensor gap = packed.step(rows.gap, n);
      if (ode_first && n > 0) h = evolve(config.solver, field_, h, gap);
      const Tensor seen = packed.step(rows.observed, n);
      const Tensor written = cell_.write(merged[n], h, w);
      w = at::where(seen.view({active, 1, 1, 1}), written, w);
      h = at::where(seen.unsqueeze(1), cell_.read(queries[n], w), h);
      if (!ode_first && n > 0) h = evolve(config.solver, field_, h, gap);
      if (!picked.any(n)) continue;
      kept_h.push_back(picked.of_step(n, h));
      kept_w.push_back(picked.of_step(n, w));
    }
    return {rows_at(at::cat(kept_h, 0), picked.output_to_picked),
            rows_at(at::cat(kept_w, 0), picked.output_to_picked)};
  }

  RfwpCell cell_;
  FieldNet field_;
  std::optional<GruCell> encoder_;
  std::optional<LatentNet> latent_;
  std::optional<StaticNet> static_;
  nn::Linear head_;
};

std::string form_name(const OdeRfwp& o) { return o.form == RfwpForm::Plain ? "ode_rfwp" : "latent_ode_rfwp"; }

template <RfwpForm form>
Architecture rfwp_for_data(const DataShape& shape) {
  OdeRfwp o = fitted(OdeRfwp{.form = form}, shape);
  o.control.path = Hold{};
  o.rows.known_channels = shape.known_channels;
  o.heads = 8;
  o.feed_forward_size = 128;
  return o;
}

}  // namespace

void visit_fields(OdeRfwp::Rows& o, Fields& visit) {
  visit("order", o.order);
  visit("known_channels", o.known_channels);
}

void visit_fields(OdeRfwp::Latent& o, Fields& visit) { visit("divergence", o.divergence); }

namespace {

void visit_options(OdeRfwp& o, Fields& visit) {
  visit("rule", o.rule);
  visit("control", o.control);
  visit("solver", o.solver);
  visit("field", o.field);
  visit("rows", o.rows);
  if (o.form == RfwpForm::Latent) visit("latent", o.latent);
  visit("heads", o.heads);
  visit("feed_forward_size", o.feed_forward_size);
  visit_common(o, visit);
}

void check(const ModelConfig& model, const OdeRfwp& o) {
  const SharedOptions shared = shared_options(model, o);
  check_rows(shared);
  check_solver(o.solver, o.control);
  check_plain_method(o.solver);
  check_field(o.field.hidden_size, o.field.layers);
  check_heads(o.hidden_size, o.heads, o.feed_forward_size);
  FW_CHECK(std::isfinite(o.latent.divergence) && o.latent.divergence >= 0,
           "[config] latent.divergence must not be negative, got ", o.latent.divergence);
  const auto d = static_cast<double>(o.hidden_size);
  check_count(base_parameters(shared) + feed_forward_parameters(d, o.feed_forward_size, 1) +
                  field_parameters(d, static_cast<double>(o.field.hidden_size), o.field.layers, d),
              "parameters",
              size_keys(shared, {{"feed_forward_size", o.feed_forward_size},
                                 {"field.hidden_size", o.field.hidden_size}}));
}

std::shared_ptr<const Network> make(const ModelConfig& model, const OdeRfwp& o, const ModelOptions& options) {
  return std::make_shared<OdeRfwpNetwork>(model, o, options);
}

}  // namespace

const ArchitectureType& architecture_type(const OdeRfwp&) {
  static const ArchitectureType kType = also_on_gpus(make_architecture_type<OdeRfwp>(
      {.names = {{"ode_rfwp", OdeRfwp{.form = RfwpForm::Plain}},
                 {"latent_ode_rfwp", OdeRfwp{.form = RfwpForm::Latent}}},
       .name = form_name,
       .fields = visit_options,
       .check = check,
       .make = make,
       .solver = [](OdeRfwp& o) { return &o.solver; },
       .models = {
           {"ode-rfwp", "a recurrent fast weight programmer, its state in a neural ODE between observations",
            "Irie et al. 2022, section 3.3", rfwp_for_data<RfwpForm::Plain>},
           {"latent-ode-rfwp", "the same with a variational initial state", "Irie et al. 2022, section 3.3",
            rfwp_for_data<RfwpForm::Latent>}}}));
  return kType;
}

}  // namespace fastweights

#include "architectures/baseline.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "model/config_names.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

namespace fastweights {

namespace {

// a checked input as a prepared batch
struct PreparedRows final : PreparedBatch::Contents {
  PreparedRows(const SharedOptions& options, at::ScalarType type, const ModelInput& input)
      : checked(check_input(options, type, input)), options(options), type(type) {}

  int64_t samples() const override { return checked.series.samples(); }
  PreparedBatch select(const std::vector<int64_t>& samples) const override {
    ModelInput all = {checked.series, checked.static_features};
    if (!checked.at_ends) all.output_times = checked.requested;
    return PreparedBatch(std::make_shared<const PreparedRows>(options, type, select_samples(all, samples)));
  }

  CheckedInput checked;
  SharedOptions options;
  at::ScalarType type;
};

}  // namespace

std::shared_ptr<const Network> Baseline::with_solver(const SolverConfig& solver) const {
  const std::shared_ptr<Baseline> changed = copy();
  *solver_of(changed->config_) = solver;
  check_config(changed->config_);
  return changed;
}

std::shared_ptr<const Network> Baseline::to(const at::Device& device) const {
  const auto result = make_network(config_, {.type = type(), .device = device});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) result->parameters()[i].second.copy_(parameters_[i].second);
  return result;
}

PreparedBatch Baseline::prepare(const ModelInput& input, Reuse) const {
  FW_CHECK(!input.start, "[model] architecture ", config_.architecture.name(),
           " reads a series from its beginning; only fast weight programmers take a start");
  SharedOptions sizes;
  sizes.channels = config_.channels;
  sizes.static_features = config_.static_features;
  return PreparedBatch(std::make_shared<const PreparedRows>(sizes, type(), input));
}

ModelOutput Baseline::forward(const PreparedBatch& batch, const PassOptions& options) const {
  return forward(config_, contents_of<PreparedRows>(batch).checked, options);
}

void check_continuous(const SharedOptions& c, Backend backend) {
  check_shared(c);
  check_solver(c.solver, c.control);
  check_plain_method(c.solver);
  FW_CHECK(backend == Backend::Auto || backend == Backend::Reference,
           "[config] backend must be auto or reference with architecture ", c.architecture,
           ", which has no kernels");
}

void check_rows(const SharedOptions& c) {
  check_shared(c);
  const ControlPath& path = c.control.path;
  FW_CHECK(!std::holds_alternative<LogSignatures>(path) && !std::holds_alternative<Rectilinear>(path),
           "[config] architecture ", c.architecture, " processes rows, and control.kind ", name_of(path),
           " has no values at rows; take hold");
  check_at_least("rows.known_channels", c.known_channels, 0);
  FW_CHECK(c.known_channels < c.channels, "[config] rows.known_channels must be below channels ", c.channels,
           ", got ", c.known_channels);
}

void check_known_channels(const ModelConfig& model, const FittedRows& rows) {
  check_at_least("rows.known_channels", rows.known_channels, 0);
  FW_CHECK(rows.known_channels < model.channels, "[config] rows.known_channels must be below channels ",
           model.channels, ", got ", rows.known_channels);
}

void check_published_rows(const SharedOptions& c, const RowConfig& rows) {
  const bool published = rows.input != RowInput::Masked;
  FW_CHECK(published || !rows.values_only, "[config] rows.values_only needs rows.input published");
  FW_CHECK(!published || c.channels % 2 == 1,
           "[config] rows.input published takes time, counts and values: an odd number of channels, got ",
           c.channels);
}

void check_heads(int64_t hidden_size, int64_t heads, int64_t feed_forward_size) {
  check_at_least("heads", heads, 1);
  check_at_least("feed_forward_size", feed_forward_size, 0);
  FW_CHECK(hidden_size % heads == 0, "[config] hidden_size ", hidden_size, " is not divisible by heads ",
           heads);
}

double base_parameters(const SharedOptions& c, int64_t layers) {
  const auto d = static_cast<double>(c.hidden_size), inputs = 1 + 2 * static_cast<double>(c.channels),
             signal = static_cast<double>(signal_size(c.channels, c.control));
  return 4 * d * (inputs + signal + static_cast<double>(layers) * d + static_cast<double>(c.outputs)) +
         static_cast<double>(c.static_hidden_size) * (static_cast<double>(c.static_features) + d);
}

double field_parameters(double state, double hidden, int64_t layers, double out) {
  return layers == 0 ? state * out : hidden * (state + static_cast<double>(layers - 1) * hidden + out);
}

double feed_forward_parameters(double state, int64_t feed_forward_size, int64_t layers) {
  const double hidden = feed_forward_size > 0 ? static_cast<double>(feed_forward_size) : 4 * state;
  return 2 * static_cast<double>(layers) * state * hidden;
}

std::optional<StaticNet> make_static_net(const SharedOptions& config, int64_t size,
                                         nn::ParameterMaker& make) {
  if (config.static_features == 0) return {};
  const nn::Linear hidden = make.linear("static.hidden", config.static_features, config.static_hidden_size);
  return StaticNet{hidden, make.linear("static.out", config.static_hidden_size, size)};
}

Tensor last_rows(const Tensor& rows, const Tensor& offsets) {
  const Tensor counts = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  if (rows.size(0) == 0) {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = counts.size(0);
    return at::zeros(shape, rows.options());
  }
  const Tensor last = rows.index_select(0, at::clamp_min(offsets.slice(0, 1) - 1, 0));
  if (counts.gt(0).all().item<bool>()) return last;
  std::vector<int64_t> shape(static_cast<size_t>(rows.dim()), 1);
  shape[0] = -1;
  return at::where(counts.gt(0).view(shape), last, at::zeros({}, last.options()));
}

ModelOutput read_states(const SharedOptions& config, const ForwardOptions& options, const nn::Linear& head,
                        const CheckedInput& input, const Tensor& states, const Tensor& w) {
  Tensor read = states;
  if (options.mode == Mode::Train && config.dropout > 0) {
    Random random(options.seed);
    read = read * dropout_mask(states.sizes(), config.dropout, random, states.scalar_type());
  }
  const Tensor fast = w.defined() ? w : states.view({states.size(0), 1, 1, -1});
  const Tensor& offsets = input.requested.offsets;
  return make_output(linear(head, read), input.requested, {fast},
                     {{last_rows(fast, offsets)}, last_rows(input.requested.times, offsets)});
}

ModelOutput series_output(const Tensor& outputs, const RaggedTimes& requested) {
  const Tensor counts = requested.offsets.slice(0, 1) - requested.offsets.slice(0, 0, -1);
  const Tensor each = outputs.repeat_interleave(counts, 0);  // [M, O]
  return make_output(each, requested, {each.view({each.size(0), 1, 1, -1})}, {});
}

}  // namespace fastweights

#include "architectures/baseline.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "model/config_names.h"
#include "model/output_index.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "tensor/random_tensor.h"

namespace fastweights {

namespace {

// a checked input as a prepared batch
struct CheckedBatch final : PreparedBatch::Contents {
  explicit CheckedBatch(CheckedInput input) : input(std::move(input)) {}

  int64_t samples() const override { return input.series.samples(); }
  PreparedBatch select(const std::vector<int64_t>& samples) const override {
    return PreparedBatch(std::make_shared<const CheckedBatch>(select_samples(input, samples)));
  }

  CheckedInput input;
};

}  // namespace

CheckedInput select_samples(const CheckedInput& input, const std::vector<int64_t>& samples) {
  ModelInput all = {input.series, input.static_features};
  all.output_times = input.requested;
  const ModelInput some = select_samples(all, samples);
  return {some.series, some.static_features, *some.output_times, input.at_ends};
}

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

void Baseline::place(const at::Device& device) {
  if (!device.is_cpu()) flat_ = nn::move_parameters(parameters_, device);
}

CheckedInput Baseline::check(const ModelInput& input) const {
  FW_CHECK(!input.start, "[model] architecture ", config_.architecture.name(),
           " reads a series from its beginning; only fast weight programmers take a start");
  SharedOptions sizes;
  sizes.channels = config_.channels;
  sizes.static_features = config_.static_features;
  return check_input(sizes, type(), input);
}

PreparedBatch Baseline::prepare(const ModelInput& input, Reuse) const {
  return PreparedBatch(std::make_shared<const CheckedBatch>(check(input)));
}

ModelOutput Baseline::forward(const PreparedBatch& batch, const PassOptions& options) const {
  return forward(config_, contents_of<CheckedBatch>(batch).input, options);
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

RequestedOutputs requested_outputs(const RaggedTimes& times, const at::Device& device) {
  const Tensor counts = times.offsets.slice(0, 1) - times.offsets.slice(0, 0, -1);
  const Tensor last = at::clamp_min(times.offsets.slice(0, 1) - 1, 0), none = counts.eq(0);
  const bool all = !none.any().item<bool>();
  RequestedOutputs result;
  result.times = times;
  result.last_times = at::zeros({counts.size(0)}, at::kDouble);
  if (times.times.size(0) > 0)
    result.last_times = at::where(none, result.last_times, times.times.index_select(0, last));
  result.sample = on_device(at::arange(counts.size(0), at::kLong).repeat_interleave(counts), device);
  result.last = on_device(last, device);
  if (!all) result.without = on_device(none, device);
  return result;
}

namespace {

// the last output of each sample: rows of [M, ...], zeros for a sample without one
Tensor last_rows(const Tensor& rows, const RequestedOutputs& requested) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = requested.last.size(0);
  if (rows.size(0) == 0) return at::zeros(shape, rows.options());
  const Tensor last = rows_at(rows, requested.last);
  if (!requested.without.defined()) return last;
  std::fill(shape.begin() + 1, shape.end(), 1);
  return at::where(requested.without.view(shape), at::zeros({}, last.options()), last);
}

// the bits of a mask do not depend on the device
Tensor state_mask(const Tensor& states, double rate, const PassOptions& options) {
  Random random(options.seed);
  if (states.is_cuda() && states.scalar_type() == at::kFloat)
    return device_dropout_mask(states.sizes(), rate, random, states.device(), options.device_seed);
  return on_device(dropout_mask(states.sizes(), rate, random, states.scalar_type()), states.device());
}

}  // namespace

ModelOutput read_states(const SharedOptions& config, const PassOptions& options, const nn::Linear& head,
                        const RequestedOutputs& requested, const Tensor& states, const Tensor& w) {
  Tensor read = states;
  if (options.mode == Mode::Train && config.dropout > 0)
    read = read * state_mask(states, config.dropout, options);
  const Tensor fast = w.defined() ? w : states.view({states.size(0), 1, 1, -1});
  return make_output(linear(head, read), requested.times, {fast},
                     {{last_rows(fast, requested)}, requested.last_times});
}

ModelOutput series_output(const Tensor& outputs, const RaggedTimes& requested) {
  const Tensor counts = requested.offsets.slice(0, 1) - requested.offsets.slice(0, 0, -1);
  const Tensor each = outputs.repeat_interleave(counts, 0);  // [M, O]
  return make_output(each, requested, {each.view({each.size(0), 1, 1, -1})}, {});
}

}  // namespace fastweights

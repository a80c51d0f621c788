#include "model/programmer.h"

#include <algorithm>
#include <cmath>

#include "fastweights/error.h"
#include "model/batch.h"
#include "model/engine.h"
#include "model/resident.h"
#include "nn/device_net.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {

struct FastWeightProgrammer::Parts : ModelParts {};

int64_t PreparedInput::samples() const { return static_cast<int64_t>(resident_->samples.size()); }

int64_t PreparedInput::bytes() const { return resident_->bytes(); }

PreparedInput PreparedInput::select(const std::vector<int64_t>& samples) const {
  return PreparedInput(fastweights::select(*resident_, samples));
}

namespace {

// a model is where its parameters are
void check_place(const ModelConfig& config, const ModelOptions& options) {
  if (options.device.is_cpu()) return;
  FW_CHECK(options.device.is_cuda(), "[model] a model is on the CPU or on a CUDA device, not on ",
           options.device);
  FW_CHECK(!options.device.has_index() || options.device.index() == 0,
           "[model] only the first CUDA device can be used, not ", options.device);
  const std::string refusal = device_refusal();
  if (!refusal.empty()) throw std::runtime_error("[model] device cuda cannot be used: " + refusal);
  FW_CHECK(options.type == at::kFloat, "[model] on a GPU numbers are float32, not ", options.type);
  FW_CHECK(config.backend == Backend::Auto || config.backend == Backend::Cuda, "[model] backend ",
           config.backend == Backend::Cpu ? "cpu" : "reference", " cannot be used: the model is on a GPU");
}

void check_kernels(const ModelParts& parts, const ForwardOptions& options) {
  const std::string refusal = engine_refusal(parts, options);
  FW_CHECK(refusal.empty(), "[model] a GPU cannot be used: ", refusal, "; the CPU can");
}

// who does this: the kernels where they can, unless somebody wants the definition
Backend choose_backend(const ModelParts& parts, const ForwardOptions& options) {
  const Backend backend = parts.config.backend;
  if (backend == Backend::Reference) return backend;
  if (backend == Backend::Cuda)
    throw std::runtime_error("[model] backend cuda cannot be used: the model is on the CPU");
  const std::string refusal = engine_refusal(parts, options);
  if (refusal.empty()) return Backend::Cpu;
  FW_CHECK(backend == Backend::Auto, "[model] backend cpu cannot be used: ", refusal);
  return Backend::Reference;
}

SolveOptions solve_options(const ModelParts& parts, const Signal& signal, const Steps& steps) {
  const SolverConfig& s = parts.config.solver;
  SolveOptions result;
  result.method = method(s.method);
  result.steps = steps;
  result.gradient = s.gradient;
  result.memory_limit = s.memory_limit;
  result.parameters = parts.field_parameters();
  const Tensor& coefficients = signal.control().coefficients();
  if (coefficients.requires_grad()) result.parameters.push_back(coefficients);
  return result;
}

// a rule that is not one of ours
std::vector<Rule> own_rules(const Rule& rule) {
  for (const Rule& known : all_rules()) {
    if (known.name == rule.name) return {};
  }
  return {rule};
}

std::vector<Tensor> by_layer(const Tensor& w) {
  std::vector<Tensor> result;
  for (int64_t l = 0; l < w.size(1); ++l) result.push_back(w.select(1, l));
  return result;
}

// the definition: a solver that knows nothing of rules
EngineRun solve_definition(const std::shared_ptr<const ModelParts>& parts, const Signal& signal,
                           const Masks& masks, const Tensor& w0, const Schedule& schedule,
                           const ForwardOptions& options) {
  // a backward pass may call the field when this function is long over: it owns what it needs
  const Field field = [parts, signal, masks, observe = options.observe](const Time& t, const Tensor& w) {
    const Samples x = signal.at(t);
    if (observe) observe(t, x);
    return weights_slope(*parts, x, w, masks);
  };
  const Solution solution = solve(field, w0, schedule.ts, solve_options(*parts, signal, schedule.steps));
  const Tensor all = at::arange(w0.size(0), at::kLong);
  EngineRun run;
  run.w = solution.ys.index({schedule.time_index, schedule.sample_index});
  run.last = solution.ys.index({schedule.last_index, all});
  run.status = solution.status;
  run.steps = solution.steps;
  run.evaluations = solution.evaluations;
  run.backend = "reference";
  return run;
}

}  // namespace

FastWeightProgrammer::FastWeightProgrammer(const ModelConfig& config, const ModelOptions& options) {
  check_config(config, options.own_rules);
  check_place(config, options);
  parts_ = std::make_shared<Parts>(Parts{make_parts(config, options)});
}

const ModelConfig& FastWeightProgrammer::config() const { return parts_->config; }

void FastWeightProgrammer::set_solver(const SolverConfig& solver) {
  // a copy: backward passes still to come keep what they began with
  Parts changed = *parts_;
  changed.config.solver = solver;
  check_config(changed.config, own_rules(changed.wiring.rule));
  parts_ = std::make_shared<Parts>(std::move(changed));
}

at::Device FastWeightProgrammer::device() const { return parts_->device(); }

void FastWeightProgrammer::check_device() const {
  if (!device().is_cpu()) check_kernels(*parts_, {});
}

Tensor FastWeightProgrammer::flat_parameters() const { return parts_->flat; }

FastWeightProgrammer FastWeightProgrammer::to(const at::Device& device) const {
  FastWeightProgrammer copy(
      parts_->config,
      {.type = parts_->type(), .own_rules = own_rules(parts_->wiring.rule), .device = device});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_->parameters.size(); ++i)
    copy.parts_->parameters[i].second.copy_(parts_->parameters[i].second);
  return copy;
}

const NamedParameters& FastWeightProgrammer::parameters() const& { return parts_->parameters; }

NamedParameters FastWeightProgrammer::parameters() && { return parts_->parameters; }

std::vector<Tensor> FastWeightProgrammer::parameter_tensors() const {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parts_->parameters) result.push_back(tensor);
  return result;
}

int64_t FastWeightProgrammer::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parts_->parameters) count += tensor.numel();
  return count;
}

namespace {

Tensor start_weights(const ModelParts& parts, const ModelInput& input, const ModelBatch& batch,
                     const Masks& masks) {
  if (input.start) return at::stack(input.start->w, 1).to(parts.type());
  const Signal& signal = batch.signal;
  return initial_weights(parts, signal.at(Time(batch.begin)), signal.first(), batch.static_features, masks);
}

}  // namespace

PreparedInput FastWeightProgrammer::prepare(const ModelInput& input) const {
  FW_CHECK(!device().is_cpu(), "[model] inputs are prepared for a GPU, and this model is on the CPU");
  check_kernels(*parts_, {});
  return PreparedInput(make_resident(*parts_, input));
}

bool FastWeightProgrammer::can_record(const PreparedInput& input) const {
  return can_be_recorded(parts_, input.resident());
}

ModelOutput FastWeightProgrammer::forward(const PreparedInput& input, const ForwardOptions& options) const {
  const ModelParts& parts = *parts_;
  check_kernels(parts, options);
  const Resident& batch = input.resident();
  const Masks masks = make_masks(parts, options, input.samples(), batch.times.size(0));
  const Tensor w0 = batch.start.defined()
                        ? batch.start
                        : initial_weights(parts, batch.begin, batch.first, batch.static_features, masks);
  const EngineRun solved = run_resident(parts_, batch, masks, w0);
  Samples x = batch.query;
  if (parts.config.query == QueryTime::FirstObservation) {
    const Tensor first = nn::linear(*parts.first, {batch.first, {}}, parts.wiring.products).value;
    x.value = x.derivative = first.index({batch.sample_index});
  }
  ModelOutput result;
  result.outputs = readout(parts, x, solved.w, batch.sample_index, masks);
  result.times = batch.times;
  result.offsets = batch.offsets;
  result.w = by_layer(solved.w);
  result.last = {by_layer(solved.last), batch.last_times};
  result.steps = solved.steps;
  result.evaluations = solved.evaluations;
  result.backend = solved.backend;
  result.plan = solved.plan;
  return result;
}

namespace {

// on a GPU nobody looks at numbers while they are made
Status check_outputs(const ModelOutput& output) {
  const at::NoGradGuard no_grad;
  const Tensor values = output.outputs.detach();
  if (values.numel() == 0 || at::isfinite(values).all().item<bool>()) return {};
  const Tensor bad = at::isfinite(values).logical_not().any(-1).cpu();
  const int64_t row = at::nonzero(bad)[0].item<int64_t>();
  const int64_t* o = output.offsets.data_ptr<int64_t>();
  const int64_t b = std::upper_bound(o, o + output.offsets.size(0), row) - o - 1;
  return {Outcome::NotFinite, b, output.times[row].item<double>(), 0,
          output.w.back()[row].abs().max().item<double>()};
}

}  // namespace

ModelOutput FastWeightProgrammer::forward(const ModelInput& input, const ForwardOptions& options) const {
  const ModelParts& parts = *parts_;
  if (!device().is_cpu()) {
    check_kernels(parts, options);
    ModelOutput result = forward(prepare(input), options);
    result.status = check_outputs(result);
    return result;
  }
  const ModelBatch batch = make_model_batch(parts, input);
  const Schedule& schedule = batch.schedule;
  const Masks masks = make_masks(parts, options, batch.samples(), batch.outputs.times.size(0));
  const Tensor w0 = start_weights(parts, input, batch, masks);
  const Backend backend = choose_backend(parts, options);
  const bool engine = backend == Backend::Cpu || parts.config.solver.method == kExactFlow;
  const EngineRun solved = engine ? run_engine(parts_, batch.signal, masks, w0, schedule, backend)
                                  : solve_definition(parts_, batch.signal, masks, w0, schedule, options);

  ModelOutput result;
  const Samples x = query_samples(parts, batch, options);
  result.outputs = readout(parts, x, solved.w, schedule.sample_index, masks);
  result.times = batch.wanted.times;
  result.offsets = batch.wanted.offsets;
  result.w = by_layer(solved.w);
  result.last = {by_layer(solved.last), last_times(input, batch)};
  result.status = solved.status;
  result.steps = solved.steps;
  result.evaluations = solved.evaluations;
  result.backend = solved.backend;
  result.plan = solved.plan;
  return result;
}

bool FastWeightProgrammer::rows_cost_time() const {
  const ModelParts& parts = *parts_;
  return parts.layer_count() > 1 || !nn::keeps_no_numbers(parts.layers[0], parts.wiring);
}

MemoryPlan FastWeightProgrammer::plan(const PreparedInput& input) const {
  return plan_resident(parts_, input.resident());
}

std::optional<MemoryPlan> FastWeightProgrammer::plan(const ModelInput& input) const {
  if (!device().is_cpu()) {
    const at::NoGradGuard no_grad;
    return plan_resident(parts_, prepare(input).resident());
  }
  if (choose_backend(*parts_, {}) == Backend::Reference) return {};
  const ModelBatch batch = make_model_batch(*parts_, input);
  const Tensor w0 = at::zeros(parts_->weight_shape(batch.samples()), parts_->type());
  return plan_engine(parts_, batch.signal, w0, batch.schedule);
}

double median_gap(const RaggedSeries& series) {
  check_series(series, "median_gap", 1);
  const Tensor gaps = series.times.slice(0, 1) - series.times.slice(0, 0, -1);
  Tensor inside = at::ones_like(gaps).to(at::kBool);
  for (int64_t b = 1; b < series.samples(); ++b) inside[series.offsets[b].item<int64_t>() - 1] = false;
  const Tensor own = gaps.masked_select(inside);
  FW_CHECK(own.size(0) > 0, "[median_gap] no series has two points");
  return own.median().item<double>();
}

}  // namespace fastweights

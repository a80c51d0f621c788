#include "model/programmer.h"

#include "base/error.h"
#include "model/engine.h"
#include "nn/cuda/device_net.h"
#include "ops/scan/cuda/time_parallel.h"
#include "ops/scan/plan.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// a model is where its parameters are
void check_options(const ProgrammerConfig& config, const ModelOptions& options) {
  if (options.device.is_cpu()) return;
  FW_CHECK(options.type == at::kFloat,
           "[model] on a GPU parameters of fast weight programmers are float32, not ", options.type);
  FW_CHECK(config.backend == Backend::Auto || config.backend == Backend::Cuda, "[model] backend ",
           config.backend == Backend::Cpu ? "cpu" : "reference", " cannot be used: the model is on a GPU");
}

void check_kernels(const ModelParts& parts, const ForwardOptions& options) {
  const std::string refusal = engine_refusal(parts, options);
  FW_CHECK(refusal.empty(), "[model] a GPU cannot be used: ", refusal, "; the CPU can");
}

// the kernels where they can, unless the definition is requested
Backend choose_backend(const ModelParts& parts, const ForwardOptions& options) {
  const Backend backend = parts.config.backend;
  if (!parts.device().is_cpu()) {
    check_kernels(parts, options);
    return Backend::Cuda;
  }
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
  result.method = *s.method;
  result.steps = steps;
  result.gradient = s.gradient;
  result.memory_limit = s.memory_limit;
  result.parameters = parts.field_parameters();
  const Tensor& coefficients = signal.control().coefficients();
  if (coefficients.requires_grad()) result.parameters.push_back(coefficients);
  return result;
}

// a rule that is not one of ours
std::vector<Rule> custom_rules(const Rule& rule) {
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
EngineRun solve_definition(const std::shared_ptr<const ModelParts>& parts, const ModelBatch& batch,
                           const Masks& masks, const Tensor& w0, const ForwardOptions& options) {
  const Signal& signal = batch.signal;
  const Schedule& schedule = batch.schedule;
  // a backward pass may call the field after this function has returned: it owns what it needs
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

FastWeightProgrammer::FastWeightProgrammer(const ProgrammerConfig& config, const ModelOptions& options) {
  check_programmer(config, options.custom_rules);
  check_options(config, options);
  ProgrammerConfig chosen = config;
  chosen.solver = chosen_solver(config, options.custom_rules);
  parts_ = std::make_shared<const ModelParts>(make_parts(chosen, options));
}

std::shared_ptr<const Network> FastWeightProgrammer::with_solver(const SolverConfig& solver) const {
  // a copy: backward passes still to come keep what they began with
  ModelParts changed = *parts_;
  changed.config.solver = solver;
  const std::vector<Rule> rules = custom_rules(changed.wiring.rule);
  check_programmer(changed.config, rules);
  changed.config.solver = chosen_solver(changed.config, rules);
  return std::make_shared<FastWeightProgrammer>(std::make_shared<const ModelParts>(std::move(changed)));
}

void FastWeightProgrammer::check_device() const {
  if (!device().is_cpu()) check_kernels(*parts_, {});
}

std::shared_ptr<const Network> FastWeightProgrammer::to(const at::Device& device) const {
  auto copy = std::make_shared<FastWeightProgrammer>(
      parts_->config,
      ModelOptions{
          .type = parts_->type(), .custom_rules = custom_rules(parts_->wiring.rule), .device = device});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parts_->parameters.size(); ++i)
    copy->parameters()[i].second.copy_(parts_->parameters[i].second);
  return copy;
}

PreparedBatch FastWeightProgrammer::prepare(const ModelInput& input, Reuse reuse) const {
  check_device();
  return PreparedBatch(prepare_steps(parts_, input, reuse));
}

namespace {

// the signal where the query reads it, one row per output
Samples query_of(const ModelParts& parts, const PreparedSteps& batch, const ForwardOptions& options) {
  if (options.observe) return query_samples(parts, *batch.lazy, options);
  if (parts.config.query != QueryTime::FirstObservation) return batch.query;
  const Tensor first = nn::linear(*parts.first, {batch.first, {}}, parts.wiring.products).value;
  const Tensor x =
      first.is_cpu() ? first.index_select(0, batch.sample_index) : first.index({batch.sample_index});
  return {x, x};
}

}  // namespace

ModelOutput FastWeightProgrammer::forward(const PreparedBatch& prepared, const PassOptions& options) const {
  const ModelParts& parts = *parts_;
  const auto& batch = contents_of<PreparedSteps>(prepared);
  const Backend backend = choose_backend(parts, options);
  const bool engine =
      backend != Backend::Reference || std::holds_alternative<Flow>(*parts.config.solver.method);
  FW_CHECK(batch.lazy || (engine && !options.observe),
           "[model] the signal of this batch is sampled at fixed steps; prepare it with Reuse::Once");
  const Masks masks = make_masks(parts, options, batch.samples(), batch.sample_index.size(0));
  const Tensor w0 = batch.start.defined()
                        ? batch.start
                        : initial_weights(parts, batch.begin, batch.first, batch.static_features, masks);
  const EngineRun solved = engine ? run_engine(parts_, batch, masks, w0, backend)
                                  : solve_definition(parts_, *batch.lazy, masks, w0, options);
  const Samples x = query_of(parts, batch, options);
  ModelOutput result = make_output(readout(parts, x, solved.w, batch.sample_index, masks), batch.times,
                                   by_layer(solved.w), {by_layer(solved.last), batch.last_times});
  result.status = solved.status;
  result.steps = solved.steps;
  result.evaluations = solved.evaluations;
  result.backend = solved.backend;
  result.plan = solved.plan;
  return result;
}

std::optional<MemoryPlan> FastWeightProgrammer::plan(const PreparedBatch& batch) const {
  if (choose_backend(*parts_, {}) == Backend::Reference) return {};
  return plan_engine(parts_, contents_of<PreparedSteps>(batch));
}

bool FastWeightProgrammer::can_record(const PreparedBatch& prepared) const {
  const auto& batch = contents_of<PreparedSteps>(prepared);
  if (device().is_cpu() || !batch.sampled) return false;
  const kernels::ScanPlan plan = scan_plan(block_task(parts_, batch, {}, Backend::Cuda).scan,
                                           parts_->wiring.heads, parts_->wiring.key_width);
  return plan_engine(parts_, batch).blocks == 1 && !splits_time(plan, batch.samples(), batch.rows.longest);
}

bool FastWeightProgrammer::padding_is_costly() const {
  const ModelParts& parts = *parts_;
  return parts.layer_count() > 1 || !nn::fuses_projection(parts.layers[0], parts.wiring);
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

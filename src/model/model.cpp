#include "fastweights/model.h"

#include <cmath>

#include "fastweights/error.h"
#include "model/config_names.h"
#include "model/engine.h"
#include "model/parts.h"
#include "model/schedule.h"
#include "model/signal.h"

namespace fastweights {

struct FastWeightProgrammer::Parts : ModelParts {};

namespace {

void check_backend(Backend backend) {
  if (backend != Backend::Cuda) return;
  throw std::runtime_error("[model] backend cuda cannot be used: this version has no kernels for it");
}

// who does this: the kernels where they can, unless somebody wants the definition
Backend choose_backend(const ModelParts& parts, const ForwardOptions& options) {
  const Backend backend = parts.config.backend;
  if (backend == Backend::Reference) return backend;
  const std::string refusal = engine_refusal(parts, options);
  if (refusal.empty()) return Backend::Cpu;
  FW_CHECK(backend == Backend::Auto, "[model] backend cpu cannot be used: ", refusal);
  return Backend::Reference;
}

void check_static_features(const ModelConfig& config, const Tensor& features, int64_t samples) {
  const int64_t wanted = config.static_features;
  FW_CHECK(wanted > 0 || !features.defined(), "[model] this model takes no static features");
  if (wanted == 0) return;
  FW_CHECK(
      features.defined() && features.dim() == 2 && features.size(0) == samples && features.size(1) == wanted,
      "[model] static features must be [", samples, ", ", wanted, "], got ",
      features.defined() ? message(features.sizes()) : "nothing");
  const Tensor bad = at::nonzero(at::isfinite(features.detach()).logical_not());
  FW_CHECK(bad.size(0) == 0, "[model] sample ", bad[0][0].item<int64_t>(), ": static feature ",
           bad[0][1].item<int64_t>(), " is ",
           features[bad[0][0].item<int64_t>()][bad[0][1].item<int64_t>()].item<double>(),
           "; static features must be finite");
}

// output times in the time of the series: as asked for, or the end of each
RaggedTimes wanted_times(const ModelInput& input) {
  const RaggedSeries& series = input.series;
  const Tensor ends = series.times.index_select(0, series.offsets.slice(0, 1) - 1);
  if (!input.output_times) return {ends, at::arange(series.samples() + 1, at::kLong)};
  const RaggedTimes& wanted = *input.output_times;
  FW_CHECK(wanted.times.defined() && wanted.times.dim() == 1 && wanted.times.scalar_type() == at::kDouble &&
               wanted.offsets.defined() && wanted.offsets.dim() == 1 &&
               wanted.offsets.scalar_type() == at::kLong && wanted.offsets.size(0) == series.samples() + 1,
           "[model] output times must be float64 [M] with int64 offsets [", series.samples() + 1, "]");
  const Tensor times = wanted.times.detach().contiguous(), offsets = wanted.offsets.contiguous();
  const double* t = times.data_ptr<double>();
  const int64_t* o = offsets.data_ptr<int64_t>();
  FW_CHECK(o[0] == 0 && o[series.samples()] == times.size(0),
           "[model] offsets of output times must run from 0 to ", times.size(0), ", got ", o[0], " to ",
           o[series.samples()]);
  const Tensor begins =
      input.start ? input.start->t : series.times.index_select(0, series.offsets.slice(0, 0, -1));
  for (int64_t b = 0; b < series.samples(); ++b) {
    FW_CHECK(o[b + 1] >= o[b], "[model] offsets of output times fall at sample ", b);
  }
  for (int64_t b = 0; b < series.samples(); ++b) {
    const double begin = begins[b].item<double>(), end = ends[b].item<double>();
    for (int64_t i = o[b]; i < o[b + 1]; ++i) {
      FW_CHECK(t[i] >= begin && t[i] <= end, "[model] sample ", b, ": output time ", i - o[b], " is ", t[i],
               ", outside of its series from ", begin, " to ", end);
      FW_CHECK(i == o[b] || t[i] > t[i - 1], "[model] sample ", b, ": output times must rise, but time ",
               i - o[b], " is ", t[i], " after ", t[i - 1]);
    }
  }
  return {times, offsets};
}

void check_start(const FastWeights& start, const ModelParts& parts, const RaggedSeries& series) {
  const int64_t samples = series.samples();
  FW_CHECK(start.t.defined() && start.t.dim() == 1 && start.t.size(0) == samples &&
               start.t.scalar_type() == at::kDouble,
           "[model] the start's times must be float64 [", samples, "]");
  FW_CHECK(static_cast<int64_t>(start.w.size()) == parts.layer_count(),
           "[model] the start has fast weights of ", start.w.size(), " layers, the model has ",
           parts.layer_count());
  std::vector<int64_t> shape = parts.weight_shape(samples);
  shape.erase(shape.begin() + 1);
  for (const Tensor& w : start.w) {
    FW_CHECK(w.defined() && w.sizes().vec() == shape, "[model] the start's fast weights must be ",
             at::IntArrayRef(shape), ", got ", w.defined() ? message(w.sizes()) : "nothing");
    FW_CHECK(at::isFloatingType(w.scalar_type()),
             "[model] the start's fast weights must be floating-point, got ", w.scalar_type());
  }
  const Tensor begins = series.times.index_select(0, series.offsets.slice(0, 0, -1));
  const Tensor ends = series.times.index_select(0, series.offsets.slice(0, 1) - 1);
  const Tensor outside = at::nonzero((start.t >= begins).logical_and(start.t <= ends).logical_not());
  FW_CHECK(outside.size(0) == 0, "[model] the start of sample ", outside[0].item<int64_t>(),
           " is outside of its series");
}

// the signal where the query looks, one row per output
Samples query_samples(const ModelParts& parts, const Signal& signal, const RaggedTimes& outputs,
                      const Tensor& sample_index, const ForwardOptions& options) {
  const QueryTime when = parts.config.query;
  const auto rows = [&](const Tensor& x) { return x.defined() ? x.index_select(0, sample_index) : x; };
  if (when == QueryTime::FirstObservation) {
    const Tensor x = rows(nn::linear(*parts.first, {signal.first(), {}}, parts.wiring.products).value);
    return {x, x};
  }
  RaggedTimes times = outputs;
  if (when == QueryTime::LastOfBatch) {
    const Tensor end = signal.end();
    times = {end.max().expand({end.size(0)}).contiguous(), at::arange(end.size(0) + 1, at::kLong)};
  }
  const Samples x = signal.sample(times);
  if (options.observe) options.observe(Time(times.times), x);
  return when == QueryTime::LastOfBatch ? Samples{rows(x.value), rows(x.derivative)} : x;
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
  check_backend(config.backend);
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

// an input as the model sees it: checked, on the model's clock, with its steps
struct Batch {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes wanted;  // output times in the time of the series ...
  Signal signal;
  RaggedTimes outputs;  // ... and on the signal's clock
  Tensor begin;         // [B] on the clock
  Schedule schedule;

  int64_t samples() const { return series.samples(); }
  Tensor all() const { return at::arange(samples() + 1, at::kLong); }
};

Batch make_batch(const ModelParts& parts, const ModelInput& input) {
  RaggedSeries series = input.series;
  FW_CHECK(series.offsets.defined() && series.offsets.dim() == 1 && series.samples() > 0,
           "[model] the batch is empty: there must be at least one series");
  series.offsets = series.offsets.contiguous();
  check_series(series, "model", 2);
  FW_CHECK(series.channels() == parts.config.channels, "[model] the series have ", series.channels(),
           " channels, the model takes ", parts.config.channels);
  check_static_features(parts.config, input.static_features, series.samples());
  if (input.start) check_start(*input.start, parts, series);
  const RaggedTimes wanted = wanted_times(input);
  series.values = series.values.to(parts.type());
  const Tensor& features = input.static_features;
  Batch batch = {.series = series,
                 .static_features = features.defined() ? features.to(parts.type()) : features,
                 .wanted = wanted,
                 .signal = Signal(parts.config, series),
                 .outputs = {},
                 .begin = {},
                 .schedule = {}};
  const Signal& signal = batch.signal;
  batch.outputs = {input.output_times ? signal.clock(wanted) : signal.end(), wanted.offsets};
  batch.begin = input.start ? signal.clock({input.start->t, batch.all()}) : signal.begin();
  batch.schedule = make_schedule(parts.config, signal, batch.begin, batch.outputs);
  return batch;
}

Tensor start_weights(const ModelParts& parts, const ModelInput& input, const Batch& batch,
                     const Masks& masks) {
  if (input.start) return at::stack(input.start->w, 1).to(parts.type());
  const Signal& signal = batch.signal;
  return initial_weights(parts, signal.at(Time(batch.begin)), signal.first(), batch.static_features, masks);
}

// when each sample's last output is, in the time of the series
Tensor last_times(const ModelInput& input, const Batch& batch) {
  const RaggedSeries& series = batch.series;
  const Tensor starts =
      input.start ? input.start->t : series.times.index_select(0, series.offsets.slice(0, 0, -1));
  const RaggedTimes& wanted = batch.wanted;
  if (wanted.times.size(0) == 0) return starts;
  const Tensor counts = wanted.offsets.slice(0, 1) - wanted.offsets.slice(0, 0, -1);
  const Tensor last_row = at::clamp(wanted.offsets.slice(0, 1) - 1, 0, wanted.times.size(0) - 1);
  return at::where(counts > 0, wanted.times.index_select(0, last_row), starts);
}

}  // namespace

ModelOutput FastWeightProgrammer::forward(const ModelInput& input, const ForwardOptions& options) const {
  const ModelParts& parts = *parts_;
  const Batch batch = make_batch(parts, input);
  const Schedule& schedule = batch.schedule;
  const Masks masks = make_masks(parts, options, batch.samples(), batch.outputs.times.size(0));
  const Tensor w0 = start_weights(parts, input, batch, masks);
  const Backend backend = choose_backend(parts, options);
  const bool engine = backend == Backend::Cpu || parts.config.solver.method == kExactFlow;
  const EngineRun solved = engine ? run_engine(parts_, batch.signal, masks, w0, schedule, backend)
                                  : solve_definition(parts_, batch.signal, masks, w0, schedule, options);

  ModelOutput result;
  const Samples x = query_samples(parts, batch.signal, batch.outputs, schedule.sample_index, options);
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

std::optional<MemoryPlan> FastWeightProgrammer::plan(const ModelInput& input) const {
  if (choose_backend(*parts_, {}) == Backend::Reference) return {};
  const Batch batch = make_batch(*parts_, input);
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

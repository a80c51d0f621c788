#include <cmath>

#include "fastweights/published.h"
#include "model/programmer_config.h"
#include "models.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// adaptive steps: two versions of torchdiffeq differ by up to 1e-11 on smooth problems and by 4e-9 where the
// field reads a spline (golden/README.md)
double tolerance_of(const GoldenFile& file, const PublishedModel& published) {
  return std::holds_alternative<AdaptiveSteps>(ProgrammerConfig(published.model.config()).solver.steps)
             ? 4e-9
             : file.target().rounding;
}

void compare_gradients(GoldenFile& file, const std::string& prefix, const PublishedModel& published,
                       const Tensor& loss) {
  std::set<std::string> none;
  for (const auto& name : file.json("params_without_gradient")) none.insert(name.get<std::string>());
  for (const auto& [name, grad] : published_gradients(published, loss)) {
    if (!none.contains(name)) file.compare(prefix + "." + name, grad, tolerance_of(file, published));
  }
}

struct FwpRun {
  std::string prefix;
  Gradient gradient;
  FirstStepGradient first_step = FirstStepGradient::None;
};

// which gradients the file has, and how we make them
std::vector<FwpRun> runs_of(const GoldenFile& file) {
  // kernels have no adjoint
  std::vector<FwpRun> runs;
  if (file.target().backend == Backend::Reference) runs.push_back({"grad_adjoint", Gradient::Adjoint});
  const bool adaptive = !file.names("grad_direct_detached.").empty();
  const bool joint_search =
      adaptive || (file.has_text("solver_kwargs") && file.json("solver_kwargs").contains("rtol"));
  if (joint_search) {
    runs.push_back({"grad_direct", Gradient::Exact, FirstStepGradient::Through});
    if (adaptive) runs.push_back({"grad_direct_detached", Gradient::Exact});
    if (adaptive) runs.push_back({"grad_direct_detached", Gradient::Checkpointed});
  } else {
    runs.push_back({"grad_direct", Gradient::Exact});
    runs.push_back({"grad_direct", Gradient::Checkpointed});
  }
  return runs;
}

// logits, loss and gradients, in every mode
void compare_runs(GoldenFile& file, PublishedModel& published, const std::vector<std::string>& weights) {
  const SolverConfig given = ProgrammerConfig(published.model.config()).solver;
  const double tolerance = tolerance_of(file, published);
  for (const FwpRun& run : runs_of(file)) {
    SolverConfig solver = given;
    solver.gradient = run.gradient;
    if (auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps))
      adaptive->first_step_gradient = run.first_step;
    published.model.set_solver(solver);
    const ModelOutput output = published.model.forward(published.input);
    if (!output.status) return file.fail(run.prefix + ": " + output.status.message());
    if (output.backend.rfind(file.target().name, 0) != 0)
      return file.fail("backend " + output.backend + " ran instead of " + file.target().name);
    const Tensor logits = published_logits(output, file.tensor("out.logits"));
    file.compare("out.logits", logits.detach(), tolerance);
    for (size_t l = 0; l < weights.size(); ++l) {
      const Tensor expected = file.tensor(weights[l]);
      file.compare(weights[l], output.w[l].detach().reshape(expected.sizes()), tolerance);
    }
    const Tensor loss = published_loss(file, logits);
    file.compare("out.loss", loss.detach(), tolerance);
    compare_gradients(file, run.prefix, published, loss);
  }
  published.model.set_solver(given);
}

// the states at all of the solver's times
void compare_trajectory(GoldenFile& file, const PublishedModel& published, const RaggedTimes& times) {
  ModelInput input = published.input;
  input.output_times = times;
  const at::NoGradGuard no_grad;
  const ModelOutput output = published.model.forward(input);
  const Tensor expected = file.tensor("ode.z_t");  // [T, B, S]
  const int64_t outputs = expected.size(0), samples = expected.size(1);
  const Tensor w = at::stack(output.w, 1).reshape({samples, outputs, -1}).transpose(0, 1);
  file.compare("ode.z_t", w.contiguous(), tolerance_of(file, published));
  file.compare("ode.z0", w[0].contiguous(), tolerance_of(file, published));
}

}  // namespace

void check_fwp_spline(GoldenFile& file) {
  compare_coefficients(file);
  PublishedModel published = spline_model(file);
  const bool map = ProgrammerConfig(published.model.config()).tensor_map;
  compare_runs(file, published, {map ? "out.z_T" : "out.W_T"});
  const Tensor times = file.tensor("ode.t");
  const int64_t samples = published.input.series.samples();
  compare_trajectory(file, published,
                     {times.repeat({samples}), at::arange(samples + 1, at::kLong) * times.size(0)});
}

namespace {

ProgrammerConfig eigenworms_config(GoldenFile& file) {
  const std::map<std::string, std::string> kClasses = {{"FastWeightODE (logsig-ode-fwp)", "ode_"},
                                                       {"FastWeightCDEv2 (logsig-cde-fwp)", "cde_"},
                                                       {"MultiLayerFastWeightODE (two layers)", "multi_"}};
  const std::string kind = file.text("reference_class");
  if (!kClasses.contains(kind)) throw std::runtime_error("not understood: class " + kind);
  const auto depth = static_cast<int64_t>(file.number("depth"));
  ProgrammerConfig config =
      ProgrammerConfig(published::eigenworms(kClasses.at(kind) + file.text("rule"), depth));
  config.channels = file.tensor("in.controls").size(2);
  config.hidden_size = static_cast<int64_t>(file.number("hidden_dim"));
  config.heads = static_cast<int64_t>(file.number("num_heads"));
  config.feed_forward_size = static_cast<int64_t>(file.number("trafo_ff_dim"));
  config.outputs = static_cast<int64_t>(file.number("output_dim"));
  auto& signatures = std::get<LogSignatures>(config.control.path);
  std::get<PointWindows>(signatures.windows).increments = static_cast<int64_t>(file.number("step"));
  if (file.has_text("use_v_laynorm")) config.value_norm = file.json("use_v_laynorm").get<bool>();
  if (file.has_text("residual")) config.residual = file.json("residual").get<bool>();
  if (file.has_text("delta_post_tanh") && file.text("rule") == "delta") {
    config.rule = file.json("delta_post_tanh").get<bool>() ? "delta_post" : "delta_pre";
  }
  if (file.has_text("query_with_init") && file.json("query_with_init").get<bool>()) {
    config.query = QueryTime::FirstObservation;
  }
  config.solver.method = method(file.text("solver_method"));
  auto& steps = std::get<FixedSteps>(config.solver.steps);
  const nlohmann::json options = file.json("solver_options");
  for (const auto& [key, value] : options.items()) {
    if (key == "step_size") {
      steps.size = value.get<double>();
    } else if (key == "eps") {
      steps.edges = StageEdges::Shortened;
      steps.shortening = value.get<double>();
    } else if (key == "perturb") {
      steps.edges = value.get<bool>() ? StageEdges::Inside : StageEdges::AsIs;
    } else {
      throw std::runtime_error("not understood: solver option " + key);
    }
  }
  config.backend = file.target().backend;
  return config;
}

// times and windows at which the forward pass looked, found again by what it saw there
void compare_trace(GoldenFile& file, const PublishedModel& published) {
  // models with values of their own ask for x and for x'
  const int64_t looks = ProgrammerConfig(published.model.config()).drive == Drive::X ? 1 : 2;
  const Tensor windows = file.tensor("in.logsig")[0];
  std::vector<double> times;
  std::vector<int64_t> indices;
  const auto observe = [&](const Time& t, const Samples& x) {
    const Tensor difference = (windows - x.value.detach()[0]).abs().amax(1);
    // the query is asked for once
    const bool query = !t.shared();
    for (int64_t i = 0; i < (query ? 1 : looks); ++i) {
      times.push_back(query ? t.tensor()[0].item<double>() : t.value());
      indices.push_back(at::argmin(difference).item<int64_t>());
    }
  };
  const at::NoGradGuard no_grad;
  published.model.forward(published.input, {.observe = observe});
  file.compare("trace.stage_t", at::tensor(times, at::kDouble), kRounding);
  file.compare("trace.window_index", at::tensor(indices, at::kLong), 0);
}

}  // namespace

void check_fwp_eigenworms(GoldenFile& file) {
  if (!file.has("in.controls")) {
    if (file.target().backend != Backend::Reference)
      throw std::runtime_error("[model] backend cpu cannot be used: the file has times alone");
    return check_single_precision_trace(file);
  }
  const Tensor controls = file.tensor("in.controls");  // [B, L, C]
  PublishedModel published = {
      Model(eigenworms_config(file), {.type = file.target().type, .device = file.target().device}), {}, {}};
  const ProgrammerConfig config = ProgrammerConfig(published.model.config());
  published.names = published::load_parameters(published.model, file_parameters(file));
  published.input.series = shared_times(at::arange(controls.size(1), at::kDouble), controls);

  const auto& signatures = std::get<LogSignatures>(config.control.path);
  const WindowedLogSignature found =
      logsignature_windows(published.input.series, signatures.windows, {.depth = signatures.depth});
  const Tensor expected = file.tensor("in.logsig");
  file.compare("in.logsig", found.values.reshape(expected.sizes()), kRounding);
  file.compare("in.initial", controls.select(1, 0), kRounding);
  // half-open ranges of points
  const int64_t count = expected.size(1);
  const Tensor intervals = at::stack({found.begin.slice(0, 0, count), found.end.slice(0, 0, count) + 1}, 1);
  file.compare("in.intervals", intervals.to(file.tensor("in.intervals").scalar_type()), kRounding);

  std::vector<std::string> weights = {"out.W_T"};
  if (config.layers > 1) {
    weights.clear();
    for (int64_t l = 1; l <= config.layers; ++l) weights.push_back("out.W_T_layer" + std::to_string(l));
  }
  compare_runs(file, published, weights);
  if (file.target().backend == Backend::Reference) compare_trace(file, published);
  // the solver runs from 0 to one more than there are windows
  file.compare("ode.t", at::tensor({0.0, static_cast<double>(count + 1)}, at::kDouble), kRounding);
  const at::NoGradGuard no_grad;
  ModelInput input = published.input;
  const ModelOutput end = published.model.forward(input);
  const int64_t samples = controls.size(0);
  input.output_times = {at::zeros({samples}, at::kDouble), at::arange(samples + 1, at::kLong)};
  const ModelOutput begin = published.model.forward(input);
  const auto flat = [&](const ModelOutput& output) { return at::stack(output.w, 1).reshape({samples, -1}); };
  file.compare("ode.z0", flat(begin), file.target().rounding);
  file.compare("ode.z_t", at::stack({flat(begin), flat(end)}, 0), file.target().rounding);
}

}  // namespace fastweights::golden

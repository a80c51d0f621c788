#include <set>

#include "fastweights/model.h"
#include "fastweights/published.h"
#include "models.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// a system of the published code, its parameters and the data that it saw
struct Baseline {
  Model model;
  std::map<std::string, std::vector<std::string>> names;  // ours to theirs, one below the other
  ModelInput input = {};
};

int64_t whole(const GoldenFile& file, const std::string& key) {
  return static_cast<int64_t>(file.number(key));
}

bool flag(const GoldenFile& file, const std::string& key) {
  return file.has_text(key) && file.json(key).get<bool>();
}

// torchdiffeq's arguments
void read_solver(const GoldenFile& file, SolverConfig& solver) {
  if (!file.has_text("solver_method")) return;
  const std::string method = file.text("solver_method");
  // the others have no solver, or one step for each gap, as is our own way
  if (method == "none" || method == "rk4 (one step per observation gap)") return;
  solver.method = fastweights::method(method);
  FixedSteps steps;
  if (const auto* given = std::get_if<FixedSteps>(&solver.steps)) steps = *given;
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
  solver.steps = steps;
}

RowInput row_input(const GoldenFile& file) {
  const std::string variant = file.text("variant");
  if (variant.rfind("unmodified reference", 0) == 0) return RowInput::PublishedInPlace;
  if (variant.find("true difference between consecutive cumulative counts") != std::string::npos)
    return RowInput::Published;
  throw std::runtime_error("not understood: variant " + variant);
}

ModelConfig spline_config(GoldenFile& file) {
  const std::string name = file.text("model_name");
  ModelConfig config = published::baseline(
      name, flag(file, "use_intensity") ? published::Intensity::On : published::Intensity::Off);
  config.channels = file.tensor("in.X_raw").size(2);
  config.outputs = whole(file, "output_channels");
  const auto set = [&](const char* key, int64_t value) {
    config = with_setting(config, key, std::to_string(value));
  };
  set("hidden_size", whole(file, "hidden_channels"));
  if (config.architecture.get_if<NeuralCde>() || config.architecture.get_if<OdeRnn>()) {
    set("field.hidden_size", whole(file, "hidden_hidden_channels"));
    set("field.layers", whole(file, "num_hidden_layers"));
  }
  if (auto* rnn = config.architecture.get_if<OdeRnn>()) rnn->rows.input = row_input(file);
  if (auto* gru = config.architecture.get_if<GapGru>()) gru->rows.input = row_input(file);
  if (file.has("in.static")) {
    config.static_features = file.tensor("in.static").size(1);
    set("static_hidden_size", file.tensor("param.model.linear1.weight").size(0));
  }
  // files of models without a solver have its settings, too
  SolverConfig unused, *solver = solver_of(config);
  read_solver(file, solver ? *solver : unused);
  return config;
}

ModelOptions model_options(const GoldenFile& file) {
  return {.type = file.target().type, .device = file.target().device};
}

Baseline spline_baseline(GoldenFile& file) {
  Baseline result = {Model(spline_config(file), model_options(file)), {}};
  result.names = published::load_state_dict(result.model, file_parameters(file));
  const Tensor times = file.tensor("in.times"), data = file.tensor("in.X_raw");
  result.input.series = shared_times(times, data);
  result.input.output_times = {times.index_select(0, file.tensor("in.final_index")),
                               at::arange(data.size(0) + 1, at::kLong)};
  if (file.has("in.static")) result.input.static_features = file.tensor("in.static");
  return result;
}

void compare_gradients(GoldenFile& file, const std::string& prefix, const Baseline& baseline,
                       const Tensor& loss) {
  std::set<std::string> none;
  if (file.has_text("params_without_gradient")) {
    for (const auto& name : file.json("params_without_gradient")) none.insert(name.get<std::string>());
  }
  const std::vector<Tensor> grads =
      vector_jacobian({loss}, baseline.model.parameter_tensors(), {at::ones_like(loss)});
  for (size_t i = 0; i < grads.size(); ++i) {
    int64_t row = 0;
    for (const std::string& theirs : baseline.names.at(baseline.model.parameters()[i].first)) {
      const int64_t rows = file.tensor("param." + theirs).size(0);
      const Tensor part = grads[i].narrow(0, row, rows);
      if (!none.contains(theirs)) file.compare(prefix + "." + theirs, part.contiguous(), kRounding);
      row += rows;
    }
  }
}

struct Run {
  const char* prefix;
  Gradient gradient;
};

// without a solver there is one gradient, and the files have it twice
std::vector<Run> runs_of(const Baseline& baseline) {
  std::vector<Run> runs = {{"grad_direct", Gradient::Exact}, {"grad_adjoint", Gradient::Adjoint}};
  if (baseline.model.config().architecture.get_if<GapGru>())
    return {runs[0], {"grad_adjoint", Gradient::Exact}};
  runs.push_back({"grad_direct", Gradient::Checkpointed});
  return runs;
}

Model with_gradient(const Model& model, Gradient gradient) {
  Model copy = model;
  if (!solver_of(model.config())) return copy;
  SolverConfig solver = *solver_of(model.config());
  if (solver.gradient == gradient) return copy;
  solver.gradient = gradient;
  copy.set_solver(solver);
  return copy;
}

// outputs, loss and gradients in every mode
void compare_runs(GoldenFile& file, const Baseline& baseline) {
  for (const Run& run : runs_of(baseline)) {
    const ModelOutput output = with_gradient(baseline.model, run.gradient).forward(baseline.input);
    if (!output.status) return file.fail(std::string(run.prefix) + ": " + output.status.message());
    Tensor loss;
    if (file.text("loss") == "mean of squared outputs") {
      const std::string name = file.has("out.stream") ? "out.stream" : "out.logits";
      const Tensor everywhere = output.outputs.view(file.tensor(name).sizes());
      file.compare(name, everywhere.detach(), kRounding);
      loss = everywhere.square().mean();
    } else {
      const Tensor logits = published_logits(output, file.tensor("out.logits"));
      file.compare("out.logits", logits.detach(), kRounding);
      loss = published_loss(file, logits);
      if (file.has("out.z_T")) file.compare("out.z_T", output.w[0].detach().flatten(1), kRounding);
    }
    file.compare("out.loss", loss.detach(), kRounding);
    compare_gradients(file, run.prefix, baseline, loss);
  }
}

// states at all of the solver's times
void compare_trajectory(GoldenFile& file, const Baseline& baseline) {
  if (!file.has("ode.z_t")) return;
  const Tensor times = file.tensor("ode.t");
  const int64_t samples = baseline.input.series.samples();
  ModelInput input = baseline.input;
  input.output_times = {times.repeat({samples}), at::arange(samples + 1, at::kLong) * times.size(0)};
  const at::NoGradGuard no_grad;
  const Tensor states =
      baseline.model.forward(input).w[0].reshape({samples, times.size(0), -1}).transpose(0, 1).contiguous();
  file.compare("ode.z_t", states, kRounding);
  file.compare("ode.z0", states[0], kRounding);
}

// every sample's outputs at all observations
void ask_everywhere(GoldenFile& file, Baseline& baseline) {
  const Tensor times = file.tensor("in.times");
  const int64_t samples = baseline.input.series.samples();
  baseline.input.output_times = {times.repeat({samples}), at::arange(samples + 1, at::kLong) * times.size(0)};
}

Baseline rde_baseline(GoldenFile& file) {
  if (file.text("reference_class") != "NeuralRDE")
    throw std::runtime_error("not understood: class " + file.text("reference_class"));
  ModelConfig config = published::neural_rde(whole(file, "depth"));
  config.channels = file.tensor("in.controls").size(2);
  config.outputs = whole(file, "output_dim");
  auto& options = config.architecture.get<NeuralCde>();
  options.hidden_size = whole(file, "hidden_dim");
  options.field.hidden_size = whole(file, "hidden_hidden_dim");
  options.field.layers = whole(file, "num_layers");
  auto& signatures = std::get<LogSignatures>(options.control.path);
  std::get<PointWindows>(signatures.windows).increments = whole(file, "step");
  if (flag(file, "return_sequences")) signatures.last_window = LastWindow::Once;
  read_solver(file, options.solver);
  Baseline result = {Model(config, model_options(file)), {}};
  result.names = published::load_state_dict(result.model, file_parameters(file));
  const Tensor controls = file.tensor("in.controls");
  result.input.series = shared_times(at::arange(controls.size(1), at::kDouble), controls);
  return result;
}

// windows as the file has them
void compare_windows(GoldenFile& file, const Baseline& baseline) {
  const auto& options = baseline.model.config().architecture.get<NeuralCde>();
  const auto& signatures = std::get<LogSignatures>(options.control.path);
  const WindowedLogSignature found =
      logsignature_windows(baseline.input.series, signatures.windows, {.depth = signatures.depth});
  const Tensor expected = file.tensor("in.logsig");
  file.compare("in.logsig", found.values.reshape(expected.sizes()), kRounding);
  file.compare("in.initial", file.tensor("in.controls").select(1, 0), kRounding);
  const int64_t count = expected.size(1);
  const Tensor intervals = at::stack({found.begin.slice(0, 0, count), found.end.slice(0, 0, count) + 1}, 1);
  file.compare("in.intervals", intervals.to(file.tensor("in.intervals").scalar_type()), kRounding);
}

// times and windows at which the forward pass looked, found again by what it saw there
void compare_trace(GoldenFile& file, const Baseline& baseline) {
  const Tensor windows = file.tensor("in.logsig")[0];
  std::vector<double> times;
  std::vector<int64_t> indices;
  const auto observe = [&](const Time& t, const Samples& x) {
    times.push_back(t.value());
    indices.push_back(at::argmin((windows - x.value.detach()[0]).abs().amax(1)).item<int64_t>());
  };
  const at::NoGradGuard no_grad;
  baseline.model.forward(baseline.input, {.observe = observe});
  file.compare("trace.stage_t", at::tensor(times, at::kDouble), kRounding);
  file.compare("trace.window_index", at::tensor(indices, at::kLong), 0);
}

// borders of windows in the time of the series, for outputs at 0, 1, ... on the clock of windows
void ask_at_windows(GoldenFile& file, Baseline& baseline) {
  const Tensor intervals = file.tensor("in.intervals").to(at::kDouble);
  const Tensor times = at::cat({intervals.select(1, 0).slice(0, 0, 1), intervals.select(1, 1) - 1}, 0);
  const int64_t samples = baseline.input.series.samples();
  baseline.input.output_times = {times.repeat({samples}), at::arange(samples + 1, at::kLong) * times.size(0)};
}

void compare_rde_states(GoldenFile& file, const Baseline& baseline) {
  const at::NoGradGuard no_grad;
  const Tensor expected = file.tensor("ode.z_t");  // [T, B, D]
  const int64_t samples = expected.size(1);
  ModelInput begin = baseline.input;
  begin.output_times = {at::zeros({samples}, at::kDouble), at::arange(samples + 1, at::kLong)};
  const auto states = [&](const ModelInput& input) { return baseline.model.forward(input).w[0].flatten(1); };
  const Tensor z0 = states(begin);
  file.compare("ode.z0", z0, kRounding);
  if (baseline.input.output_times) {
    const Tensor z = states(baseline.input).view({samples, -1, z0.size(1)}).transpose(0, 1).contiguous();
    file.compare("ode.z_t", z, kRounding);
    file.compare("ode.t", at::arange(expected.size(0), at::kDouble), kRounding);
  } else {
    const auto windows = static_cast<double>(file.tensor("in.logsig").size(1));
    file.compare("ode.z_t", at::stack({z0, states(baseline.input)}, 0), kRounding);
    file.compare("ode.t", at::tensor({0.0, windows + 1}, at::kDouble), kRounding);
  }
}

}  // namespace

void check_baselines(GoldenFile& file) {
  if (file.has("in.controls")) {
    Baseline baseline = rde_baseline(file);
    compare_windows(file, baseline);
    if (flag(file, "return_sequences")) {
      ask_at_windows(file, baseline);
      // a class for each sample is not asked for
      file.tensor("in.labels");
    }
    compare_runs(file, baseline);
    compare_trace(file, baseline);
    return compare_rde_states(file, baseline);
  }
  compare_coefficients(file);
  Baseline baseline = spline_baseline(file);
  if (file.has("out.stream")) ask_everywhere(file, baseline);
  // the end of a sample is not read where outputs are everywhere, or at the end of the batch
  file.tensor("in.final_index");
  compare_runs(file, baseline);
  compare_trajectory(file, baseline);
}

}  // namespace fastweights::golden

#include "selftest/engine_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "fastweights/model.h"
#include "fastweights/tensor.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

namespace fastweights {
namespace {

// a gradient may vanish where the terms of its sum do not (the bias in front of a softmax moves nothing), and
// then all that is left of it is the rounding of those terms, which are about as large as other gradients:
// errors of a tensor count relative to at least this part of the largest gradient of all
constexpr double kGradientFloor = 1e-3;

constexpr uint64_t kSeed = 17;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// some of: the beginning, an observation, a time in between, the end
std::vector<double> outputs_between(const double* t, int64_t length, size_t sample) {
  const double first = t[0], last = t[length - 1], inside = first + 0.37 * (last - first);
  switch (sample % 4) {
    case 0:
      return {first, inside, last};
    case 1:
      return {};
    case 2:
      return {t[length / 2]};
    default:
      return {inside, last};
  }
}

// values are numbers of float32, whatever the type
ModelInput make_input(const ProgrammerConfig& config, const CaseBatch& batch, at::ScalarType type) {
  Random random(kSeed);
  std::vector<Tensor> times, values;
  std::vector<double> outputs;
  std::vector<int64_t> offsets = {0};
  for (size_t b = 0; b < batch.lengths.size(); ++b) {
    const int64_t length = batch.lengths[b];
    const bool irregular = batch.times == CaseTimes::Irregular;
    const Tensor gaps =
        irregular ? uniform({length}, 0.2, 1.8, random, at::kDouble) : at::ones({length}, at::kDouble);
    times.push_back(gaps.cumsum(0));
    Tensor x = uniform({length, config.channels}, -1.5, 1.5, random, at::kFloat);
    const Tensor dice = uniform({length, config.channels}, 0, 1, random, at::kDouble);
    x.masked_fill_(dice < batch.missing, std::nan(""));
    if (const auto* path = std::get_if<Rectilinear>(&config.control.path))
      x.select(1, path->time_channel).copy_(times.back());
    values.push_back(x.to(type));
    const std::vector<double> own = outputs_between(times.back().data_ptr<double>(), length, b);
    outputs.insert(outputs.end(), own.begin(), own.end());
    offsets.push_back(static_cast<int64_t>(outputs.size()));
  }
  ModelInput input = {.series = ragged(times, values)};
  if (batch.outputs == CaseOutputs::Between)
    input.output_times = RaggedTimes{at::tensor(outputs, at::kDouble), at::tensor(offsets, at::kLong)};
  if (config.static_features > 0) {
    const auto samples = static_cast<int64_t>(batch.lengths.size());
    input.static_features = uniform({samples, config.static_features}, -1, 1, random, at::kFloat).to(type);
  }
  return input;
}

Model make_model(const ProgrammerConfig& config, at::ScalarType type) {
  if (config.backend == Backend::Cuda)
    return Model(config, {.seed = kSeed, .type = type, .device = find_device("cuda")});
  const Model rounded(config, {.seed = kSeed, .type = at::kFloat});
  Model model(config, {.seed = kSeed, .type = type});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < model.parameters().size(); ++i)
    model.parameters()[i].second.copy_(rounded.parameters()[i].second);
  return model;
}

struct Passes {
  Tensor outputs;                  // [M, O]
  std::vector<Tensor> w;           // per layer [M, H, V, K]
  std::vector<Tensor> gradients;   // of the parameters, then of the series' values
  std::vector<std::string> names;  // of the gradients
  std::string backend;
  int64_t blocks = 1;
};

// whether to compare the gradient of the series' values, too: some kernels have none
enum class SeriesGradient { No, Yes };

Passes run_passes(ProgrammerConfig config, const CaseBatch& batch, Backend backend, at::ScalarType type,
                  SeriesGradient of_series = SeriesGradient::Yes) {
  config.backend = backend;
  if (backend == Backend::Reference) config.solver.memory_limit = 0;
  const Model model = make_model(config, type);
  ModelInput input = make_input(config, batch, type);
  const at::AutoGradMode on(true);
  input.series.values.set_requires_grad(of_series == SeriesGradient::Yes);
  const ModelOutput out = model.forward(input, {.mode = Mode::Train, .seed = kSeed});
  // a loss with a weight of its own for every output and every fast weight
  Random random(kSeed + 1);
  std::vector<Tensor> results = {out.outputs}, weights;
  results.insert(results.end(), out.w.begin(), out.w.end());
  for (const Tensor& x : results)
    weights.push_back(uniform(x.sizes(), -1, 1, random, at::kFloat).to(type).to(x.device()));
  std::vector<Tensor> inputs = model.parameter_tensors();
  if (of_series == SeriesGradient::Yes) inputs.push_back(input.series.values);
  Passes passes = {out.outputs.detach().cpu(), {}, {}, {}, out.backend, out.plan.blocks};
  for (const Tensor& gradient : vector_jacobian(results, inputs, weights))
    passes.gradients.push_back(gradient.cpu());
  for (const Tensor& w : out.w) passes.w.push_back(w.detach().cpu());
  for (const auto& [name, tensor] : model.parameters()) passes.names.push_back(name);
  passes.names.push_back("values of the series");
  return passes;
}

double largest(const Tensor& x) { return x.numel() > 0 ? x.abs().max().item<double>() : 0; }

double relative_error(const Tensor& got, const Tensor& expected, double smallest_scale) {
  if (got.sizes() != expected.sizes()) return kInfinite;
  const double difference = largest(got.to(at::kDouble) - expected);
  if (difference == 0) return 0;
  const double error = difference / std::max(largest(expected), smallest_scale);
  return std::isfinite(error) ? error : kInfinite;
}

EngineErrors errors_of(const Passes& got, const Passes& expected) {
  EngineErrors errors;
  errors.backend = got.backend;
  errors.blocks = got.blocks;
  // a comparison of the definition with itself would say nothing
  const bool fused = got.backend.rfind("cpu-", 0) == 0 || got.backend == "cuda";
  const bool compared = expected.backend == "reference" && fused;
  errors.outputs = compared ? relative_error(got.outputs, expected.outputs, 0) : kInfinite;
  for (size_t l = 0; l < expected.w.size(); ++l)
    errors.weights = std::max(errors.weights, relative_error(got.w[l], expected.w[l], 0));
  double scale = 0;
  for (const Tensor& gradient : expected.gradients) scale = std::max(scale, largest(gradient));
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    const double error = relative_error(got.gradients[i], expected.gradients[i], kGradientFloor * scale);
    if (error <= errors.gradients) continue;
    errors.gradients = error;
    errors.worst_gradient = expected.names[i];
  }
  return errors;
}

// where the largest error is
std::string place_of(const EngineErrors& errors) {
  if (errors.largest() == errors.gradients) return "the gradient of " + errors.worst_gradient;
  return errors.largest() == errors.weights ? "the fast weights" : "the outputs";
}

}  // namespace

double EngineErrors::largest() const { return std::max({outputs, weights, gradients}); }

std::vector<EngineErrors> engine_errors(const ProgrammerConfig& config, const CaseBatch& batch,
                                        const std::vector<at::ScalarType>& types) {
  const Passes expected = run_passes(config, batch, Backend::Reference, at::kDouble);
  std::vector<EngineErrors> result;
  for (const at::ScalarType type : types)
    result.push_back(errors_of(run_passes(config, batch, Backend::Cpu, type), expected));
  if (find_device("auto").is_cpu()) return result;
  const EngineErrors all = errors_of(run_passes(config, batch, Backend::Cuda, at::kFloat), expected);
  const EngineErrors less =
      errors_of(run_passes(config, batch, Backend::Cuda, at::kFloat, SeriesGradient::No), expected);
  result.push_back(all.largest() >= less.largest() ? all : less);
  return result;
}

std::vector<SelftestResult> engine_results(const EngineCase& engine_case) {
  struct Type {
    at::ScalarType type;
    const char* name;
    double tolerance;
  };
  // some hundred roundings of 6e-8 or 1e-16: of a few steps, and of sums over steps, samples and units
  constexpr Type kTypes[] = {{at::kFloat, "float32", 2e-5}, {at::kDouble, "float64", 1e-13}};
  const std::vector<EngineErrors> errors =
      engine_errors(engine_case.config, engine_case.batch, {kTypes[0].type, kTypes[1].type});
  std::vector<SelftestResult> results;
  for (size_t i = 0; i < errors.size(); ++i) {
    // the results of a GPU follow those of the CPU
    const Type& type = kTypes[i < 2 ? i : 0];
    results.push_back({message(errors[i].backend, ": ", engine_case.name, ", ", type.name),
                       errors[i].largest(), type.tolerance,
                       message(type.name, " rounding over a few steps and sums; the largest error is in ",
                               place_of(errors[i]))});
  }
  return results;
}

}  // namespace fastweights

#include "model/cases.h"

#include "model/programmer_config.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights::testing {
namespace {

int64_t draw(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.uniform() * static_cast<double>(high - low + 1));
}

template <typename T>
T one_of(Random& random, const std::vector<T>& choices) {
  return choices[draw(random, 0, static_cast<int64_t>(choices.size()) - 1)];
}

ControlPath random_path(Random& random, int64_t channels) {
  const EndFilling filling = one_of<EndFilling>(random, {EndFilling::WholeGap, EndFilling::EndPoint});
  const int64_t depth = draw(random, 1, 3), increments = draw(random, 1, 3);
  const double duration = one_of<double>(random, {0, 0, 0.9});
  const WindowClock clock = one_of<WindowClock>(random, {WindowClock::Windows, WindowClock::Time});
  const int64_t time_channel = draw(random, 0, channels - 1);
  const Windows windows =
      duration > 0 ? Windows(DurationWindows{duration}) : Windows(PointWindows{increments, WindowTail::Keep});
  const LogSignatures signatures = {.depth = depth, .windows = windows, .clock = clock};
  return one_of<ControlPath>(random, {NaturalCubic{filling}, HermiteCubic{}, Linear{},
                                      Rectilinear{time_channel}, Hold{}, signatures, signatures});
}

SolverConfig random_solver(Random& random) {
  SolverConfig s;
  const StageEdges edges =
      one_of<StageEdges>(random, {StageEdges::Inside, StageEdges::Inside, StageEdges::AsIs});
  const double max_step = one_of<double>(random, {0, 0.3});
  const ObservationSteps between = {.max_step = max_step, .edges = edges};
  s.steps = one_of<ModelSteps>(
      random, {between, between, RegularSteps{.size = 0.37, .edges = edges}, AdaptiveSteps{1e-3, 1e-5}});
  const bool adaptive = std::holds_alternative<AdaptiveSteps>(s.steps);
  s.method = adaptive ? one_of<Method>(random, {dopri5(), bosh3()})
                      : one_of<Method>(random, {rk4(), rk4_classic(), heun2(), bosh3(), euler()});
  s.gradient = one_of<Gradient>(random, {Gradient::Exact, Gradient::Checkpointed});
  return s;
}

// choices that nothing would read back to their defaults: check_config refuses them
void forget_unread(ProgrammerConfig& c) {
  const ProgrammerConfig d;
  if (c.static_features == 0) c.static_hidden_size = d.static_hidden_size;
  if (c.tensor_map) {
    c.rule = d.rule;
    c.key_width = c.value_width = 0;
    c.learning_rate = d.learning_rate;
    c.value_activation = d.value_activation;
  } else {
    c.map_hidden_size = d.map_hidden_size;
    c.map_layers = d.map_layers;
  }
}

ProgrammerConfig any_config(Random& random) {
  ProgrammerConfig c;
  c.channels = draw(random, 1, 3);
  c.outputs = draw(random, 1, 4);
  c.rule = one_of<std::string>(random, {"hebb", "oja", "oja_softmax", "delta_pre", "delta_post"});
  const int64_t drive = draw(random, 0, 4);
  c.tensor_map = drive == 4;
  c.drive = c.tensor_map ? Drive::Derivative : static_cast<Drive>(drive);
  c.control.path = random_path(random, c.channels);
  c.solver = random_solver(random);
  c.heads = draw(random, 1, 3);
  // a LayerNorm of one or two numbers knows their signs alone
  c.hidden_size = c.heads * draw(random, 3, 5);
  c.key_width = one_of<int64_t>(random, {0, 2, 5, 9});
  c.value_width = one_of<int64_t>(random, {0, 3, 4, 17});
  c.feed_forward_size = draw(random, 3, 19);
  c.static_hidden_size = draw(random, 2, 11);
  c.layers = draw(random, 1, 3);
  if (c.layers > 1) c.layer_input = one_of<LayerInput>(random, {LayerInput::Weights, LayerInput::Update});
  c.residual = random.uniform() < 0.3;
  if (c.residual) c.key_width = c.value_width = 0;
  c.value_norm = c.drive != Drive::X && random.uniform() < 0.4;
  c.map_hidden_size = draw(random, 2, 7);
  c.map_layers = draw(random, 1, 3);
  using Initial = InitialWeights;
  c.initial = one_of<Initial>(
      random, {Initial::Rule, Initial::Zero, Initial::StaticFeatures, Initial::FirstObservation});
  c.static_features = c.initial == Initial::StaticFeatures ? draw(random, 1, 4) : 0;
  c.query = one_of<QueryTime>(random, {QueryTime::Output, QueryTime::FirstObservation});
  c.read = one_of<Read>(random, {Read::Plain, Read::Transposed});
  c.learning_rate = one_of<LearningRate>(random, {LearningRate::Sigmoid, LearningRate::Raw});
  c.value_activation = one_of<ValueActivation>(random, {ValueActivation::Tanh, ValueActivation::None});
  c.time_unit = one_of<double>(random, {1, 0.7});
  if (c.tensor_map) {
    c.layers = 1;
    c.layer_input = LayerInput::Weights;
    c.residual = c.value_norm = false;
    c.query = QueryTime::Output;
    c.read = Read::Plain;
  }
  forget_unread(c);
  return c;
}

// some of: the first time, an observation, a time in between, the end
std::vector<double> some_outputs(const Tensor& times, Random& random) {
  const double *t = times.data_ptr<double>(), first = t[0], last = t[times.size(0) - 1];
  std::vector<double> result;
  if (random.uniform() < 0.3) result.push_back(first);
  if (random.uniform() < 0.4) result.push_back(t[draw(random, 1, times.size(0) - 1)]);
  if (random.uniform() < 0.4) result.push_back(first + random.uniform(0.01, 0.99) * (last - first));
  if (random.uniform() < 0.5) result.push_back(last);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Tensor weights_like(const Tensor& x, uint64_t seed) { return random(x.sizes(), seed).to(x.scalar_type()); }

}  // namespace

ProgrammerConfig random_config(uint64_t seed) {
  Random random(seed);
  for (;;) {
    const ProgrammerConfig config = any_config(random);
    if (error_message([&] { check_config(config); }).empty()) return config;
  }
}

std::vector<Sample> random_samples(const ProgrammerConfig& config, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Sample> samples;
  for (int64_t b = 0; b < count; ++b) {
    Sample s;
    const int64_t length = draw(random, 2, 7);
    s.times = irregular_times(length, seed + 100 + b) + random.uniform(-3, 3);
    s.values = with_missing(testing::random({length, config.channels}, seed + 200 + b), 0.33, seed + 300 + b);
    if (const auto* path = std::get_if<Rectilinear>(&config.control.path))
      s.values.select(1, path->time_channel).copy_(s.times);
    if (config.static_features > 0) s.features = testing::random({config.static_features}, seed + 400 + b);
    s.outputs = some_outputs(s.times, random);
    if (b == 0 && s.outputs.empty()) s.outputs = {s.times[-1].item<double>()};
    samples.push_back(s);
  }
  return samples;
}

ModelInput input_of(const std::vector<Sample>& samples, at::ScalarType type) {
  std::vector<Tensor> times, values, features;
  std::vector<double> outputs;
  std::vector<int64_t> offsets = {0};
  for (const Sample& s : samples) {
    times.push_back(s.times);
    values.push_back(s.values.to(type));
    if (s.features.defined()) features.push_back(s.features.to(type));
    outputs.insert(outputs.end(), s.outputs.begin(), s.outputs.end());
    offsets.push_back(static_cast<int64_t>(outputs.size()));
  }
  ModelInput input = {.series = ragged(times, values)};
  if (!features.empty()) input.static_features = at::stack(features, 0);
  input.output_times = RaggedTimes{at::tensor(outputs, at::kDouble), at::tensor(offsets, at::kLong)};
  return input;
}

std::vector<Sample> chosen(const std::vector<Sample>& samples, const std::vector<int64_t>& which) {
  std::vector<Sample> result;
  for (int64_t b : which) result.push_back(samples[b]);
  return result;
}

Passes run_passes(const Model& model, const std::vector<Sample>& samples) {
  ModelInput input = input_of(samples, model.parameters()[0].second.scalar_type());
  input.series.values.set_requires_grad(true);
  if (input.static_features.defined()) input.static_features.set_requires_grad(true);
  Passes passes;
  passes.output = model.forward(input);
  const ModelOutput& out = passes.output;
  const auto rows_of = [](const Tensor& x, const Tensor& offsets, size_t b) {
    const auto i = static_cast<int64_t>(b);
    return x.slice(0, offsets[i].item<int64_t>(), offsets[i + 1].item<int64_t>());
  };
  Tensor loss = at::zeros({}, out.outputs.options());
  for (size_t b = 0; b < samples.size(); ++b) {
    std::vector<Tensor> own = {rows_of(out.outputs, out.offsets, b)};
    for (const Tensor& w : out.w) own.push_back(rows_of(w, out.offsets, b));
    // a seed that goes with the sample, wherever it stands
    auto seed = static_cast<uint64_t>(samples[b].times.size(0));
    for (const Tensor& x : own) loss = loss + (x * weights_like(x, ++seed)).sum();
    for (Tensor& x : own) x = x.detach();
    passes.samples.push_back(own);
  }
  std::vector<Tensor> inputs = model.parameter_tensors();
  inputs.push_back(input.series.values);
  if (input.static_features.defined()) inputs.push_back(input.static_features);
  passes.parameters = vector_jacobian({loss}, inputs, {at::ones_like(loss)});
  if (input.static_features.defined()) {
    for (size_t b = 0; b < samples.size(); ++b)
      passes.samples[b].push_back(passes.parameters.back()[static_cast<int64_t>(b)]);
    passes.parameters.pop_back();
  }
  for (size_t b = 0; b < samples.size(); ++b)
    passes.samples[b].push_back(rows_of(passes.parameters.back(), input.series.offsets, b));
  passes.parameters.pop_back();
  return passes;
}

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(t.detach().reshape({-1}));
  return at::cat(parts, 0);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::ScalarType bits = a.scalar_type() == at::kDouble ? at::kLong : at::kInt;
  return at::equal(a.detach().contiguous().view(bits), b.detach().contiguous().view(bits));
}

}  // namespace fastweights::testing

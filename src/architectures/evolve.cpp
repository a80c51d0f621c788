#include "architectures/evolve.h"

#include "base/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {

Tensor FieldNet::operator()(const Tensor& z) const {
  Tensor hidden = z;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (l > 0) hidden = at::tanh(hidden);
    hidden = linear(layers[l], hidden);
  }
  return hidden;
}

std::vector<Tensor> FieldNet::parameters() const {
  std::vector<Tensor> result;
  for (const nn::Linear& layer : layers) {
    result.push_back(layer.weight);
    result.push_back(layer.bias);
  }
  return result;
}

FieldNet make_field_net(const std::string& name, const FieldConfig& config, int64_t size,
                        nn::ParameterMaker& make) {
  FieldNet net;
  int64_t width = size;
  for (int64_t l = 0; l < config.layers; ++l) {
    net.layers.push_back(make.linear(message(name, ".", l), width, config.hidden_size));
    width = config.hidden_size;
  }
  net.layers.push_back(make.linear(name + ".out", width, size));
  return net;
}

namespace {

Tensor one_step(const Tableau& tableau, const FieldNet& field, const Tensor& z, const Tensor& dt) {
  std::vector<Tensor> slopes;
  for (int64_t i = 0; i < tableau.stages(); ++i) {
    const Tensor at = i == 0 ? z : weighted_sum(z, slopes, tableau.a[i]);
    slopes.push_back(field(at) * dt);
  }
  return weighted_sum(z, slopes, tableau.b);
}

Steps steps_of(const ModelSteps& steps) {
  if (const auto* adaptive = std::get_if<AdaptiveSteps>(&steps)) return *adaptive;
  if (const auto* between = std::get_if<ObservationSteps>(&steps))
    return FixedSteps{.size = between->max_step};
  const auto* regular = std::get_if<RegularSteps>(&steps);
  return FixedSteps{.size = regular ? regular->size : std::get<FixedSteps>(steps).size};
}

// one solve for all rows, which goes through the times end [R] in their order
Tensor solve_together(const Field& field, const Tensor& z, const Tensor& end, const SolveOptions& options) {
  const Tensor with_start = at::cat({at::zeros({1}, end.options()), end});
  const auto [times, row_to_time, counts] =
      at::unique_dim(with_start, 0, /*sorted=*/true, /*return_inverse=*/true);
  if (times.size(0) == 1) return z;
  const Tensor ys = solve(field, z, times, options).ys;  // [T, R, d]
  const Tensor rows = row_to_time.slice(0, 1) * z.size(0) + at::arange(z.size(0));
  return ys.reshape({-1, z.size(1)}).index_select(0, on_device(rows, z.device()));
}

}  // namespace

Tensor evolve(const SolverConfig& solver, const FieldNet& field, const Tensor& z, const Tensor& dt) {
  if (const auto* steps = std::get_if<ObservationSteps>(&solver.steps); steps && steps->parts > 1) {
    SolverConfig whole = solver;
    std::get<ObservationSteps>(whole.steps).parts = 1;
    Tensor result = z;
    for (int64_t i = 0; i < steps->parts; ++i)
      result = evolve(whole, field, result, dt / static_cast<double>(steps->parts));
    return result;
  }
  const Method method = method_of(solver);
  const auto* tableau = std::get_if<Tableau>(&method);
  const bool recorded = solver.gradient == Gradient::Exact || !at::GradMode::is_enabled();
  const auto* between = std::get_if<ObservationSteps>(&solver.steps);
  if (tableau && recorded && between && between->max_step == 0) return one_step(*tableau, field, z, dt);
  const SolveOptions options = {
      .method = method,
      .steps = steps_of(solver.steps),
      .gradient = solver.gradient,
      .parameters = field.parameters(),
      .memory_limit = solver.gradient == Gradient::Checkpointed ? solver.memory_limit : 0};
  const Field slope = [field](const Time&, const Tensor& y) { return field(y); };
  // the solver plans steps on the CPU
  const Tensor end = dt.detach().squeeze(1).to(at::kCPU, at::kDouble);
  const auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps);
  if (adaptive && adaptive->control == ErrorControl::Joint) return solve_together(slope, z, end, options);
  return solve(slope, z, at::stack({at::zeros_like(end), end}, 0), options).ys[1];
}

}  // namespace fastweights

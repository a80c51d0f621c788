#include "fastweights/gradcheck.h"

#include <cmath>

#include "base/error.h"
#include "model/config_names.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

namespace fastweights {
namespace {

Tensor normal(at::IntArrayRef shape, Random& random) {
  Tensor result = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < result.numel(); ++i) result.data_ptr<double>()[i] = random.normal();
  return result;
}

Tensor forward_loss(const Model& model, const ModelInput& input, const Loss& loss) {
  const ModelOutput output = model.forward(input);
  FW_CHECK(output.status, "[gradcheck] ", output.status.message());
  Tensor value = loss(output.outputs);
  FW_CHECK(value.defined() && value.numel() == 1, "[gradcheck] the loss must be a scalar, got ",
           value.defined() ? message(value.sizes()) : "nothing");
  return value;
}

std::vector<Tensor> mode_gradients(const Model& model, const ModelInput& input, const Loss& loss,
                                   Gradient mode) {
  Model copy = model;
  if (const SolverConfig* given = solver_of(model.config())) {
    SolverConfig solver = *given;
    solver.gradient = mode;
    // only the exact gradient can go through the choice of the first step
    auto* adaptive = std::get_if<AdaptiveSteps>(&solver.steps);
    if (adaptive && mode != Gradient::Exact) adaptive->first_step_gradient = FirstStepGradient::None;
    if (mode == Gradient::Adjoint || (mode == Gradient::Exact && adaptive)) solver.memory_limit = 0;
    copy.set_solver(solver);
  }
  const at::AutoGradMode on(true);
  const Tensor value = forward_loss(copy, input, loss);
  return vector_jacobian({value}, copy.parameter_tensors(), {at::ones_like(value)});
}

// moves parameters, and moves them back at the end whatever happened
class Mover {
 public:
  explicit Mover(const std::vector<Tensor>& parameters) : parameters_(parameters) {
    for (const Tensor& p : parameters) before_.push_back(p.detach().clone());
  }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  ~Mover() {
    for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].detach().copy_(before_[i]);
  }
  void move(const std::vector<Tensor>& direction, double distance) const {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].detach().copy_(before_[i] + distance * direction[i]);
    }
  }

 private:
  std::vector<Tensor> parameters_, before_;
};

// derivative of the loss along a direction of some parameters, by central differences
double difference(const Model& model, const ModelInput& input, const Loss& loss,
                  const std::vector<Tensor>& parameters, const std::vector<Tensor>& direction, double step) {
  const at::NoGradGuard no_grad;
  const Mover mover(parameters);
  mover.move(direction, step);
  const double above = forward_loss(model, input, loss).item<double>();
  mover.move(direction, -step);
  return (above - forward_loss(model, input, loss).item<double>()) / (2 * step);
}

// the larger one, and not a number if either is not
double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

bool has_adaptive_steps(const Model& model) {
  const SolverConfig* solver = solver_of(model.config());
  return solver && std::holds_alternative<AdaptiveSteps>(solver->steps);
}

// Adaptive steps are chosen again for every difference, and the loss jumps by about the tolerance where the
// choice changes. With small tolerances and larger differences that hardly shows.
Model smooth(const Model& model) {
  Model copy = model;
  if (has_adaptive_steps(model)) {
    SolverConfig solver = *solver_of(model.config());
    auto& steps = std::get<AdaptiveSteps>(solver.steps);
    steps.rtol = std::min(steps.rtol, 1e-12);
    steps.atol = std::min(steps.atol, 1e-14);
    copy.set_solver(solver);
  }
  return copy;
}

double smooth_step(const Model& model, double step) {
  return has_adaptive_steps(model) ? std::max(step, 1e-4) : step;
}

void check_model(const Model& model, const Loss& loss) {
  FW_CHECK(loss, "[gradcheck] the loss is empty");
  FW_CHECK(model.parameters()[0].second.scalar_type() == at::kDouble,
           "[gradcheck] differences need a model in float64, got ",
           model.parameters()[0].second.scalar_type());
}

Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(t.reshape({-1}));
  return at::cat(parts, 0);
}

}  // namespace

std::vector<GradcheckRow> gradcheck(const Model& given, const ModelInput& input, const Loss& loss,
                                    const GradcheckOptions& options,
                                    const std::function<void(const GradcheckRow&)>& report) {
  check_model(given, loss);
  FW_CHECK(!options.modes.empty(), "[gradcheck] there must be at least one mode");
  FW_CHECK(options.directions >= 1 && options.step > 0,
           "[gradcheck] directions and step must be positive, got ", options.directions, " and ",
           options.step);
  const Model model = smooth(given);
  const double step = smooth_step(given, options.step);
  std::vector<std::vector<Tensor>> grads;
  for (Gradient mode : options.modes) grads.push_back(mode_gradients(model, input, loss, mode));
  Random random(options.seed);
  std::vector<GradcheckRow> rows;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const auto& [name, parameter] = model.parameters()[i];
    const double norm = grads[0][i].norm().item<double>();
    GradcheckRow row = {name, parameter.numel(), norm, std::vector<double>(grads.size(), 0)};
    for (int64_t n = 0; n < options.directions; ++n) {
      // independent normal entries: the product with a gradient is about as large as the gradient
      const Tensor direction = normal(parameter.sizes(), random);
      const double expected = difference(model, input, loss, {parameter}, {direction}, step);
      for (size_t m = 0; m < grads.size(); ++m) {
        const double error = std::abs((grads[m][i] * direction).sum().item<double>() - expected);
        row.errors[m] = worse(row.errors[m], error / (norm > 0 ? norm : 1));
      }
    }
    if (report) report(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

AdjointError adjoint_error(const Model& given, const ModelInput& input, const Loss& loss, uint64_t seed) {
  check_model(given, loss);
  const Model model = smooth(given);
  std::vector<Tensor> parameters, exact, adjoint;
  const std::vector<Tensor> all_exact = mode_gradients(model, input, loss, Gradient::Checkpointed);
  const std::vector<Tensor> all_adjoint = mode_gradients(model, input, loss, Gradient::Adjoint);
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const std::string& name = model.parameters()[i].first;
    if (name.rfind("layers.", 0) != 0 && name.rfind("map.", 0) != 0) continue;
    parameters.push_back(model.parameters()[i].second);
    exact.push_back(all_exact[i]);
    adjoint.push_back(all_adjoint[i]);
  }
  const Tensor e = flat(exact), a = flat(adjoint);
  Random random(seed);
  std::vector<Tensor> direction;
  for (const Tensor& p : parameters) direction.push_back(normal(p.sizes(), random));
  const double expected = difference(model, input, loss, parameters, direction, smooth_step(given, 1e-6));
  const double along = (e * flat(direction)).sum().item<double>(), norm = e.norm().item<double>();
  return {(a - e).norm().item<double>() / norm, ((a * e).sum() / (a.norm() * e.norm())).item<double>(),
          std::abs(along - expected) / norm};
}

RaggedSeries synthetic_series(const SyntheticSeries& options) {
  FW_CHECK(options.samples >= 1 && options.channels >= 1 && options.length >= 2,
           "[synthetic_series] there must be at least 1 sample, 1 channel and 2 points, got ",
           options.samples, ", ", options.channels, " and ", options.length);
  const double value_count = static_cast<double>(options.samples) * static_cast<double>(options.channels) *
                             static_cast<double>(options.length);
  FW_CHECK(value_count <= 1e9, "[synthetic_series] ", value_count,
           " values exceed the limit of 1e9; reduce samples, length or channels");
  Random random(options.seed);
  const bool irregular = options.times == SyntheticTimes::Irregular;
  std::vector<Tensor> times, values;
  for (int64_t b = 0; b < options.samples; ++b) {
    // the first one is the longest, the others at least half as long
    const int64_t half = options.length / 2;
    const auto shorter = static_cast<int64_t>(random.uniform() * static_cast<double>(half));
    const int64_t length =
        std::max<int64_t>(2, b == 0 || !irregular ? options.length : options.length - shorter);
    Tensor t = at::arange(length, at::kDouble);
    if (irregular) t = at::cumsum(uniform({length}, 0.5, 1.5, random, at::kDouble), 0);
    Tensor x = normal({length, options.channels}, random);
    double* row = x.data_ptr<double>();
    for (int64_t i = options.channels; i < x.numel(); ++i) {
      row[i] = 0.9 * row[i - options.channels] + std::sqrt(1 - 0.81) * row[i];
    }
    times.push_back(t);
    values.push_back(x);
  }
  return ragged(times, values);
}

Loss random_loss(uint64_t seed) {
  return [seed](const Tensor& outputs) {
    Random random(seed);
    return (outputs * normal(outputs.sizes(), random).to(outputs.scalar_type())).sum();
  };
}

}  // namespace fastweights

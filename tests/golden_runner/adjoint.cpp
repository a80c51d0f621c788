#include "base/error.h"
#include "fastweights/control.h"
#include "fields.h"
#include "golden.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

constexpr const char* kMlp = "f(t,y) = W2 tanh(W1 [y, t] + b1) + b2";
constexpr const char* kCde =
    "f(z) = tanh(W2 tanh(W1 z + b1) + b2) viewed as (batch, hidden, input); dz/dt = f(z) dX/dt";

Steps steps_from(const Method& method, double rtol, double atol, const nlohmann::json& options) {
  for (const auto& [key, value] : options.items()) {
    if (key != "step_size" && key != "norm") throw std::runtime_error("not understood: solver option " + key);
  }
  const Tableau* tableau = std::get_if<Tableau>(&method);
  if (tableau && tableau->adaptive())
    return AdaptiveSteps{.rtol = rtol, .atol = atol, .control = ErrorControl::Joint};
  return FixedSteps{options.value("step_size", 0.0)};
}

// torchdiffeq's arguments as our options
SolveOptions solve_options(const GoldenFile& file) {
  const nlohmann::json solver = file.json("solver");
  const std::set<std::string> known = {"method",       "rtol",           "atol",
                                       "options",      "adjoint_method", "adjoint_options",
                                       "adjoint_rtol", "adjoint_atol"};
  for (const auto& [key, value] : solver.items()) {
    if (!known.contains(key)) throw std::runtime_error("not understood: solver argument " + key);
  }
  SolveOptions result;
  const nlohmann::json options = solver.value("options", nlohmann::json::object());
  nlohmann::json adjoint_options = solver.value("adjoint_options", nlohmann::json());
  // torchdiffeq's defaults; the backward solve takes what the forward one has
  const double rtol = solver.value("rtol", 1e-7), atol = solver.value("atol", 1e-9);
  const std::string name = solver.value("method", ""), adjoint_name = solver.value("adjoint_method", "");
  result.method = torchdiffeq_method(name, file);
  result.steps = steps_from(result.method, rtol, atol, options);
  const Method adjoint_method = adjoint_name.empty() ? result.method : torchdiffeq_method(adjoint_name, file);
  if (adjoint_options.is_null()) adjoint_options = adjoint_name.empty() ? options : nlohmann::json::object();
  result.adjoint_method = adjoint_method;
  result.adjoint_steps = steps_from(adjoint_method, solver.value("adjoint_rtol", rtol),
                                    solver.value("adjoint_atol", atol), adjoint_options);
  const std::string norm = adjoint_options.value("norm", "");
  if (norm == "seminorm") {
    result.adjoint_norm = AdjointNorm::StateOnly;
  } else if (!norm.empty()) {
    throw std::runtime_error("not understood: norm " + norm);
  }
  return result;
}

CountedField cde_field(GoldenFile& file, const Control& control) {
  CountedField result;
  for (const char* name : {"l1.weight", "l1.bias", "l2.weight", "l2.bias"}) {
    result.parameters[name] = file.tensor(std::string("param.") + name).clone().set_requires_grad(true);
  }
  result.field = [calls = result.calls, control, w1 = result.parameters["l1.weight"],
                  b1 = result.parameters["l1.bias"], w2 = result.parameters["l2.weight"],
                  b2 = result.parameters["l2.bias"]](const Time& t, const Tensor& z) {
    ++*calls;
    const Tensor hidden = at::tanh(at::linear(z, w1, b1));
    const Tensor matrix = at::tanh(at::linear(hidden, w2, b2)).view({z.size(0), z.size(1), -1});
    return at::matmul(matrix, control.at(t).derivative.unsqueeze(-1)).squeeze(-1);
  };
  return result;
}

struct Problem {
  GoldenFile& file;
  CountedField field;
  SolveOptions options;
  Tensor y0, ts, weight;
  std::string state;  // "y" or "z"

  // ten times what two versions of torchdiffeq differ by, and no less than the method's own noise; through a
  // spline golden/README.md has 4e-9 for adaptive steps
  double tolerance_for(const std::string& kind) const {
    const nlohmann::json table = file.json("difference_between_torchdiffeq_versions");
    const double versions = table.contains(kind) ? std::stod(table[kind].get<std::string>()) : 0;
    double floor = kind == "out" ? noise_of_solutions(options.method) : noise_of_gradients(options.method);
    if (state == "z" && std::holds_alternative<AdaptiveSteps>(options.steps)) floor = std::max(floor, 4e-8);
    return std::max(floor, 10 * versions);
  }

  // solves, compares the outputs, and compares the gradients under this prefix
  void run(Gradient mode, FirstStepGradient first_step, const std::string& prefix, bool time_gradients) {
    SolveOptions local = options;
    local.gradient = mode;
    local.parameters = field.parameter_list();
    if (AdaptiveSteps* adaptive = std::get_if<AdaptiveSteps>(&local.steps))
      adaptive->first_step_gradient = first_step;
    const Tensor start = y0.clone().set_requires_grad(true),
                 times = ts.clone().set_requires_grad(time_gradients);
    *field.calls = 0;
    const Solution solution = solve(field.field, start, times, local);
    if (!solution.status) return file.fail(prefix + ": " + solution.status.message());
    const int64_t forward_calls = *field.calls;
    file.compare("out." + state, solution.ys, tolerance_for("out"));
    const Tensor loss = (weight * solution.ys).sum();
    file.compare("out.loss", loss.detach(), tolerance_for("out"));

    std::vector<std::string> names = {state + "0"};
    std::vector<Tensor> inputs = {start};
    for (const auto& [name, parameter] : field.parameters) {
      names.push_back(name);
      inputs.push_back(parameter);
    }
    if (time_gradients) {
      names.push_back("t");
      inputs.push_back(times);
    }
    const std::vector<Tensor> grads = vector_jacobian({loss}, inputs, {at::ones_like(loss)});
    for (size_t i = 0; i < names.size(); ++i) {
      file.compare(prefix + "." + names[i], grads[i], tolerance_for(prefix));
    }
    if (mode != Gradient::Adjoint || !file.has("out.nfe_forward")) return;
    file.compare_count("out.nfe_forward", forward_calls);
    file.compare_count(time_gradients ? "out.nfe_backward" : "out.nfe_backward_not",
                       *field.calls - forward_calls);
  }

  void run_all() {
    const bool adaptive = file.has("grad_direct_detached." + state + "0");
    if (file.has("grad_adjoint_not." + state + "0")) {
      run(Gradient::Adjoint, FirstStepGradient::None, "grad_adjoint", true);
      run(Gradient::Adjoint, FirstStepGradient::None, "grad_adjoint_not", false);
    } else {
      run(Gradient::Adjoint, FirstStepGradient::None, "grad_adjoint", false);
    }
    run(Gradient::Exact, FirstStepGradient::Through, "grad_direct", false);
    const std::string exact = adaptive ? "grad_direct_detached" : "grad_direct";
    run(Gradient::Exact, FirstStepGradient::None, exact, false);
    run(Gradient::Checkpointed, FirstStepGradient::None, exact, false);
  }
};

}  // namespace

void check_adjoint(GoldenFile& file) {
  const std::string field = file.text("field");
  if (field == kMlp) {
    Problem{file,
            mlp_field(file),
            solve_options(file),
            file.tensor("in.y0"),
            file.tensor("in.t"),
            file.tensor("in.weight"),
            "y"}
        .run_all();
    return;
  }
  if (field != kCde) throw std::runtime_error("not understood: field '" + field + "'");
  const Control control(shared_times(file.tensor("in.times"), file.tensor("in.X")),
                        {.interpolation = NaturalCubic{EndFilling::EndPoint}});
  const Tensor data = file.tensor("in.X");
  const char* names[] = {"in.coeff_a", "in.coeff_b", "in.coeff_two_c", "in.coeff_three_d"};
  for (int64_t term = 0; term < 4; ++term) {
    const Tensor ours = control.coefficients().select(1, term);
    file.compare(names[term], ours.reshape({data.size(0), -1, data.size(2)}), kRounding);
  }
  Problem{file,
          cde_field(file, control),
          solve_options(file),
          file.tensor("in.z0"),
          file.tensor("in.t"),
          file.tensor("in.weight"),
          "z"}
      .run_all();
}

}  // namespace fastweights::golden

#include <sstream>

#include "base/error.h"
#include "golden.h"
#include "rfwp_model.h"
#include "tensor/autograd.h"

namespace fastweights::golden {
namespace {

// Every number is the end of some dozen adaptive solves of smooth networks. golden/README.md has differences
// below 1e-11 between versions of the solver there, in sums of another order; step sizes do not amplify them
// as they do in methods of order 8. So what is allowed is what rounding is allowed elsewhere.
constexpr double kTolerance = kRounding;

// "dopri5 rtol 1e-5 atol 1e-6"
SolverConfig published_solver(const GoldenFile& file) {
  AdaptiveSteps steps = {.control = ErrorControl::Joint};
  std::istringstream words(file.text("solver"));
  std::string name, rtol, atol;
  if (!(words >> name >> rtol >> steps.rtol >> atol >> steps.atol) || rtol != "rtol" || atol != "atol")
    throw std::runtime_error("not understood: solver " + file.text("solver"));
  return {.method = method(name), .steps = steps};
}

// "out.loss_total = mse + 0.01*dt + 1.0*kl": factors of the losses by name
std::map<std::string, double> loss_factors(const GoldenFile& file) {
  const std::string text = file.text("loss"), begin = "out.loss_total = ";
  if (text.rfind(begin, 0) != 0) throw std::runtime_error("not understood: loss " + text);
  std::map<std::string, double> factors;
  std::istringstream words(text.substr(begin.size()));
  for (std::string word; words >> word;) {
    if (word == "+") continue;
    const size_t star = word.find('*');
    if (star == std::string::npos) {
      factors[word] = 1;
    } else {
      factors[word.substr(star + 1)] = std::stod(word.substr(0, star));
    }
  }
  return factors;
}

struct Trajectories {
  Tensor states, actions, times, lengths;  // [N, T + 1, S], [N, T, A], [N, T + 1], [N]

  int64_t samples() const { return actions.size(0); }
  int64_t steps() const { return actions.size(1); }
  Tensor gaps() const { return times.slice(1, 1) - times.slice(1, 0, -1); }  // [N, T]
  Tensor data() const { return at::cat({states.slice(1, 0, -1), actions}, 2); }
  /// Rows [R] of [N T] that lie within a sample's length.
  Tensor inside() const {
    const Tensor within = at::arange(steps()).unsqueeze(0) < lengths.unsqueeze(1);
    return within.flatten().nonzero().squeeze(1);
  }
};

struct RfwpRun {
  Tensor next_states;  // [N, T, S]
  Tensor latent;       // [N, T, D], before each step
  Tensor w;            // [N, T, H, d, d], after each step
};

// whether a step reads what happened, or what the model itself said would happen
enum class Fed { Observed, Own };

RfwpRun run(const EnvironmentModel& model, const SolverConfig& solver, const Trajectories& seen,
            const Tensor& h0, Fed fed) {
  const Tensor gaps = seen.gaps(), data = seen.data();
  RfwpState state = {h0, {}};
  if (model.heads > 0) {
    const int64_t d = model.size / model.heads;
    state.w = at::zeros({seen.samples(), model.heads, d, d}, h0.options().requires_grad(false));
  }
  std::vector<Tensor> next, latent, w;
  for (int64_t n = 0; n < seen.steps(); ++n) {
    const bool own = fed == Fed::Own && n > 0;
    const Tensor read = own ? at::cat({next.back(), seen.actions.select(1, n)}, 1) : data.select(1, n);
    latent.push_back(state.h);
    const Tensor dt = gaps.narrow(1, n, 1);
    // as published, nothing at all happens in no time
    if (dt.max().item<double>() != 0) state = model.step(solver, read, state, dt);
    next.push_back(linear(model.decoder, state.h));
    if (state.w.defined()) w.push_back(state.w);
  }
  return {at::stack(next, 1), at::stack(latent, 1), w.empty() ? Tensor() : at::stack(w, 1)};
}

struct RfwpProblem {
  GoldenFile& file;
  Parameters parameters;
  EnvironmentModel model;
  Trajectories seen;

  Tensor inside(const Tensor& rows) const {
    return rows.reshape({-1, rows.size(2)}).index_select(0, seen.inside());
  }

  Tensor timer_loss(const Tensor& latent) const {
    if (model.timer.empty()) return at::zeros({}, latent.options().requires_grad(false));
    Tensor said = inside(at::cat({seen.data(), latent}, 2));
    for (size_t l = 0; l < model.timer.size(); ++l)
      said = linear(model.timer[l], l == 0 ? said : at::tanh(said));
    return at::mse_loss(said, inside(seen.gaps().unsqueeze(2)));
  }

  // the training pass with all that it says, and the gradient of its loss under this prefix
  void train(const SolverConfig& solver, const std::string& prefix) {
    std::map<std::string, Tensor> losses;
    Tensor h0 = at::zeros({seen.samples(), model.size}, at::kDouble);
    if (model.encode) {
      const Tensor offsets = at::cat({at::zeros({1}, at::kLong), seen.lengths.cumsum(0)});
      const Distribution first = model.encode(inside(seen.data()), offsets);
      h0 = first.at(file.tensor("in.noise"));
      losses["kl"] = first.divergence();
      file.compare("out.z0_mean", first.mean, kTolerance);
      file.compare("out.z0_std", first.deviation(), kTolerance);
    }
    const RfwpRun said = run(model, solver, seen, h0, Fed::Observed);
    losses["mse"] = at::mse_loss(inside(said.next_states), inside(seen.states.slice(1, 1)));
    losses["dt"] = timer_loss(said.latent);
    file.compare("out.next_states", said.next_states, kTolerance);
    file.compare("out.latent", said.latent, kTolerance);
    if (said.w.defined()) file.compare("out.W_t", said.w, kTolerance);

    Tensor total = at::zeros({}, at::kDouble);
    for (const auto& [name, factor] : loss_factors(file)) total = total + factor * losses.at(name);
    for (const auto& [name, loss] : losses) file.compare("out.loss_" + name, loss, kTolerance);
    file.compare("out.loss_total", total, kTolerance);
    compare_gradients(total, prefix);
  }

  void compare_gradients(const Tensor& total, const std::string& prefix) {
    const nlohmann::json without = file.json("params_without_gradient");
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : parameters.all()) {
      if (std::find(without.begin(), without.end(), name) != without.end()) continue;
      names.push_back(name);
      tensors.push_back(tensor);
    }
    const std::vector<Tensor> grads = vector_jacobian({total}, tensors, {at::ones_like(total)});
    for (size_t i = 0; i < names.size(); ++i) file.compare(prefix + names[i], grads[i], kTolerance);
  }

  void roll_out(const SolverConfig& solver) {
    const at::NoGradGuard no_grad;
    const Tensor h0 =
        model.encode ? file.tensor("in.prior_sample") : at::zeros({seen.samples(), model.size}, at::kDouble);
    const RfwpRun said = run(model, solver, seen, h0, Fed::Own);
    file.compare("rollout.next_states", said.next_states, kTolerance);
    file.compare("rollout.latent", said.latent, kTolerance);
  }
};

// the recurrence of a delta net alone, layout (batch, heads, length, dim)
void check_delta_loop(GoldenFile& file) {
  if (file.text("layout") != "(batch, heads, length, dim)" || file.text("loss") != "sum(weight*y)")
    throw std::runtime_error("not understood: layout or loss");
  const std::vector<std::string> names = {"k", "v", "beta", "q"};
  std::vector<Tensor> inputs, rows;
  for (const std::string& name : names) {
    inputs.push_back(file.tensor("in." + name).clone().set_requires_grad(true));
    const Tensor by_row = inputs.back().transpose(1, 2);  // [B, L, H, D]
    rows.push_back(by_row.reshape({-1, by_row.size(2), by_row.size(3)}));
  }
  const int64_t samples = inputs[0].size(0), length = inputs[0].size(2);
  const Tensor offsets = at::arange(samples + 1, at::kLong) * length;
  const Tensor y = row_scan({rows[3], rows[0], rows[1], rows[2].squeeze(-1), offsets}, Backend::Auto).y;
  const Tensor back = y.view({samples, length, y.size(1), y.size(2)}).transpose(1, 2);
  file.compare("out.y", back, kRounding);
  const Tensor loss = (file.tensor("in.weight") * back).sum();
  const std::vector<Tensor> grads = vector_jacobian({loss}, inputs, {at::ones_like(loss)});
  for (size_t i = 0; i < names.size(); ++i) file.compare("grad." + names[i], grads[i], kRounding);
}

}  // namespace

void check_rfwp(GoldenFile& file) {
  if (!file.has_text("model")) return check_delta_loop(file);
  const Trajectories seen = {file.tensor("in.states"), file.tensor("in.actions"),
                             file.tensor("in.time_steps"), file.tensor("in.lengths")};
  if (seen.states.size(2) != static_cast<int64_t>(file.number("state_dim")) ||
      seen.actions.size(2) != static_cast<int64_t>(file.number("action_dim")))
    return file.fail("not understood: state_dim or action_dim");
  Parameters parameters(file);
  const EnvironmentModel model = make_environment_model(file, parameters);
  RfwpProblem problem = {file, parameters, model, seen};

  SolverConfig solver = published_solver(file);
  problem.train(solver, "grad_direct_detached.");
  solver.gradient = Gradient::Checkpointed;
  problem.train(solver, "grad_direct_detached.");
  solver.gradient = Gradient::Adjoint;
  problem.train(solver, "grad_adjoint.");
  solver.gradient = Gradient::Exact;
  std::get<AdaptiveSteps>(solver.steps).first_step_gradient = FirstStepGradient::Through;
  problem.train(solver, "grad_direct.");
  problem.roll_out(solver);
}

}  // namespace fastweights::golden

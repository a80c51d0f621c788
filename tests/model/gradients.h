#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fastweights/gradcheck.h"
#include "fastweights/model.h"
#include "model/config_names.h"
#include "support/support.h"
#include "tensor/autograd.h"

/// Gradients of models against central differences, for all three ways to compute them.

namespace fastweights::testing {

// central differences with steps of 1e-5 in functions of order 1: the third derivative leaves 1e-10 of
// itself, which may be some hundred times the gradient; rounding leaves a few 1e-16 / 1e-5 of the loss, which
// counts where a gradient is far smaller than the loss
constexpr double kStep = 1e-5, kTolerance = 1e-7, kRounding = 1e-10;

// exact and checkpointed gradients of every parameter equal central differences; `silent` names parameters
// that the outputs do not depend on
inline void expect_exact_gradients(const Model& model, const ModelInput& input,
                                   const std::vector<std::string>& silent = {}) {
  const GradcheckOptions options = {
      .modes = {Gradient::Exact, Gradient::Checkpointed}, .directions = 1, .step = kStep};
  for (const GradcheckRow& row : gradcheck(model, input, random_loss(3), options)) {
    const bool matters = std::find(silent.begin(), silent.end(), row.name) == silent.end();
    EXPECT_EQ(row.norm > 0, matters) << row.name << " has a gradient of norm " << row.norm;
    EXPECT_LT(row.errors[0], kTolerance) << row.name << ", exact";
    EXPECT_LT(row.errors[1], kTolerance) << row.name << ", checkpointed";
  }
}

inline SolverConfig steps_of(double max_step, Gradient gradient) {
  SolverConfig solver;
  solver.method = rk4();
  solver.steps = ObservationSteps{.max_step = max_step};
  solver.gradient = gradient;
  return solver;
}

// errors of the adjoint, which is no gradient of the computed numbers, for steps and for half of them
struct AdjointErrors {
  double coarse, fine;
};

// Gradient and adjoint are both as good as the steps of rk4, so what they differ by falls 16 times when the
// steps are halved. Steps are not infinitely small: 8 times is asked for, which order 3 would just reach.
// Where they agree to rounding (Hebb: the field does not depend on W, and the adjoint is the same sum) there
// is nothing left to fall.
inline void expect_fourth_order(const AdjointErrors& errors) {
  EXPECT_LT(errors.fine, std::max(errors.coarse / 8, 1e-13)) << "with twice the step: " << errors.coarse;
  // where the fall begins: not a difference that is there from the start
  EXPECT_LT(errors.coarse, 1e-2);
}

inline void expect_adjoint_converges(Model model, const ModelInput& input) {
  const auto error = [&](double max_step) {
    model.set_solver(steps_of(max_step, Gradient::Adjoint));
    const AdjointError found = adjoint_error(model, input, random_loss(3));
    EXPECT_LT(found.difference_error, kTolerance);
    return found.relative_error;
  };
  expect_fourth_order({error(0.2), error(0.1)});
}

// a number as a function of one tensor, for a way to compute its gradient
using LossOf = std::function<Tensor(const SolverConfig& solver, const Tensor& x)>;

// exact and checkpointed gradients along random directions, and the convergence of the adjoint. Entries of x
// that are NaN stay so, and have no gradient.
inline void expect_gradients_of(const LossOf& loss, const Tensor& x) {
  const Tensor missing = at::isnan(x);
  const auto gradient = [&](double max_step, Gradient mode) {
    return autograd_gradient([&](const Tensor& moved) { return loss(steps_of(max_step, mode), moved); }, x);
  };
  for (Gradient mode : {Gradient::Exact, Gradient::Checkpointed}) {
    const Tensor found = gradient(0, mode);
    EXPECT_EQ(found.masked_select(missing).abs().sum().item<double>(), 0);
    const double norm = found.norm().item<double>();
    EXPECT_GT(norm, 0);
    for (uint64_t seed : {51, 52}) {
      const Tensor direction = random(x.sizes(), seed);
      const auto moved = [&](double by) {
        const at::NoGradGuard no_grad;
        return loss(steps_of(0, mode), x + by * direction).item<double>();
      };
      const double above = moved(kStep), expected = (above - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR((found * direction).sum().item<double>(), expected,
                  kTolerance * norm + kRounding * std::abs(above))
          << name_of(mode);
    }
  }
  const auto error = [&](double max_step) {
    const Tensor exact = gradient(max_step, Gradient::Exact);
    return ((gradient(max_step, Gradient::Adjoint) - exact).norm() / exact.norm()).item<double>();
  };
  expect_fourth_order({error(0.2), error(0.1)});
}

}  // namespace fastweights::testing

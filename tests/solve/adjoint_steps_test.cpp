#include <cmath>

#include "fastweights/solve.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;

Tensor times(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

// a small network that depends on time
Field network(const Tensor& w) {
  return [w](const Time& t, const Tensor& y) {
    const Tensor time = t.like(y).expand({y.size(0), 1});
    return at::tanh(at::linear(at::cat({y, time.sin()}, 1), w)) - 0.2 * y;
  };
}

struct Gradients {
  Tensor w, y0;
};

// of the weighted sum of all outputs
Gradients gradients(const Tensor& start, const Tensor& ts, const Tensor& weight, SolveOptions options) {
  const Tensor w = random({4, 5}, 1).set_requires_grad(true), y0 = start.clone().set_requires_grad(true);
  options.parameters = {w};
  const Tensor loss = (solve(network(w), y0, ts, options).ys * weight).sum();
  const std::vector<Tensor> grads = vector_jacobian({loss}, {w, y0}, {at::ones_like(loss)});
  return {grads[0], grads[1]};
}

TEST(AdjointSteps, GivenStepsOfOneSizeAreFixedSteps) {
  const Tensor y0 = random({3, 4}, 2), weight = random({4, 3, 4}, 3);
  const Tensor ts = times({0, 0.5, 1.25, 2}), grid = at::arange(9, at::kDouble) * 0.25;
  for (const Method& method : {Method(euler()), Method(midpoint()), Method(rk4()), Method(dopri5()),
                               Method(Adams{.kind = AdamsKind::Implicit})}) {
    for (const auto edges : {StageEdges::AsIs, StageEdges::Inside}) {
      for (const double sign : {1.0, -1.0}) {
        SolveOptions options = {
            .method = method, .steps = FixedSteps{0.25, edges}, .gradient = Gradient::Adjoint};
        const Gradients fixed = gradients(y0, sign * ts, weight, options);
        options.steps = GivenSteps{sign * grid, edges};
        const Gradients given = gradients(y0, sign * ts, weight, options);
        EXPECT_LT(relative_error(given.w, fixed.w), 1e-12);
        EXPECT_LT(relative_error(given.y0, fixed.y0), 1e-12);
      }
    }
  }
}

// irregular steps and outputs of three samples; the second one is done early, the third one after one output
struct Ragged {
  std::vector<std::vector<double>> grids = {
      {0, 0.1, 0.4, 0.5, 0.9, 1.3, 1.4}, {0.3, 0.35, 0.6, 1.1}, {-1, -0.4}};
  std::vector<std::vector<double>> outputs = {{0, 0.4, 0.9, 1.4}, {0.3, 0.35, 1.1}, {-1, -0.4}};

  // [longest, B], the last time of each repeated
  static Tensor padded(const std::vector<std::vector<double>>& columns) {
    size_t longest = 0;
    for (const auto& column : columns) longest = std::max(longest, column.size());
    std::vector<Tensor> result;
    for (std::vector<double> column : columns) {
      column.resize(longest, column.back());
      result.push_back(times(column));
    }
    return at::stack(result, 1).contiguous();
  }
};

TEST(AdjointSteps, ARaggedBatchIsItsSamplesOneByOne) {
  const Ragged ragged;
  const Tensor y0 = random({3, 4}, 4), weight = random({4, 3, 4}, 5);
  for (const Tableau& method : {euler(), midpoint(), rk4(), dopri5()}) {
    for (const auto edges : {StageEdges::AsIs, StageEdges::Inside}) {
      for (const double sign : {1.0, -1.0}) {
        SolveOptions options = {.method = method,
                                .steps = GivenSteps{sign * Ragged::padded(ragged.grids), edges},
                                .gradient = Gradient::Adjoint};
        const Gradients batch = gradients(y0, sign * Ragged::padded(ragged.outputs), weight, options);
        Tensor w = at::zeros_like(batch.w);
        for (int64_t b = 0; b < 3; ++b) {
          const auto rows = static_cast<int64_t>(ragged.outputs[b].size());
          // a sample that repeats an output gives all its gradients to it
          const Tensor column = weight.slice(1, b, b + 1);
          const Tensor own =
              at::cat({column.slice(0, 0, rows - 1), column.slice(0, rows - 1).sum(0, true)}, 0);
          options.steps = GivenSteps{sign * times(ragged.grids[b]), edges};
          const Gradients one =
              gradients(y0.slice(0, b, b + 1), sign * times(ragged.outputs[b]), own, options);
          w = w + one.w;
          EXPECT_LT(relative_error(batch.y0.slice(0, b, b + 1), one.y0), 1e-12) << method.name << " " << b;
        }
        EXPECT_LT(relative_error(batch.w, w), 1e-12) << method.name;
      }
    }
  }
}

TEST(AdjointSteps, FineGivenStepsAgreeWithExactGradients) {
  const Tensor y0 = random({2, 4}, 6), weight = random({3, 2, 4}, 7);
  // 200 irregular steps, another grid for each sample
  const Tensor x = at::arange(201, at::kDouble) / 200;
  const Tensor grid = at::stack({2 * x * x, x + 0.1 * (6 * x).sin()}, 1).contiguous();
  const Tensor own = at::stack({grid[0], grid[77], grid[200]}, 0), shared = own.select(1, 0).contiguous();
  for (const auto edges : {StageEdges::AsIs, StageEdges::Inside}) {
    SolveOptions options = {.steps = GivenSteps{grid, edges}};
    SolveOptions adjoint = options;
    adjoint.gradient = Gradient::Adjoint;
    const Gradients exact = gradients(y0, own, weight, options), got = gradients(y0, own, weight, adjoint);
    EXPECT_LT(relative_error(got.w, exact.w), 1e-6);
    EXPECT_LT(relative_error(got.y0, exact.y0), 1e-6);
    options.steps = adjoint.steps = GivenSteps{grid.select(1, 0).contiguous(), edges};
    EXPECT_LT(
        relative_error(gradients(y0, shared, weight, adjoint).w, gradients(y0, shared, weight, options).w),
        1e-6);
  }
}

// y' = w[k] y in the window k <= t < k + 1, so the gradient of w[k] is y times the time spent there
TEST(AdjointSteps, JumpsAtStepTimesAreSeenFromTheirOwnSide) {
  const Tensor w = times({0.3, -1.2, 0.8}).set_requires_grad(true), y0 = at::ones({2, 1}, at::kDouble);
  const Field windows = [&](const Time& t, const Tensor& y) {
    const Tensor k = at::clamp_max(t.tensor().floor().to(at::kLong), 2).expand({2});
    return w.index_select(0, k).unsqueeze(1) * y;
  };
  const Tensor first = at::arange(31, at::kDouble) / 10;
  const Tensor second = at::clamp_max(at::arange(31, at::kDouble) / 8, 2.5);
  const auto gradient = [&](const Tensor& grid, StageEdges edges) {
    const Tensor ts = at::stack({grid[0], grid[-1]}, 0);
    const Tensor ys = solve(windows, y0, ts,
                            {.method = rk4(),
                             .steps = GivenSteps{grid, edges},
                             .gradient = Gradient::Adjoint,
                             .parameters = {w}})
                          .ys;
    return vector_jacobian({ys[1].sum()}, {w}, {at::ones({}, at::kDouble)})[0];
  };
  const Tensor all = std::exp(0.3 - 1.2 + 0.8) * times({1, 1, 1});
  const Tensor part = std::exp(0.3 - 1.2 + 0.4) * times({1, 1, 0.5});
  EXPECT_LT(relative_error(gradient(first, StageEdges::Inside), 2 * all), 1e-5);
  EXPECT_GT(relative_error(gradient(first, StageEdges::AsIs), 2 * all), 1e-3);
  const Tensor own = at::stack({first, second}, 1).contiguous();
  EXPECT_LT(relative_error(gradient(own, StageEdges::Inside), all + part), 1e-5);
}

TEST(AdjointSteps, InsideMeansInsideForTinyStepsAtLargeTimes) {
  // steps of two to five neighbouring doubles
  std::vector<double> grid = {1e9};
  for (const int apart : {2, 3, 5, 4}) {
    double t = grid.back();
    for (int i = 0; i < apart; ++i) t = std::nextafter(t, INFINITY);
    grid.push_back(t);
  }
  for (const bool shared : {true, false}) {
    std::vector<double> seen;
    const Field field = [&](const Time& t, const Tensor& y) {
      EXPECT_EQ(t.has_tensor(), !shared);
      seen.push_back(t.tensor().reshape({-1})[0].item<double>());
      return -y;
    };
    const Tensor steps = shared ? times(grid) : times(grid).unsqueeze(1).contiguous();
    const Tensor ts = at::stack({steps[0], steps[-1]}, 0);
    const Tensor y0 = at::ones({1, 1}, at::kDouble).set_requires_grad(true);
    // its stage at 8/9 would round to the edge
    const Tensor ys = solve(field, y0, ts,
                            {.method = dopri5(),
                             .steps = GivenSteps{steps, StageEdges::Inside},
                             .gradient = Gradient::Adjoint})
                          .ys;
    seen.clear();
    vector_jacobian({ys[1]}, {y0}, {at::ones_like(ys[1])});
    ASSERT_EQ(seen.size(), 28);
    for (size_t i = 0; i < seen.size(); ++i) {
      const size_t n = 3 - i / 7;
      EXPECT_GT(seen[i], grid[n]) << i;
      EXPECT_LT(seen[i], grid[n + 1]) << i;
    }
  }
}

TEST(AdjointSteps, WhatCannotBeDoneIsSaid) {
  const Ragged ragged;
  const Tensor y0 = random({3, 4}, 8), ts = times({0, 0.4, 1}), weight = at::ones({1}, at::kDouble);
  const auto said = [&](const Tensor& outputs, const SolveOptions& options) {
    return testing::error_message([&] { gradients(y0, outputs, weight, options); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "said: " << text;
  };
  SolveOptions options = {.steps = GivenSteps{times({0, 0.5, 1})}, .gradient = Gradient::Adjoint};
  has(said(ts, options), "output time 1 lies inside step 0");
  options.steps = GivenSteps{ts};
  has(said(ts.clone().set_requires_grad(true), options), "no gradients of times");
  options.steps = GivenSteps{ts.clone().set_requires_grad(true)};
  has(said(ts, options), "no gradients of times");
  options.steps = GivenSteps{};
  has(said(ts, options), "given step times must be float64");
  options.steps = GivenSteps{Ragged::padded(ragged.grids)};
  Tensor outputs = Ragged::padded(ragged.outputs);
  outputs[1][1] = 0.5;
  has(said(outputs, options), "sample 1: output time 1 lies inside step 1");
  // steps of its own are another choice, but not given ones
  options.steps = GivenSteps{ts};
  options.adjoint_steps = FixedSteps{0.1};
  EXPECT_EQ(said(ts, options), "");
  options.adjoint_steps = GivenSteps{ts};
  has(said(ts, options), "adjoint_steps cannot be given steps");
  options = {.steps = GivenSteps{ts}, .gradient = Gradient::Adjoint, .adjoint_method = Tableau()};
  has(said(ts, options), "has 0 weights");
}

}  // namespace
}  // namespace fastweights

#include "fastweights/rule.h"

#include <cmath>

#include "support/support.h"

namespace fastweights {
namespace {

using testing::autograd_gradient;
using testing::central_difference;
using testing::error_message;
using testing::random;
using testing::relative_error;

// W + eta y (x - decay W^T y), number by number; decay 0 is Hebb's rule
Tensor updated_by_hand(const Tensor& w, const Tensor& x, double eta, double decay) {
  const int64_t rows = w.size(0), columns = w.size(1);
  const auto at = w.accessor<double, 2>();
  const auto in = x.accessor<double, 1>();
  std::vector<double> y(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[static_cast<size_t>(i)] += at[i][j] * in[j];
  Tensor result = w.clone();
  auto out = result.accessor<double, 2>();
  for (int64_t j = 0; j < columns; ++j) {
    double back = 0;
    for (int64_t i = 0; i < rows; ++i) back += at[i][j] * y[static_cast<size_t>(i)];
    for (int64_t i = 0; i < rows; ++i) out[i][j] += eta * y[static_cast<size_t>(i)] * (in[j] - decay * back);
  }
  return result;
}

// an orthogonal matrix whose rows are axes of the data
Tensor axes() { return std::get<0>(at::linalg_qr(random({4, 4}, 1))); }

// inputs along one axis after another, of these lengths, so that the covariance has these axes and a rule
// that has learned them stands still
Tensor inputs_along_axes(int64_t rounds) {
  const Tensor lengths = at::tensor({1.5, 1.2, 0.7, 0.4}, at::kDouble).unsqueeze(1);
  return (lengths * axes()).repeat({rounds, 1});  // [N, K]
}

// of the eigenvectors of the inputs' covariance that belong to the largest eigenvalues: [K, K]
Tensor projection_on_first(const Tensor& xs, int64_t count) {
  const Tensor vectors = std::get<1>(at::linalg_eigh(at::matmul(xs.t(), xs)));
  const Tensor first = vectors.slice(1, xs.size(1) - count);
  return at::matmul(first, first.t());
}

// rounding of a few sums of products
constexpr double kClassicalRounding = 1e-14;

TEST(Classical, UpdatesAreTheFormulas) {
  for (const int64_t units : {1, 3}) {
    const Tensor w = random({units, 5}, 2), x = random({5}, 3);
    EXPECT_LT(relative_error(hebb_update(w, x, 0.3), updated_by_hand(w, x, 0.3, 0)), kClassicalRounding);
    EXPECT_LT(relative_error(oja_update(w, x, 0.3), updated_by_hand(w, x, 0.3, 1)), kClassicalRounding);
  }
}

TEST(Classical, TheSingleUnitIsOjas) {
  // y = 2 * 3 + 1 * -1 = 5, and w += 0.1 * 5 (x - 5 w)
  const Tensor w = at::tensor({2.0, 1.0}, at::kDouble).unsqueeze(0), x = at::tensor({3.0, -1.0}, at::kDouble);
  const Tensor expected = at::tensor({2.0 + 0.5 * (3.0 - 10.0), 1.0 + 0.5 * (-1.0 - 5.0)}, at::kDouble);
  EXPECT_LT(relative_error(oja_update(w, x, 0.1).squeeze(0), expected), kClassicalRounding);
}

TEST(Classical, RunsAreOneUpdateAfterAnother) {
  const Tensor w0 = random({2, 3}, 4), xs = random({4, 3}, 5);
  const std::vector<double> etas = {0.1, 0.2, 0.05, 0.3};
  const Tensor run = classical_run(oja(), w0, {xs, etas});
  ASSERT_EQ(run.sizes(), at::IntArrayRef({5, 2, 3}));
  Tensor w = w0;
  EXPECT_TRUE(at::equal(run[0], w));
  for (int64_t n = 0; n < 4; ++n) {
    w = updated_by_hand(w, xs[n], etas[static_cast<size_t>(n)], 1);
    EXPECT_LT(relative_error(run[n + 1], w), kClassicalRounding) << n;
  }
}

TEST(Classical, EulersMethodOnTheEquationIsTheUpdate) {
  const Tensor w0 = random({2, 3}, 4), xs = random({7, 3}, 5);
  for (const Rule& rule : {hebb(), oja()}) {
    for (const std::vector<double>& etas :
         {std::vector<double>{0.1}, {0.1, 0.2, 0.05, 0.3, 0.01, 0.7, 0.03}}) {
      const Solution flow = classical_flow(rule, w0, {xs, etas}, euler());
      EXPECT_TRUE(flow.status);
      EXPECT_TRUE(at::equal(flow.ys, classical_run(rule, w0, {xs, etas}))) << rule.name;
    }
  }
}

TEST(Classical, FlowsAreOneInputAfterAnother) {
  // stages at the ends of a step must not see the input of the next one
  const Tensor w0 = random({2, 3}, 4), xs = random({4, 3}, 5);
  const std::vector<double> etas = {0.1, 0.2, 0.05, 0.3};
  const Tensor flow = classical_flow(oja(), w0, {xs, etas}).ys;
  Tensor w = w0;
  for (int64_t n = 0; n < 4; ++n) {
    const Tensor x = xs[n];
    const double eta = etas[static_cast<size_t>(n)];
    const Field field = classical_field(
        oja(), [x](const Time&) { return x; }, eta);
    w = solve(field, w, at::tensor({0.0, 1.0}, at::kDouble)).ys[1];
    EXPECT_LT(relative_error(flow[n + 1], w), kClassicalRounding) << n;
  }
}

TEST(Classical, AStepOfTheRateIsTheUpdateToo) {
  // eta may be in the equation or the length of Euler's step
  const Tensor w0 = random({2, 3}, 4), x = random({3}, 5);
  const Field field = classical_field(
      oja(), [x](const Time&) { return x; }, 1);
  const Tensor times = at::tensor({0.0, 0.125}, at::kDouble);
  const Solution solution = solve(field, w0, times, {.method = euler()});
  EXPECT_LT(relative_error(solution.ys[1], oja_update(w0, x, 0.125)), kClassicalRounding);
}

TEST(Classical, TheFlowOfHebbsRuleIsAnExponential) {
  // W' = eta W x x^T: along x the weights grow by exp(eta |x|^2), and nowhere else
  const Tensor w0 = random({2, 3}, 6), x = random({3}, 7);
  const double eta = 0.1, length = x.square().sum().item<double>();
  const Tensor along = at::outer(x, x) / length;  // [K, K]
  const Tensor expected = w0 + (std::exp(eta * length) - 1) * at::matmul(w0, along);
  const Tensor got = classical_flow(hebb(), w0, {x.unsqueeze(0), {eta}}).ys[1];
  // rk4 leaves (eta |x|^2)^5 / 120
  EXPECT_LT(relative_error(got, expected), std::pow(eta * length, 5) / 60);
  EXPECT_GT(relative_error(hebb_update(w0, x, eta), expected), 1e-4);
}

TEST(Classical, OneUnitFindsTheFirstPrincipalComponent) {
  const Tensor xs = inputs_along_axes(600), w0 = random({1, 4}, 8);
  const Tensor expected = projection_on_first(xs, 1);  // w w^T of length one, whatever its sign
  for (const Tensor& all :
       {classical_run(oja(), w0, {xs, {0.1}}), classical_flow(oja(), w0, {xs, {0.1}}).ys}) {
    const Tensor w = all[xs.size(0)];  // [1, K]
    EXPECT_LT(relative_error(at::matmul(w.t(), w), expected), 1e-12);
  }
  // and what it starts with is something else
  EXPECT_GT(relative_error(at::matmul(w0.t(), w0), expected), 0.1);
}

TEST(Classical, SeveralUnitsSpanTheFirstPrincipalComponents) {
  const Tensor xs = inputs_along_axes(600), w0 = random({2, 4}, 9);
  const Tensor expected = projection_on_first(xs, 2);
  for (const Tensor& all :
       {classical_run(oja(), w0, {xs, {0.1}}), classical_flow(oja(), w0, {xs, {0.1}}).ys}) {
    const Tensor w = all[xs.size(0)];  // [2, K]
    EXPECT_LT(relative_error(at::matmul(w.t(), w), expected), 1e-12);
    EXPECT_LT(relative_error(at::matmul(w, w.t()), at::eye(2, at::kDouble)), 1e-12);
  }
}

TEST(Classical, HebbsRuleGrowsByAKnownFactor) {
  // a round of inputs multiplies the part along an axis by 1 + eta length^2
  const Tensor w0 = random({1, 4}, 8), xs = inputs_along_axes(50);
  const Tensor w = classical_run(hebb(), w0, {xs, {0.1}})[200];
  const Tensor factors = 1 + 0.1 * at::tensor({1.5, 1.2, 0.7, 0.4}, at::kDouble).square();
  const Tensor expected = at::matmul(at::matmul(w0, axes().t()) * factors.pow(50), axes());
  EXPECT_LT(relative_error(w, expected), 1e-12);
}

TEST(Classical, BatchesAreWorkedOnSideBySide) {
  const Tensor w0 = random({2, 3, 5}, 10), xs = random({4, 2, 5}, 11);  // two layers
  const Tensor run = classical_run(oja(), w0, {xs, {0.2}}), flow = classical_flow(oja(), w0, {xs, {0.2}}).ys;
  for (int64_t b = 0; b < 2; ++b) {
    const ClassicalInputs own = {xs.select(1, b), {0.2}};
    EXPECT_TRUE(at::equal(run.select(1, b), classical_run(oja(), w0[b], own)));
    EXPECT_LT(relative_error(flow.select(1, b), classical_flow(oja(), w0[b], own).ys), kClassicalRounding);
  }
}

TEST(Classical, ARuleOfOnesOwnLearnsToo) {
  // Sanger's rule: the first unit is Oja's, the second one sees what the first one leaves
  const Rule sanger = {.name = "sanger",
                       .slope = [](const Tensor& x, const Tensor& y, const Tensor& eta, const Tensor& w) {
                         return eta * (outer_product(y, x) - at::matmul(outer_product(y, y).tril(), w));
                       }};
  const Tensor xs = inputs_along_axes(2000);
  const Tensor w = classical_run(sanger, random({2, 4}, 9), {xs, {0.1}})[xs.size(0)];
  // each row is an axis by itself, of either sign
  const Tensor overlaps = at::matmul(w, axes().t()).abs();  // [2, 4]
  EXPECT_LT(relative_error(overlaps, at::eye(2, 4, at::kDouble)), 1e-12);
}

TEST(Classical, GradientsReachWeightsAndInputs) {
  const Tensor w0 = random({2, 3}, 12), xs = random({5, 3}, 13), weight = random({6, 2, 3}, 14);
  for (const Rule& rule : {hebb(), oja()}) {
    const auto run = [&](const Tensor& w, const Tensor& x) {
      return (classical_run(rule, w, {x, {0.3}}) * weight).sum();
    };
    const auto flow = [&](const Tensor& w, const Tensor& x) {
      return (classical_flow(rule, w, {x, {0.3}}).ys * weight).sum();
    };
    for (const std::function<Tensor(const Tensor&, const Tensor&)>& loss :
         {std::function<Tensor(const Tensor&, const Tensor&)>(run), {flow}}) {
      const auto of_w = [&](const Tensor& w) { return loss(w, xs); };
      const auto of_x = [&](const Tensor& x) { return loss(w0, x); };
      // differences of 1e-6 are good to about nine digits
      EXPECT_LT(relative_error(autograd_gradient(of_w, w0), central_difference(of_w, w0)), 1e-8) << rule.name;
      EXPECT_LT(relative_error(autograd_gradient(of_x, xs), central_difference(of_x, xs)), 1e-8) << rule.name;
    }
  }
}

TEST(Classical, ShapesThatDoNotFitAreRefused) {
  const Tensor w = random({2, 3}, 1);
  EXPECT_EQ(error_message([&] { oja_update(w, random({2}, 2), 0.1); }),
            "[classical] for W [2, 3] an input must be [3], got [2]");
  EXPECT_EQ(error_message([&] { oja_update(random({3}, 1), random({3}, 2), 0.1); }),
            "[classical] W must be [..., V, K]");
  EXPECT_EQ(error_message([&] {
              classical_run(oja(), w, {random({0, 3}, 2), {0.1}});
            }),
            "[classical] xs must be [N, ..., K] with at least one input");
  EXPECT_EQ(error_message([&] {
              classical_flow(oja(), w, {random({4, 3}, 2), {0.1, 0.2}});
            }),
            "[classical] 4 inputs need 4 rates, or one for all, got 2");
}

}  // namespace
}  // namespace fastweights

#include <cmath>
#include <cstdio>

#include "fastweights/solve.h"
#include "support/support.h"

namespace fastweights {
namespace {

// four equations with known solutions, linear and not, coupled, with time on the right-hand side:
//   exp(2 sin 2t), 1 / (1 + t^2), sin 2t, cos 2t
Tensor field(const Time& t, const Tensor& y) {
  const double x = t.value(), s = std::sin(2 * x), c = std::cos(2 * x);
  return at::stack({4 * c * y[0], -2 * x * y[1] * y[1], 2 * y[3] * y[0] * std::exp(-2 * s), -2 * y[2]}, 0);
}

Tensor solution(const Tensor& ts) {
  const Tensor s = (2 * ts).sin();
  return at::stack({(2 * s).exp(), 1 / (1 + ts * ts), s, (2 * ts).cos()}, 1);
}

// error at nine times, so that no single one that happens to be nearly exact decides
double error_with(const Tableau& method, int64_t steps_between) {
  const Tensor ts = at::linspace(0, 3, 9, at::kDouble);
  Tensor grid = at::linspace(0, 3, 8 * steps_between + 1, at::kDouble);
  grid.index_put_({at::arange(9, at::kLong) * steps_between}, ts);
  const Solution s = solve(field, solution(ts)[0], ts, {.method = method, .steps = GivenSteps{grid}});
  return (s.ys - solution(ts)).norm().item<double>();
}

// slope of log error over log dt by least squares, over the finest steps whose error is still well above
// rounding
double measured_order(const Tableau& method) {
  constexpr double kRoundingFloor = 3e-13;
  constexpr size_t kPoints = 4;
  std::vector<std::pair<double, double>> points;
  for (double count = 3; count < 300; count *= 1.3) {
    const auto steps = static_cast<int64_t>(count);
    const double error = error_with(method, steps);
    if (error < kRoundingFloor) break;
    points.emplace_back(-std::log(static_cast<double>(steps)), std::log(error));
  }
  EXPECT_GE(points.size(), kPoints);
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = points.size() - kPoints; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double order = (n * sxy - sx * sy) / (n * sxx - sx * sx);
  std::printf("measured order of %s: %.3f\n", method.name.c_str(), order);
  return order;
}

class Order : public ::testing::TestWithParam<std::string> {};

TEST_P(Order, OfConvergenceIsTheNominalOne) {
  const Tableau& method = tableau(GetParam());
  EXPECT_NEAR(measured_order(method), method.order, 0.15);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Tableau& method : all_tableaux()) names.push_back(method.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Solve, Order, ::testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fastweights

#include <fastweights/fastweights.h>
#include <fastweights/tools.h>
#include <fastweights/train.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "chart.h"

using namespace fastweights;
using namespace fastweights::bench;

/// Degrees between each w [N, 1, K] and a direction of length one [K], whatever their signs.
Tensor angles(const Tensor& w, const Tensor& direction) {
  const Tensor cosine = (w * direction).sum({1, 2}).abs() / w.norm(2, {1, 2});
  return at::acos(cosine.clamp(0, 1)) * (180 / 3.141592653589793);
}

/// Every 20th of these numbers over time.
ChartLine line(const std::string& name, const Tensor& numbers, LineStroke stroke) {
  ChartLine result = {.name = name, .stroke = stroke};
  for (int64_t n = 0; n < numbers.size(0); n += 20)
    result.points.push_back({static_cast<double>(n), numbers[n].item<double>()});
  return result;
}

/// Oja's rule finds the first principal component of its inputs, as updates and as a differential equation;
/// Hebb's grows without bound. Writes a chart into the file that is named: oja_pca [chart.svg [numbers.json]]
int main(int argc, char** argv) {
  at::manual_seed(1);
  const int64_t count = 4000;
  // standard deviations 2, 1 and 0.5 along axes that are turned around
  const Tensor axes =
      at::tensor({2., 1., 2., -2., 2., 1., 1., 2., -2.}, at::kDouble).reshape({3, 3}) / 3;  // [K, K]
  const Tensor scales = at::tensor({2.0, 1.0, 0.5}, at::kDouble).unsqueeze(1);              // [K, 1]
  const Tensor xs = at::matmul(at::randn({count, 3}, at::kDouble), scales * axes);          // [N, K]
  const Tensor covariance = at::matmul(xs.t(), xs) / static_cast<double>(count);            // [K, K]
  const Tensor first = std::get<1>(at::linalg_eigh(covariance)).select(1, 2);               // [K]

  const Tensor w0 = at::tensor({0.1, 0.5, -0.4}, at::kDouble).unsqueeze(0);  // [1, K]
  ClassicalInputs inputs = {xs, {}};
  for (int64_t n = 0; n < count; ++n) inputs.etas.push_back(1 / (100 + static_cast<double>(n)));
  const Tensor updates = classical_run(oja(), w0, inputs), flow = classical_flow(oja(), w0, inputs).ys;
  const Tensor hebbian = classical_run(hebb(), w0, inputs);  // each [N + 1, 1, K]

  const double update_angle = angles(updates, first)[count].item<double>(),
               flow_angle = angles(flow, first)[count].item<double>(),
               length = flow[count].norm().item<double>(), hebb_length = hebbian[count].norm().item<double>();
  std::printf("angle to the first principal component: %.2f degrees by updates, %.2f by the equation\n",
              update_angle, flow_angle);
  std::printf("length of w: %.3f by Oja's rule, %.3g by Hebb's\n", length, hebb_length);

  const auto norm = [](const Tensor& w) { return w.norm(2, {1, 2}); };
  const LineStroke dashed = LineStroke::Dashed, solid = LineStroke::Solid;
  LineChart angle = {"Angle to the first principal component", {"inputs"}, {"degrees", AxisScale::Log}, {}};
  angle.lines = {line("Oja, updates", angles(updates, first), solid),
                 line("Oja, ODE", angles(flow, first), dashed)};
  LineChart size = {"Length of w", {"inputs"}, {"|w|", AxisScale::Log}, {}};
  size.lines = {line("Oja, updates", norm(updates), solid), line("Oja, ODE", norm(flow), dashed),
                line("Hebb, updates", norm(hebbian), solid)};
  if (argc > 1) std::ofstream(argv[1]) << svg({angle, size});
  if (argc > 2) std::ofstream(argv[2]) << chart_json({angle, size});
  return update_angle < 2 && flow_angle < 2 && std::abs(length - 1) < 0.05 && hebb_length > 1e3 ? 0 : 1;
}

#include <fastweights/fastweights.h>

#include <cstdio>

using namespace fastweights;

/// A neural controlled differential equation over two irregular series, and the gradient of its end state.
int main() {
  // two series with their own times and lengths; NaN is a missing value
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor t1 = at::tensor({0.0, 0.7, 1.1, 2.5}, at::kDouble),
               t2 = at::tensor({0.0, 0.4, 3.0}, at::kDouble);
  const Tensor x1 = at::tensor({1.0, 0.5, nan, 0.2, -0.3, 0.1, 0.8, nan}, at::kDouble).view({4, 2});
  const Tensor x2 = at::tensor({0.0, 1.0, 0.5, nan, 2.0, -1.0}, at::kDouble).view({3, 2});
  const Control control(ragged({t1, t2}, {x1, x2}));

  // dz/dt = tanh(z W) x'(t), each sample from its own first to its own last time
  const Tensor w = at::full({3, 6}, 0.1, at::kDouble).set_requires_grad(true);
  const Field field = [&](const Time& t, const Tensor& z) {
    const Tensor matrix = at::tanh(z.matmul(w)).view({2, 3, 2});
    return matrix.matmul(control.at(t).derivative.unsqueeze(-1)).squeeze(-1);
  };
  const Tensor ts = at::stack({control.begin(), control.end()}, 0);  // [T, B]
  const Tensor z0 = at::ones({2, 3}, at::kDouble);
  const Solution solution = solve(field, z0, ts, {.method = rk4(), .steps = FixedSteps{0.1}});
  if (!solution.status) {
    std::printf("%s\n", solution.status.message().c_str());
    return 1;
  }
  solution.ys[1].sum().backward();
  std::printf("fastweights %s: %lld steps, %lld evaluations, |gradient| = %.6f\n", version().c_str(),
              static_cast<long long>(solution.steps), static_cast<long long>(solution.evaluations),
              w.grad().norm().item<double>());
  return w.grad().isfinite().all().item<bool>() ? 0 : 1;
}

#include "support.h"

#include <cmath>
#include <limits>
#include <random>

#include "tensor/autograd.h"

namespace fastweights::testing {

Tensor random(at::IntArrayRef shape, uint64_t seed) {
  Tensor result = at::empty(shape, at::kDouble);
  std::mt19937_64 engine(seed);
  for (int64_t i = 0; i < result.numel(); ++i) {
    // not std::uniform_real_distribution, whose numbers differ between libraries
    result.data_ptr<double>()[i] = static_cast<double>(engine() >> 11) * 0x1p-52 - 1;
  }
  return result;
}

Tensor irregular_times(int64_t count, uint64_t seed) { return (random({count}, seed).abs() + 0.1).cumsum(0); }

Tensor with_missing(const Tensor& values, double share, uint64_t seed) {
  const Tensor chance = (random(values.sizes(), seed) + 1) / 2;
  return at::where(chance < share, at::full_like(values, std::nan("")), values);
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const double infinite = std::numeric_limits<double>::infinity();
  if (!got.defined() || got.sizes() != expected.sizes()) return infinite;
  if (expected.numel() == 0) return 0;
  const double largest = expected.detach().abs().max().item<double>();
  const Tensor difference = (got.detach().to(at::kDouble) - expected.detach().to(at::kDouble)).abs();
  const double error = difference.max().item<double>() / (largest > 0 ? largest : 1);
  return std::isnan(error) ? infinite : error;
}

Tensor central_difference(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, double step) {
  const at::NoGradGuard no_grad;
  Tensor moved = x.detach().clone();
  Tensor result = at::zeros_like(moved);
  double* p = moved.data_ptr<double>();
  for (int64_t i = 0; i < moved.numel(); ++i) {
    const double here = p[i];
    if (std::isnan(here)) continue;
    p[i] = here + step;
    const double above = f(moved).item<double>();
    p[i] = here - step;
    const double below = f(moved).item<double>();
    p[i] = here;
    result.data_ptr<double>()[i] = (above - below) / (2 * step);
  }
  return result;
}

Tensor autograd_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor leaf = x.detach().clone().set_requires_grad(true);
  const Tensor loss = f(leaf);
  return vector_jacobian({loss}, {leaf}, {at::ones_like(loss)})[0];
}

}  // namespace fastweights::testing

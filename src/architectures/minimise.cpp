#include "architectures/minimise.h"

#include <cmath>
#include <deque>
#include <vector>

namespace fastweights {
namespace {

constexpr size_t kKept = 10;
constexpr double kGradient = 1e-6;

double product_of(const Tensor& a, const Tensor& b) { return (a * b).sum().item<double>(); }

// a step, and the change of the gradient over it
struct Pair {
  Tensor step, change;
  double product;  // of both
};

// -H gradient, with the inverse Hessian H of the last steps
Tensor direction(const std::deque<Pair>& pairs, const Tensor& gradient) {
  Tensor q = gradient.clone();
  std::vector<double> factors(pairs.size());
  for (size_t i = pairs.size(); i > 0; --i) {
    const Pair& pair = pairs[i - 1];
    factors[i - 1] = product_of(pair.step, q) / pair.product;
    q = q - factors[i - 1] * pair.change;
  }
  if (!pairs.empty()) q = q * (pairs.back().product / product_of(pairs.back().change, pairs.back().change));
  for (size_t i = 0; i < pairs.size(); ++i)
    q = q + (factors[i] - product_of(pairs[i].change, q) / pairs[i].product) * pairs[i].step;
  return -q;
}

}  // namespace

Tensor minimise(const Objective& objective, const Tensor& start, int64_t most) {
  Tensor x = start.clone();
  auto [value, gradient] = objective(x);
  std::deque<Pair> pairs;
  for (int64_t i = 0; i < most && gradient.abs().max().item<double>() > kGradient; ++i) {
    const Tensor d = direction(pairs, gradient);
    const double slope = product_of(gradient, d);
    // the first direction has no length
    double length = pairs.empty() ? std::min(1.0, 1 / d.norm().item<double>()) : 1;
    Tensor next;
    std::pair<double, Tensor> found;
    bool lower = false;
    for (int halved = 0; halved < 40 && !lower; ++halved, length /= 2) {
      next = x + length * d;
      found = objective(next);
      lower = found.first <= value + 1e-4 * length * slope;
    }
    if (!lower) break;
    const Tensor step = next - x, change = found.second - gradient;
    const double product = product_of(step, change);
    if (product > 1e-300) pairs.push_back({step, change, product});
    if (pairs.size() > kKept) pairs.pop_front();
    x = next;
    value = found.first;
    gradient = found.second;
  }
  return x;
}

}  // namespace fastweights

#include "selftest/definitions.h"

namespace fastweights {
namespace {

Tensor tensor_product(const Tensor& a, const Tensor& b) {
  return (a.unsqueeze(1) * b.unsqueeze(0)).reshape({-1});
}

// levels of x (x) y without constant parts; a constant part c adds c times the other factor outside
TensorSeries product(const TensorSeries& x, const TensorSeries& y) {
  TensorSeries result;
  for (size_t level = 0; level < x.size(); ++level) {
    Tensor sum = at::zeros_like(x[level]);
    for (size_t i = 0; i < level; ++i) sum = sum + tensor_product(x[i], y[level - 1 - i]);
    result.push_back(sum);
  }
  return result;
}

TensorSeries exponential(const Tensor& increment, int64_t depth) {
  TensorSeries result = {increment};
  for (int64_t level = 2; level <= depth; ++level) {
    result.push_back(tensor_product(result.back(), increment) / static_cast<double>(level));
  }
  return result;
}

}  // namespace

Tensor natural_cubic_definition(const Tensor& times, const Tensor& values, const Tensor& query) {
  const int64_t points = times.size(0);
  const Tensor h = times.slice(0, 1) - times.slice(0, 0, -1);
  const Tensor secants = (values.slice(0, 1) - values.slice(0, 0, -1)) / h.unsqueeze(1);
  // second derivatives: zero at both ends, continuous first derivative in between
  Tensor matrix = at::eye(points, times.options());
  std::vector<Tensor> right = {at::zeros_like(values[0])};
  for (int64_t i = 1; i + 1 < points; ++i) {
    matrix[i][i - 1] = h[i - 1];
    matrix[i][i] = 2 * (h[i - 1] + h[i]);
    matrix[i][i + 1] = h[i];
    right.push_back(6 * (secants[i] - secants[i - 1]));
  }
  right.push_back(at::zeros_like(values[0]));
  const Tensor second = at::linalg_solve(matrix, at::stack(right, 0));

  const Tensor piece = at::clamp(at::searchsorted(times, query) - 1, 0, points - 2);
  const Tensor width = h.index_select(0, piece).unsqueeze(1);
  const Tensor left = (query - times.index_select(0, piece)).unsqueeze(1) / width;
  const Tensor rest = 1 - left;
  const Tensor bend = (rest * rest * rest - rest) * second.index_select(0, piece) +
                      (left * left * left - left) * second.index_select(0, piece + 1);
  return rest * values.index_select(0, piece) + left * values.index_select(0, piece + 1) +
         width * width / 6 * bend;
}

TensorSeries signature_definition(const Tensor& points, int64_t depth) {
  TensorSeries x = exponential(points[1] - points[0], depth);
  for (int64_t i = 1; i + 1 < points.size(0); ++i) {
    const TensorSeries step = exponential(points[i + 1] - points[i], depth);
    const TensorSeries mixed = product(x, step);
    for (size_t level = 0; level < x.size(); ++level) x[level] = x[level] + step[level] + mixed[level];
  }
  return x;
}

TensorSeries logarithm_definition(const TensorSeries& x) {
  TensorSeries sum = x, power = x;
  for (size_t n = 2; n <= x.size(); ++n) {
    power = product(power, x);
    const double weight = (n % 2 == 0 ? -1.0 : 1.0) / static_cast<double>(n);
    for (size_t level = 0; level < x.size(); ++level) sum[level] = sum[level] + weight * power[level];
  }
  return sum;
}

}  // namespace fastweights

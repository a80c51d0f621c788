#include "architectures/standardised.h"

#include <algorithm>

namespace fastweights {
namespace {

constexpr int64_t kBlock = 1024;  // columns

}  // namespace

Standardised::Standardised(const Tensor& features) : features_(features) {
  std::vector<Tensor> means, deviations;
  for (int64_t first = 0; first < features.size(1); first += kBlock) {
    const Tensor x = features.slice(1, first, first + kBlock).to(at::kDouble);
    means.push_back(x.mean(0));
    const Tensor deviation = (x - means.back()).square().mean(0).sqrt();
    deviations.push_back(at::where(deviation > 1e-12, deviation, at::ones_like(deviation)));
  }
  mean_ = at::cat(means);
  deviation_ = at::cat(deviations);
}

Tensor Standardised::block(const Tensor& features, int64_t first) const {
  const Tensor x = features.slice(1, first, first + kBlock).to(at::kDouble);
  return (x - mean_.slice(0, first, first + kBlock)) / deviation_.slice(0, first, first + kBlock);
}

Tensor Standardised::products(const Tensor& other) const {
  Tensor sums = at::zeros({other.size(0), features_.size(0)}, at::kDouble);
  for (int64_t first = 0; first < features_.size(1); first += kBlock)
    sums += at::matmul(block(other, first), block(features_, first).t());
  return sums;
}

std::pair<Tensor, Tensor> Standardised::linear_map(const Tensor& coefficients) const {
  std::vector<Tensor> weights;
  for (int64_t first = 0; first < features_.size(1); first += kBlock)
    weights.push_back(at::matmul(coefficients.t(), block(features_, first)) /
                      deviation_.slice(0, first, first + kBlock));
  const Tensor weight = at::cat(weights, 1);
  return {weight, -at::matmul(weight, mean_)};
}

}  // namespace fastweights

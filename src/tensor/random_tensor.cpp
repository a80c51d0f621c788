#include "tensor/random_tensor.h"

#include <cmath>

#include "base/error.h"
#include "kernels/cuda/dropout.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

template <typename F>
Tensor drawn(at::IntArrayRef shape, at::ScalarType type, F&& draw) {
  Tensor result = at::empty(shape, at::kDouble);
  double* values = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) values[i] = draw();
  return result.to(type);
}

}  // namespace

Tensor uniform(at::IntArrayRef shape, double low, double high, Random& random, at::ScalarType type) {
  FW_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high,
           "[uniform] low must not be above high, and both must be finite, got ", low, " and ", high);
  return drawn(shape, type, [&] { return random.uniform(low, high); });
}

namespace {

void check_rate(double rate) {
  FW_CHECK(rate >= 0 && rate < 1, "[dropout_mask] rate must be in [0, 1), got ", rate);
}

}  // namespace

Tensor dropout_mask(at::IntArrayRef shape, double rate, Random& random, at::ScalarType type) {
  check_rate(rate);
  const double kept = 1 / (1 - rate);
  return drawn(shape, type, [&] { return random.uniform() < rate ? 0 : kept; });
}

Tensor device_dropout_mask(at::IntArrayRef shape, double rate, Random& random, const at::Device& device,
                           const Tensor& device_seed) {
  check_rate(rate);
  Tensor mask = at::empty(shape, at::TensorOptions(at::kFloat).device(device));
  kernels::cuda_dropout(mask.data_ptr<float>(), mask.numel(), rate, random.state(),
                        device_seed.defined() ? device_seed.data_ptr<int64_t>() : nullptr, cuda_stream(mask));
  random.skip(static_cast<uint64_t>(mask.numel()));
  return mask;
}

}  // namespace fastweights

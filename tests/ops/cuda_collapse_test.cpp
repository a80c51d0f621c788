#include <gtest/gtest.h>

#include "nn/features.h"
#include "ops/scan/cuda/collapse.cuh"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

/// The GPU's kernels of the collapsed net, thread by thread on the CPU, against its definition in float64.

namespace fastweights {
namespace {

struct Layers {
  nn::Linear in, out;
  nn::LayerNorm norm;
  std::vector<Tensor> list() const {
    return {in.weight, in.bias, norm.weight, norm.bias, out.weight, out.bias};
  }
};

Layers random_layers(int64_t channels, int64_t units, int64_t numbers) {
  Random random(3);
  const auto make = [&](std::vector<int64_t> shape) {
    return uniform(shape, -1, 1, random, at::kFloat).to(at::kDouble).set_requires_grad(true);
  };
  Layers l;
  l.in = {make({units, channels}), make({units})};
  l.norm = {make({units}), make({units})};
  l.out = {make({numbers, units}), make({numbers})};
  return l;
}

double error(const Tensor& got, const Tensor& expected) {
  const double difference = (got.to(at::kDouble) - expected).abs().max().item<double>();
  return difference / expected.abs().max().item<double>();
}

void expect_agreement(int64_t channels, int64_t units, int64_t numbers) {
  const at::AutoGradMode on(true);
  const Layers layers = random_layers(channels, units, numbers);
  const Tensor map = nn::collapsed(layers.in, layers.norm, layers.out, Products::FixedOrder),
               gram = nn::gram(layers.in, Products::FixedOrder);
  Random random(4);
  const Tensor grad_map = uniform(map.sizes(), -1, 1, random, at::kFloat).to(at::kDouble),
               grad_gram = uniform(gram.sizes(), -1, 1, random, at::kDouble);
  const std::vector<Tensor> expected = vector_jacobian({map, gram}, layers.list(), {grad_map, grad_gram});

  std::vector<Tensor> single;
  for (const Tensor& x : layers.list()) single.push_back(x.detach().to(at::kFloat));
  const auto at_ = [&](int i) { return single[i].data_ptr<float>(); };
  const kernels::CudaLayers task = {channels, units, numbers, at_(0), at_(1), at_(2), at_(3), at_(4), at_(5)};
  Tensor made = at::full(map.sizes(), NAN, at::kFloat), square = at::full(gram.sizes(), NAN, at::kDouble);
  emulated_cuda::run(static_cast<unsigned>(numbers + channels + 1), kernels::cuda::kCollapseColumns, [&] {
    kernels::cuda::collapse(task, made.data_ptr<float>(), square.data_ptr<double>());
  });
  EXPECT_LT(error(made, map.detach()), 1e-6);
  EXPECT_LT(error(square, gram.detach()), 1e-13);

  std::vector<Tensor> to;
  for (const Tensor& x : single) to.push_back(at::full(x.sizes(), NAN, at::kFloat));
  const auto to_ = [&](int i) { return to[i].data_ptr<float>(); };
  Tensor centred = at::full({units, channels + 1}, NAN, at::kDouble);
  const kernels::CudaLayerGradients grads = {
      to_(0), to_(1), to_(2), to_(3), to_(4), to_(5), centred.data_ptr<double>()};
  const Tensor grad_single = grad_map.to(at::kFloat);
  kernels::cuda::CollapseRoom room;
  emulated_cuda::run(static_cast<unsigned>(units + numbers), kernels::cuda::kCollapseColumns, [&] {
    kernels::cuda::collapse_backward(task, grad_single.data_ptr<float>(), grad_gram.data_ptr<double>(), grads,
                                     room);
  });
  double sums[kernels::cuda::kCollapseColumns];
  emulated_cuda::run(static_cast<unsigned>(channels + 1), kernels::cuda::kCollapseColumns,
                     [&] { kernels::cuda::centre_backward(task, grads, sums); });
  for (size_t i = 0; i < to.size(); ++i) EXPECT_LT(error(to[i], expected[i]), 1e-6) << "parameter " << i;
}

TEST(CudaCollapse, AgreesWithTheDefinition) {
  expect_agreement(1, 2, 3);
  expect_agreement(7, 12, 17);
  expect_agreement(20, 9, 6);
}

}  // namespace
}  // namespace fastweights

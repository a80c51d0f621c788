#include "tensor/stage_sums.h"

#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::random;
using testing::relative_error;

// the sums of a step against plain additions: three stages whose slopes are given
struct StageProblem {
  Tensor base = random({2, 3}, 11).set_requires_grad(true);
  std::vector<Tensor> inputs = {random({2, 3}, 12).set_requires_grad(true),
                                random({2, 3}, 13).set_requires_grad(true)};

  // y2 = y + 0.5 k1, y3 = y - k1 + 2 k2, y4 = y + k1/6 + k3/3 with k1 = u, k2 = y2^2 or v, k3 = y3 v
  template <typename Sums>
  std::vector<Tensor> run(Sums&& sums, bool second_ignores_its_state) const {
    std::vector<Tensor> slopes = {inputs[0] * 1.0};
    const Tensor y2 = sums(slopes, std::vector<double>{0.5});
    slopes.push_back(second_ignores_its_state ? inputs[1].sin() : y2.pow(2));
    const Tensor y3 = sums(slopes, std::vector<double>{-1, 2});
    slopes.push_back(y3 * inputs[1]);
    return {sums(slopes, std::vector<double>{1.0 / 6, 0, 1.0 / 3}), y3};
  }
  std::vector<Tensor> fused(bool ignores) const {
    StageSums sums(base);
    return run([&](const auto& slopes, const auto& weights) { return sums.next(slopes, weights); }, ignores);
  }
  std::vector<Tensor> plain(bool ignores) const {
    const auto add = [&](const std::vector<Tensor>& slopes, const std::vector<double>& weights) {
      Tensor sum = base;
      for (size_t j = 0; j < slopes.size(); ++j) sum = sum + weights[j] * slopes[j];
      return sum;
    };
    return run(add, ignores);
  }
};

TEST(StageSums, GradientsAreThoseOfPlainAdditions) {
  const StageProblem p;
  for (const bool ignores : {false, true}) {
    for (const size_t which : {0, 1}) {
      const Tensor fused = p.fused(ignores)[which], plain = p.plain(ignores)[which];
      EXPECT_LT(relative_error(fused, plain), 1e-15);
      const Tensor weight = random({2, 3}, 14);
      const std::vector<Tensor> all = {p.base, p.inputs[0], p.inputs[1]};
      const std::vector<Tensor> got = vector_jacobian({fused}, all, {weight}),
                                expected = vector_jacobian({plain}, all, {weight});
      for (size_t i = 0; i < all.size(); ++i)
        EXPECT_LT(relative_error(got[i], expected[i]), 1e-14) << ignores << which << i;
    }
  }
}

// a pass that needs only some gradients must not leave anything for the next one
TEST(StageSums, PassesOverOneGraphDoNotMix) {
  const StageProblem p;
  const std::vector<Tensor> out = p.fused(false), plain = p.plain(false);
  const auto backward = [](const Tensor& y, const Tensor& x) {
    x.mutable_grad() = Tensor();
    y.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/false, at::TensorList({x}));
    return x.grad().defined() ? x.grad().clone() : at::zeros_like(x);
  };
  for (const Tensor& x : {p.inputs[1], p.base, p.inputs[0], p.inputs[1]}) {
    for (const size_t which : {0, 1, 0}) {
      EXPECT_LT(relative_error(backward(out[which], x), backward(plain[which], x)), 1e-14);
    }
  }
}

TEST(StageSums, GradientsOfGradientsWork) {
  const StageProblem p;
  const auto twice = [&](const Tensor& y) {
    p.base.mutable_grad() = Tensor();
    y.pow(2).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true, at::TensorList({p.base}));
    const Tensor first = p.base.grad();
    // a gradient with a graph of its own would keep itself alive
    p.base.mutable_grad() = Tensor();
    return vector_jacobian({first}, {p.inputs[0]}, {random({2, 3}, 15)})[0];
  };
  EXPECT_LT(relative_error(twice(p.fused(false)[0]), twice(p.plain(false)[0])), 1e-13);
}

}  // namespace
}  // namespace fastweights

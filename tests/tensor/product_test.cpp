#include "fastweights/tensor.h"

#include <cstring>
#include <functional>

#include "support/support.h"
#include "tensor/autograd.h"
#include "tensor/runtime.h"

namespace fastweights {
namespace {

using testing::autograd_gradient;
using testing::central_difference;
using testing::error_message;
using testing::random;
using testing::relative_error;

using Function = std::function<Tensor(const Tensor&)>;

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.sizes() == y.sizes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

struct Row {
  Tensor value, gradient;
};

// value of f and its gradient with the weights g of the outputs
Row evaluate(const Function& f, const Tensor& x, const Tensor& g) {
  const Tensor leaf = x.detach().clone().set_requires_grad(true);
  const Tensor value = f(leaf);
  return {value.detach(), vector_jacobian({value}, {leaf}, {g})[0]};
}

// f maps rows [R, ...] to rows of the size `out`: each row of a batch has the bits it has alone, in value and
// gradient, for either type and a memory that starts anywhere
void expect_rows_alone(const char* name, const Function& f, at::IntArrayRef row, int64_t out) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (const int64_t rows : {1, 2, 3, 5, 33, 199}) {
      std::vector<int64_t> sizes = row.vec();
      sizes.insert(sizes.begin(), rows + 1);
      const Tensor x = (random(sizes, 7 + rows) * 4).to(type).slice(0, 1);
      const Tensor g = random({rows, out}, 8 + rows).to(type);
      const Row all = evaluate(f, x, g);
      for (int64_t r = 0; r<rows; r += rows> 20 ? 13 : 1) {
        const Row alone = evaluate(f, x.slice(0, r, r + 1), g.slice(0, r, r + 1).clone());
        ASSERT_TRUE(same_bits(alone.value, all.value.slice(0, r, r + 1)))
            << name << " " << type << " row " << r << " of " << x.sizes() << ", threads " << thread_count();
        ASSERT_TRUE(same_bits(alone.gradient, all.gradient.slice(0, r, r + 1)))
            << "gradient of " << name << " " << type << " row " << r << " of " << x.sizes() << ", threads "
            << thread_count();
      }
    }
  }
}

// with one thread and with two; changing their number is slow, so it is done around as much as possible
void for_thread_counts(const std::function<void()>& body) {
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    body();
  }
  set_thread_count(before);
}

// the list in tensor.h: what LibTorch may be trusted with where rows must not depend on each other
TEST(Products, ElementsAndRowsOfLibTorchHaveTheBitsTheyHaveAlone) {
  for_thread_counts([] {
    for (const int64_t width : {1, 3, 7, 9, 17, 33, 65, 333}) {
      expect_rows_alone(
          "exp", [](const Tensor& x) { return at::exp(x); }, {width}, width);
      expect_rows_alone(
          "tanh", [](const Tensor& x) { return at::tanh(x); }, {width}, width);
      expect_rows_alone(
          "relu", [](const Tensor& x) { return at::relu(x); }, {width}, width);
      const Function layer_norm = [&](const Tensor& x) {
        const Tensor weight = random({width}, 3).to(x.scalar_type()),
                     bias = random({width}, 4).to(x.scalar_type());
        return at::layer_norm(x, {width}, weight, bias);
      };
      expect_rows_alone("layer_norm", layer_norm, {width}, width);
    }
  });
}

TEST(Products, OurSigmoidAndSoftmaxHaveTheBitsTheyHaveAlone) {
  for_thread_counts([] {
    for (const int64_t width : {1, 3, 7, 9, 17, 33, 65, 333}) {
      expect_rows_alone(
          "softmax", [](const Tensor& x) { return softmax(x, Products::FixedOrder); }, {width}, width);
      expect_rows_alone(
          "sigmoid", [](const Tensor& x) { return sigmoid(x, Products::FixedOrder); }, {width}, width);
    }
  });
}

TEST(Products, SigmoidIsLibTorchsToRounding) {
  const Tensor x = random({7, 5}, 1) * 30;
  EXPECT_LT(relative_error(sigmoid(x, Products::FixedOrder), at::sigmoid(x)), 4e-16);
  EXPECT_TRUE(same_bits(sigmoid(x, Products::Fast), at::sigmoid(x)));
  const Function ours = [](const Tensor& x) { return sigmoid(x, Products::FixedOrder).pow(2).sum(); };
  const Function theirs = [](const Tensor& x) { return at::sigmoid(x).pow(2).sum(); };
  EXPECT_LT(relative_error(autograd_gradient(ours, x), autograd_gradient(theirs, x)), 1e-15);
}

// exp(-x) overflows here, and zero times infinity must not come out of it
TEST(Products, SigmoidIsFlatFarFromZero) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::tensor({-1e4, -750.0, 750.0, 1e4}, at::kDouble).to(type);
    const Tensor y = sigmoid(x, Products::FixedOrder);
    EXPECT_TRUE(at::equal(y, at::tensor({0.0, 0.0, 1.0, 1.0}, at::kDouble).to(type))) << y;
    const Function f = [](const Tensor& x) { return sigmoid(x, Products::FixedOrder).sum(); };
    EXPECT_TRUE(at::equal(autograd_gradient(f, x), at::zeros_like(x)));
  }
}

TEST(Products, RowsOfALinearMapHaveTheBitsTheyHaveAlone) {
  for_thread_counts([] {
    for (const int64_t in : {1, 3, 8, 17, 50}) {
      for (const int64_t out : {1, 2, 5, 8, 13, 31}) {
        const Function f = [&](const Tensor& x) {
          const Tensor weight = random({out, in}, 5).to(x.scalar_type()),
                       bias = random({out}, 6).to(x.scalar_type());
          return linear(x, weight, bias, Products::FixedOrder);
        };
        expect_rows_alone("linear", f, {in}, out);
      }
    }
  });
}

TEST(Products, MatricesOfABatchHaveTheBitsTheyHaveAlone) {
  for_thread_counts([] {
    for (const int64_t m : {1, 3, 4, 9}) {
      for (const int64_t n : {1, 2, 4, 7, 13, 20}) {
        const auto vectors = [](const Tensor& w, int64_t width) {
          return at::slice(w.detach().flatten(1), 1, 0, 1).expand({w.size(0), width}) +
                 random({1, width}, 9).to(w.scalar_type());
        };
        const Function of_w = [&](const Tensor& w) { return matvec(w, vectors(w, n)); };
        const Function of_w_transposed = [&](const Tensor& w) { return matvec_transposed(w, vectors(w, m)); };
        expect_rows_alone("matvec", of_w, {m, n}, m);
        expect_rows_alone("matvec_transposed", of_w_transposed, {m, n}, n);
        const auto matrices = [&](const Tensor& k) {
          return at::slice(k.detach(), 1, 0, 1).unsqueeze(-1) + random({1, m, n}, 10).to(k.scalar_type());
        };
        const Function of_k = [&](const Tensor& k) { return matvec(matrices(k), k); };
        const Function of_v = [&](const Tensor& v) { return matvec_transposed(matrices(v), v); };
        expect_rows_alone("matvec by k", of_k, {n}, m);
        expect_rows_alone("matvec_transposed by v", of_v, {m}, n);
      }
    }
  });
}

// enough of them for each thread
TEST(Products, ThreadsDoNotChangeLargeBatches) {
  const Tensor w = random({5000, 5, 7}, 1), k = random({5000, 7}, 2), v = random({5000, 5}, 3);
  const auto all = [&] {
    const Tensor leaf = w.clone().set_requires_grad(true);
    const Tensor forward = matvec(leaf, k), transposed = matvec_transposed(leaf, v);
    std::vector<Tensor> result = vector_jacobian({forward, transposed}, {leaf}, {v, k});
    result.insert(result.end(), {forward, transposed, linear(k, w[0], {}, Products::FixedOrder)});
    return result;
  };
  std::vector<std::vector<Tensor>> results;
  for_thread_counts([&] { results.push_back(all()); });
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bits(results[0][i], results[1][i])) << i;
  EXPECT_TRUE(same_bits(matvec(w[4321], k[4321]), results[0][1][4321]));
}

TEST(Products, LinearIsLibTorchsToRounding) {
  // n additions lose at most n roundings, and the sums here are not much smaller than their terms
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 3e-6}, std::pair{at::kDouble, 1e-14}}) {
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{5}, {1, 5}, {3, 4, 5}, {37, 33}}) {
      const int64_t in = sizes.back();
      const Tensor x = random(sizes, 1).to(type), weight = random({7, in}, 2).to(type);
      const Tensor bias = random({7}, 3).to(type);
      const Tensor expected = at::linear(x, weight, bias);
      EXPECT_LT(relative_error(linear(x, weight, bias, Products::FixedOrder), expected), tolerance)
          << x.sizes();
      EXPECT_LT(relative_error(linear(x, weight, {}, Products::FixedOrder), at::linear(x, weight)),
                tolerance);
      EXPECT_TRUE(same_bits(linear(x, weight, bias, Products::Fast), expected));
    }
  }
}

TEST(Products, LinearReadsMemoryOfAnyLayout) {
  const Tensor x = random({4, 6, 5}, 1).transpose(0, 1), weight = random({5, 3}, 2).t(),
               bias = random({6}, 3);
  const Tensor every_second = bias.slice(0, 0, 6, 2);
  const Tensor got = linear(x, weight, every_second, Products::FixedOrder);
  EXPECT_LT(relative_error(got, at::linear(x, weight, every_second)), 1e-15);
}

TEST(Products, MatrixVectorProductsAreLibTorchsToRounding) {
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 3e-6}, std::pair{at::kDouble, 1e-14}}) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{3, 5},
                                                                               {1, 1},
                                                                               {4, 4},
                                                                               {2, 8, 8},
                                                                               {5, 3, 7, 9},
                                                                               {300, 20, 20},
                                                                               {2, 6, 13},
                                                                               {9, 1, 5},
                                                                               {9, 5, 1}}) {
      const Tensor w = random(sizes, 1).to(type);
      std::vector<int64_t> of_k = sizes, of_v = sizes;
      of_k.erase(of_k.end() - 2);
      of_v.pop_back();
      const Tensor k = random(of_k, 2).to(type), v = random(of_v, 3).to(type);
      const Tensor forward = at::matmul(w, k.unsqueeze(-1)).squeeze(-1);
      const Tensor transposed = at::matmul(w.transpose(-1, -2), v.unsqueeze(-1)).squeeze(-1);
      EXPECT_LT(relative_error(matvec(w, k), forward), tolerance) << w.sizes();
      EXPECT_LT(relative_error(matvec_transposed(w, v), transposed), tolerance) << w.sizes();
      // a view with rows and columns exchanged is another way to say the same
      EXPECT_LT(relative_error(matvec(w.transpose(-1, -2), v), transposed), tolerance) << w.sizes();
    }
  }
}

// f is a function of inputs; each gradient against central differences, with tolerances of those differences
void expect_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                      std::vector<Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Function of_one = [&](const Tensor& x) {
      std::vector<Tensor> moved = inputs;
      moved[i] = x;
      const Tensor y = f(moved);
      return (y.pow(2) * random(y.sizes(), 99)).sum();
    };
    EXPECT_LT(relative_error(autograd_gradient(of_one, inputs[i]), central_difference(of_one, inputs[i])),
              1e-8)
        << "input " << i;
  }
}

TEST(Products, GradientsAreThoseOfCentralDifferences) {
  const auto fixed = [](const std::vector<Tensor>& in) {
    return linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), Products::FixedOrder);
  };
  expect_gradients(fixed, {random({2, 3, 5}, 1), random({7, 5}, 2), random({7}, 3)});
  expect_gradients(fixed, {random({5}, 1), random({3, 5}, 2)});
  expect_gradients([](const std::vector<Tensor>& in) { return matvec(in[0], in[1]); },
                   {random({2, 3, 5, 6}, 4), random({2, 3, 6}, 5)});
  expect_gradients([](const std::vector<Tensor>& in) { return matvec_transposed(in[0], in[1]); },
                   {random({2, 3, 5, 6}, 6), random({2, 3, 5}, 7)});
  expect_gradients([](const std::vector<Tensor>& in) { return sigmoid(in[0], Products::FixedOrder); },
                   {random({3, 5}, 8)});
}

TEST(Products, GradientOfWeightAddsRowsInTheirOrder) {
  const Tensor x = random({9, 5}, 1).to(at::kFloat), g = random({9, 3}, 2).to(at::kFloat);
  const Tensor weight = random({3, 5}, 3).to(at::kFloat).set_requires_grad(true);
  const Tensor bias = random({3}, 4).to(at::kFloat).set_requires_grad(true);
  const Tensor y = linear(x, weight, bias, Products::FixedOrder);
  const std::vector<Tensor> got = vector_jacobian({y}, {weight, bias}, {g});
  Tensor of_weight = at::zeros({3, 5}, at::kFloat), of_bias = at::zeros({3}, at::kFloat);
  for (int64_t r = 0; r < 9; ++r) {
    of_weight = of_weight + g[r].unsqueeze(1) * x[r].unsqueeze(0);
    of_bias = of_bias + g[r];
  }
  EXPECT_TRUE(same_bits(got[0], of_weight));
  EXPECT_TRUE(same_bits(got[1], of_bias));
}

TEST(Products, EmptyDimensionsGiveEmptyOrZero) {
  const auto zeros = [](at::IntArrayRef sizes) { return at::zeros(sizes, at::kDouble); };
  const Tensor bias = random({3}, 1);
  EXPECT_EQ(linear(zeros({0, 5}), zeros({3, 5}), bias, Products::FixedOrder).sizes(),
            at::IntArrayRef({0, 3}));
  EXPECT_EQ(linear(zeros({2, 5}), zeros({0, 5}), {}, Products::FixedOrder).sizes(), at::IntArrayRef({2, 0}));
  const Tensor nothing_summed = linear(zeros({2, 0}), zeros({3, 0}), bias, Products::FixedOrder);
  EXPECT_TRUE(at::equal(nothing_summed, bias.expand({2, 3})));
  EXPECT_TRUE(at::equal(matvec(zeros({2, 3, 0}), zeros({2, 0})), zeros({2, 3})));
  EXPECT_TRUE(at::equal(matvec_transposed(zeros({2, 0, 3}), zeros({2, 0})), zeros({2, 3})));
  EXPECT_EQ(matvec(zeros({0, 4, 3}), zeros({0, 3})).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(matvec_transposed(zeros({2, 4, 0}), zeros({2, 4})).sizes(), at::IntArrayRef({2, 0}));

  const Tensor x = zeros({0, 5}).set_requires_grad(true), weight = random({3, 5}, 2).set_requires_grad(true);
  const Tensor y = linear(x, weight, {}, Products::FixedOrder);
  const std::vector<Tensor> got = vector_jacobian({y}, {x, weight}, {at::ones_like(y)});
  EXPECT_EQ(got[0].sizes(), x.sizes());
  EXPECT_TRUE(at::equal(got[1], zeros({3, 5})));
}

TEST(Products, WrongSizesAreNamed) {
  const auto zeros = [](at::IntArrayRef sizes) { return at::zeros(sizes, at::kDouble); };
  EXPECT_EQ(error_message([&] {
              matvec(zeros({2, 3, 5}), zeros({2, 3}));
            }),
            "[matvec] the vectors must be [2, 5] for w [2, 3, 5], got [2, 3]");
  EXPECT_EQ(error_message([&] {
              matvec_transposed(zeros({2, 3, 5}), zeros({1, 3}));
            }),
            "[matvec_transposed] the vectors must be [2, 3] for w [2, 3, 5], got [1, 3]");
  EXPECT_EQ(error_message([&] { matvec(zeros({3}), zeros({3})); }),
            "[matvec] w must be [..., M, K], got [3]");
  EXPECT_EQ(error_message([&] {
              matvec(zeros({2, 3}), zeros({3}).to(at::kFloat));
            }),
            "[matvec] w is Double on cpu but the vectors are Float on cpu");
  for (const Products products : {Products::Fast, Products::FixedOrder}) {
    EXPECT_EQ(error_message([&] {
                linear(zeros({2, 4}), zeros({3, 5}), {}, products);
              }),
              "[linear] x must be [..., 5] for weight [3, 5], got [2, 4]");
    EXPECT_EQ(error_message([&] {
                linear(zeros({2, 5}), zeros({3, 5}), zeros({5}), products);
              }),
              "[linear] bias must be [3] for weight [3, 5], got [5]");
    EXPECT_EQ(error_message([&] {
                linear(zeros({2, 5}), zeros({5}), {}, products);
              }),
              "[linear] weight must be [O, I], got [5]");
  }
}

}  // namespace
}  // namespace fastweights

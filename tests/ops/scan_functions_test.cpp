#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "ops/scan/features.h"
#include "support/support.h"

/// The kernels' own tanh, sigmoid, softmax and exponential, through recurrences of one step that are nothing
/// but these functions: in units of the last place against long double.

namespace fastweights::testing {
namespace {

const at::ScalarType kFunctionTypes[] = {at::kFloat, at::kDouble};

// numbers of all sizes and signs in the type's precision, and some that are special
Tensor arguments(at::ScalarType type, double largest) {
  std::mt19937_64 engine(5);
  std::vector<double> x = {0.0, -0.0, 1e-300, -1e-300, 1e-39, -1e-39, 1.2e-38, 0.5, -0.5, 1, -1};
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  for (int i = 0; i < 20000; ++i) {
    // sizes down to 1e-30, and all over the range where the function changes
    x.push_back(std::ldexp(1 + uniform(), -static_cast<int>(engine() % 100)) * (i % 2 ? 1 : -1));
    x.push_back((2 * uniform() - 1) * largest);
    x.push_back(4 * uniform() - 2);
  }
  return at::tensor(x, at::kDouble).to(type);
}

Tensor offsets_of_one_step() { return at::tensor({0, 1}, at::kLong); }

// one head per number: W = tanh(v), from W = 0 by an Euler step of the Delta rule
Tensor op_tanh(const Tensor& x) {
  const int64_t count = x.size(0);
  ScanInput input;
  input.k = at::ones({1, 1, count, 1}, x.options());
  input.v = x.view({1, 1, count, 1});
  input.beta = at::ones({1, 1, count}, x.options());
  input.dt = at::ones({1}, x.options());
  input.w0 = at::zeros({1, count, 1, 1}, x.options());
  input.offsets = offsets_of_one_step();
  return scan(input, {.rule = delta_post(), .method = euler(), .backend = Backend::Cpu}).w.view({count});
}

// 1 - exp(-x): a rate of x for a time of 1 on the way from 0 to 1
Tensor op_decay(const Tensor& x) {
  const int64_t count = x.size(0);
  ScanInput input;
  input.k = at::ones({1, 1, count, 1}, x.options());
  input.v = input.k;
  input.beta = x.view({1, 1, count});
  input.dt = at::ones({1}, x.options());
  input.w0 = at::zeros({1, count, 1, 1}, x.options());
  input.offsets = offsets_of_one_step();
  return scan(input, {.rule = delta_pre(), .method = Flow{}, .backend = Backend::Cpu}).w.view({count});
}

// what Hebb's rule writes with programs made of the single feature 1
Tensor op_features(const Tensor& k_weight, const Tensor& beta_weight, const ProgramForms& forms) {
  const at::TensorOptions options = k_weight.options();
  const int64_t heads = k_weight.size(0), width = k_weight.size(1);
  ScanFeatures input = {};
  input.z = at::ones({1, 1, 1}, options);
  input.k_weight = k_weight;
  input.beta_weight = beta_weight;
  input.v_weight = at::ones({heads, width, 1}, options);
  input.key_rows = input.value_rows = 1;
  input.dt = at::ones({1}, options);
  input.w0 = at::zeros({1, heads, width, width}, options);
  input.offsets = offsets_of_one_step();
  input.output_steps = at::tensor({1}, at::kLong);
  input.output_offsets = offsets_of_one_step();
  return scan_features(input, forms, {.rule = hebb(), .method = euler(), .backend = Backend::Cpu}).w;
}

Tensor op_sigmoid(const Tensor& x) {
  const Tensor ones = at::ones({x.size(0), 1, 1}, x.options());
  const ProgramForms forms = {.key = KeyForm::Raw, .value = ValueForm::Raw, .rate = LearningRate::Sigmoid};
  return op_features(ones, x.view({-1, 1}), forms).view({-1});
}

// rows of x [N, D]
Tensor op_softmax(const Tensor& x) {
  const Tensor ones = at::ones({x.size(0), 1}, x.options());
  const ProgramForms forms = {.key = KeyForm::Softmax, .value = ValueForm::Raw, .rate = LearningRate::Raw};
  return op_features(x.unsqueeze(-1), ones, forms)[0].select(1, 0);
}

// distance of neighbouring numbers of a type at x; numbers too small for full precision become zero
double last_place(long double x, at::ScalarType type) {
  const int digits = type == at::kFloat ? 24 : 53, smallest = type == at::kFloat ? -126 : -1022;
  const int exponent = x == 0 ? smallest : std::max(std::ilogb(x), smallest);
  return static_cast<double>(std::ldexp(1.0L, exponent - digits + 1));
}

// largest error in units of the last place; nothing below the smallest normal number counts
template <typename Function>
double largest_error(const Tensor& x, const Tensor& got, const Function& function) {
  const at::ScalarType type = x.scalar_type();
  const double tiny = type == at::kFloat ? 0x1p-126 : 0x1p-1022;
  const Tensor wide = x.to(at::kDouble), result = got.to(at::kDouble);
  double largest = 0;
  for (int64_t i = 0; i < x.size(0); ++i) {
    const long double expected = function(static_cast<long double>(wide.data_ptr<double>()[i]));
    const long double error = std::abs(expected - result.data_ptr<double>()[i]);
    if (!(error <= tiny))
      largest = std::max(largest, static_cast<double>(error) / last_place(expected, type));
    EXPECT_FALSE(std::isnan(result.data_ptr<double>()[i])) << wide.data_ptr<double>()[i];
  }
  return largest;
}

Tensor special(at::ScalarType type) {
  return at::tensor({double{INFINITY}, -double{INFINITY}, 1e30, -1e30, 800.0, -800.0, 0.0, -0.0, double{NAN}},
                    at::kDouble)
      .to(type);
}

bool is(const Tensor& got, const std::vector<double>& expected) {
  return at::equal(got.to(at::kDouble), at::tensor(expected, at::kDouble));
}

// exp(2x) - 1 has an error of one or two units, and its quotient with itself plus two, by Newton's steps or a
// division, adds another; 2.999 was found in float32, 2.949 in float64
TEST(ScanFunctions, TanhIsGoodToFourUnits) {
  for (const at::ScalarType type : kFunctionTypes) {
    const Tensor x = arguments(type, 25);
    const double error = largest_error(x, op_tanh(x), [](long double t) { return std::tanh(t); });
    EXPECT_LE(error, 4) << type;
    RecordProperty(message("tanh_", type), std::to_string(error));
    const Tensor extremes = op_tanh(special(type));
    EXPECT_TRUE(is(extremes.slice(0, 6, 8), {0, 0})) << type;
    EXPECT_TRUE(std::isnan(extremes[8].item<double>())) << type;
    // rounding may carry it a unit beyond 1, or leave it a unit below where the compiler fused no
    // multiplication and addition in Newton's last step
    const double unit = type == at::kFloat ? 0x1p-23 : 0x1p-52;
    const Tensor ends = at::tensor({1.0, -1.0, 1.0, -1.0, 1.0, -1.0}, at::kDouble);
    EXPECT_LE((extremes.slice(0, 0, 6).to(at::kDouble) - ends).abs().max().item<double>(), unit) << type;
    EXPECT_LE(op_tanh(x).abs().max().item<double>(), 1 + unit) << type;
  }
}

// the exponential's error, a sum and a division; 1.9 and 2.0 were found
TEST(ScanFunctions, SigmoidIsGoodToFourUnits) {
  for (const at::ScalarType type : kFunctionTypes) {
    // beyond this bound the exponential does not grow any more
    const double bound = type == at::kFloat ? 87 : 708;
    const Tensor x = arguments(type, bound);
    const double error =
        largest_error(x, op_sigmoid(x), [](long double t) { return 1 / (1 + std::exp(-t)); });
    EXPECT_LE(error, 4) << type;
    RecordProperty(message("sigmoid_", type), std::to_string(error));
    const Tensor extremes = op_sigmoid(special(type)), nothing = op_sigmoid(at::full({1}, -bound, type));
    EXPECT_TRUE(is(extremes.index_select(0, at::tensor({0, 2, 4, 6, 7}, at::kLong)), {1, 1, 1, 0.5, 0.5}))
        << type;
    // instead of zero
    const Tensor small = extremes.index_select(0, at::tensor({1, 3, 5}, at::kLong));
    EXPECT_TRUE((small >= 0).logical_and(small <= nothing).all().item<bool>()) << type;
    EXPECT_LT(nothing.item<double>(), type == at::kFloat ? 2e-38 : 4e-308);
    EXPECT_TRUE(std::isnan(extremes[8].item<double>())) << type;
  }
}

// short steps by a series, long ones by the exponential; 1.8 and 1.7 were found
TEST(ScanFunctions, DecayIsGoodToFourUnits) {
  for (const at::ScalarType type : kFunctionTypes) {
    const Tensor x = arguments(type, type == at::kFloat ? 80 : 700).abs();
    const double error = largest_error(x, op_decay(x), [](long double t) { return -std::expm1(-t); });
    EXPECT_LE(error, 4) << type;
    RecordProperty(message("decay_", type), std::to_string(error));
    // one that grows
    const Tensor growing = -arguments(type, 50).abs();
    const double growth =
        largest_error(growing, op_decay(growing), [](long double t) { return -std::expm1(-t); });
    EXPECT_LE(growth, 4) << type;
    const Tensor ends = op_decay(at::tensor({0.0, 800.0, 1e30}, at::kDouble).to(type)).to(at::kDouble);
    EXPECT_LE((ends - at::tensor({0., 1., 1.}, at::kDouble)).abs().max().item<double>(),
              type == at::kFloat ? 0x1p-23 : 0x1p-52);
    EXPECT_TRUE(std::isnan(op_decay(at::full({1}, NAN, type)).item<double>())) << type;
  }
}

// an exponential, a sum of D of them one after another, and a product with its inverse: with an exponential
// without errors 8.5 units were found for 64 numbers, and 3.5 for 5. Arguments lie on a grid, so that their
// differences are exact: those of arbitrary ones are not in any softmax
TEST(ScanFunctions, SoftmaxIsAsGoodAsItsSum) {
  for (const at::ScalarType type : kFunctionTypes) {
    for (const int64_t width : {1, 2, 5, 16, 23, 64}) {
      const Tensor x = ((8 * random({1000, width}, 7) * 0x1p16).round() * 0x1p-16).to(type);
      const Tensor got = op_softmax(x).contiguous();
      double largest = 0;
      for (int64_t n = 0; n < x.size(0); ++n) {
        const Tensor row = x[n].to(at::kDouble);
        long double sum = 0;
        for (int64_t i = 0; i < width; ++i)
          sum += std::exp(static_cast<long double>(row.data_ptr<double>()[i]));
        const auto share = [&](long double t) { return std::exp(t) / sum; };
        largest = std::max(largest, largest_error(x[n], got[n], share));
      }
      EXPECT_LE(largest, 3 + std::sqrt(static_cast<double>(width))) << type << ", " << width;
      RecordProperty(message("softmax_", type, "_", width), std::to_string(largest));
    }
  }
}

TEST(ScanFunctions, SoftmaxOfExtremesIsWhatItIsInTheLimit) {
  for (const at::ScalarType type : kFunctionTypes) {
    const double inf = INFINITY, nan = NAN;
    const Tensor x =
        at::tensor({1e4, 0., -1e4, 5., -inf, 5., -1e30, -1e30, -1e30, 0., nan, 0., -0., 0., -0., inf, 0., 0.},
                   at::kDouble)
            .view({6, 3})
            .to(type);
    const Tensor got = op_softmax(x).to(at::kDouble);
    EXPECT_LT(relative_error(got[0], at::tensor({1., 0., 0.}, at::kDouble)), 1e-37) << type;
    EXPECT_LT(relative_error(got[1], at::tensor({.5, 0., .5}, at::kDouble)), 1e-37) << type;
    for (const int64_t row : {2, 4}) {
      EXPECT_LT(relative_error(got[row], at::full({3}, 1.0 / 3, at::kDouble)),
                type == at::kFloat ? 1e-7 : 2e-16)
          << type;
    }
    // as LibTorch's
    for (const int64_t row : {3, 5}) EXPECT_TRUE(at::isnan(got[row]).all().item<bool>()) << type;
  }
}

}  // namespace
}  // namespace fastweights::testing

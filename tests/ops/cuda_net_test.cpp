#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"
#include "ops/scan/cuda/net_backward.cuh"

/// The GPU's kernels of the slow net, thread by thread on the CPU, against its formulas in float64 and their
/// differences.

namespace fastweights::kernels {

namespace cuda {
// the shared memory of the block that runs; cuda_kernel_cases.cpp has it
extern float4 bytes[];
}  // namespace cuda

namespace {

struct NetCase {
  int64_t rows, channels, heads, width;
  bool separate = false, key_scale = true, value_scale = false, masked = false;
  ScanForm key = ScanForm::Softmax, value = ScanForm::Tanh, rate = ScanForm::Sigmoid;
  int64_t steps = -1;  // that there are, of two rows each
  unsigned threads = 64;
};

using NetValues = std::vector<double>;

struct Inputs {
  NetValues x, x_values, r, r_values, weight, weight_values, mask;
  NetValues grad_k, grad_v, grad_beta;
};

NetValues drawn_values(int64_t count, double low, double high, Random& random) {
  NetValues numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.uniform(low, high)));
  return numbers;
}

int64_t columns(const NetCase& c, bool scale) { return c.channels + (scale ? 2 : 1); }
int64_t each(const NetCase& c) { return c.separate ? c.width + 1 : 2 * c.width + 1; }

Inputs inputs_of(const NetCase& c) {
  Random random(5);
  const int64_t samples = 3;
  Inputs in;
  in.x = drawn_values(c.rows * c.channels, -1, 1, random);
  in.r = drawn_values(c.rows, 0.5, 1.5, random);
  in.weight = drawn_values(c.heads * each(c) * columns(c, c.key_scale), -1, 1, random);
  if (c.separate) {
    in.x_values = drawn_values(c.rows * c.channels, -1, 1, random);
    in.r_values = drawn_values(c.rows, 0.5, 1.5, random);
    in.weight_values = drawn_values(c.heads * c.width * columns(c, c.value_scale), -1, 1, random);
  }
  if (c.masked) {
    in.mask = drawn_values(samples * c.heads * c.width, 0, 2, random);
    for (size_t i = 0; i < in.mask.size(); i += 3) in.mask[i] = 0;
  }
  in.grad_k = drawn_values(c.rows * c.heads * c.width, -1, 1, random);
  in.grad_v = drawn_values(c.rows * c.heads * c.width, -1, 1, random);
  in.grad_beta = drawn_values(c.rows * c.heads, -1, 1, random);
  return in;
}

// two rows for every step, steps for three samples
std::vector<int64_t> owners(const NetCase& c) {
  std::vector<int64_t> samples;
  for (int64_t n = 0; n < (c.rows + 1) / 2; ++n) samples.push_back(n % 3);
  return samples;
}

int64_t counted(const NetCase& c) { return c.steps < 0 ? c.rows : 2 * c.steps; }

struct Made {
  NetValues k, v, beta;
};

double number(const NetValues& weight, int64_t row, int64_t columns, const double* x, int64_t channels,
              double r) {
  const double* w = weight.data() + row * columns;
  double sum = w[channels];
  for (int64_t c = 0; c < channels; ++c) sum += w[c] * x[c];
  return columns == channels + 2 ? r * sum + w[channels + 1] : sum;
}

Made definition(const NetCase& c, const Inputs& in) {
  const std::vector<int64_t> samples = owners(c);
  Made made;
  for (int64_t n = 0; n < c.rows; ++n) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const double* x = in.x.data() + n * c.channels;
      const auto of = [&](int64_t i) {
        return number(in.weight, h * each(c) + i, columns(c, c.key_scale), x, c.channels, in.r[n]);
      };
      NetValues key;
      double sum = 0;
      for (int64_t i = 0; i < c.width; ++i) {
        key.push_back(c.key == ScanForm::Softmax ? std::exp(of(i)) : of(i));
        sum += key.back();
      }
      for (int64_t i = 0; i < c.width; ++i) {
        made.k.push_back(c.key == ScanForm::Softmax ? key[i] / sum : key[i]);
        const double value = c.separate
                                 ? number(in.weight_values, h * c.width + i, columns(c, c.value_scale),
                                          in.x_values.data() + n * c.channels, c.channels, in.r_values[n])
                                 : of(c.width + i);
        const double factor = c.masked ? in.mask[(samples[n / 2] * c.heads + h) * c.width + i] : 1;
        made.v.push_back((c.value == ScanForm::Tanh ? std::tanh(value) : value) * factor);
      }
      const double rate = of(each(c) - 1);
      made.beta.push_back(c.rate == ScanForm::Sigmoid ? 1 / (1 + std::exp(-rate)) : rate);
    }
  }
  return made;
}

double loss(const NetCase& c, const Inputs& in) {
  const Made made = definition(c, in);
  const int64_t vectors = counted(c) * c.heads * c.width, rates = counted(c) * c.heads;
  double sum = 0;
  for (int64_t i = 0; i < vectors; ++i) sum += made.k[i] * in.grad_k[i] + made.v[i] * in.grad_v[i];
  for (int64_t i = 0; i < rates; ++i) sum += made.beta[i] * in.grad_beta[i];
  return sum;
}

NetValues differences(const NetCase& c, Inputs in, NetValues Inputs::*which) {
  constexpr double kStep = 1e-5;
  NetValues result;
  for (size_t i = 0; i < (in.*which).size(); ++i) {
    const double old = (in.*which)[i];
    (in.*which)[i] = old + kStep;
    const double more = loss(c, in);
    (in.*which)[i] = old - kStep;
    result.push_back((more - loss(c, in)) / (2 * kStep));
    (in.*which)[i] = old;
  }
  return result;
}

std::vector<float> single(const NetValues& x) { return {x.begin(), x.end()}; }

double error_of(const std::vector<float>& got, const NetValues& expected, int64_t count) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(got[i] - expected[i]);
    difference = std::isnan(here) ? INFINITY : std::max(difference, here);
  }
  return largest == 0 ? difference : difference / largest;
}

// [parts, N] to [N]
std::vector<float> summed(const std::vector<float>& x, size_t parts) {
  std::vector<float> sums(parts > 0 ? x.size() / parts : 0, 0.0f);
  for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
  return sums;
}

std::vector<float> unset(int64_t count) { return std::vector<float>(count, NAN); }

template <typename T>
void expect_same_net(const NetCase& c) {
  const Inputs in = inputs_of(c);
  const std::vector<float> x = single(in.x), xv = single(in.x_values), r = single(in.r),
                           rv = single(in.r_values), w = single(in.weight), wv = single(in.weight_values),
                           mask = single(in.mask);
  const std::vector<int64_t> samples = owners(c);
  CudaNet net = {};
  net.rows = c.rows;
  net.channels = c.channels;
  net.heads = c.heads;
  net.width = c.width;
  net.keys = {x.data(), c.key_scale ? r.data() : nullptr, w.data()};
  if (c.separate) net.values = {xv.data(), c.value_scale ? rv.data() : nullptr, wv.data()};
  if (c.masked) net.mask = mask.data();
  net.samples = samples.data();
  net.times = 2;
  net.key = c.key;
  net.value = c.value;
  net.rate = c.rate;
  if (c.steps >= 0) net.steps = &c.steps;

  const int64_t vectors = c.rows * c.heads * c.width, teams = c.threads / T::kLanes;
  std::vector<float> k = unset(vectors), v = unset(vectors), beta = unset(c.rows * c.heads);
  const EmulatedIndex grid = {2, static_cast<unsigned>((c.heads + teams - 1) / teams)};
  emulated_cuda::run(grid, c.threads, [&] { cuda::net_forward<T>(net, {k.data(), v.data(), beta.data()}); });
  const Made expected = definition(c, in);
  constexpr double kFloat = 2e-6;
  const int64_t rows = counted(c);
  EXPECT_LT(error_of(k, expected.k, rows * c.heads * c.width), kFloat);
  EXPECT_LT(error_of(v, expected.v, rows * c.heads * c.width), kFloat);
  EXPECT_LT(error_of(beta, expected.beta, rows * c.heads), kFloat);

  std::vector<float> gk = single(in.grad_k), gv = single(in.grad_v), gb = single(in.grad_beta);
  std::vector<float> keys = unset(grid.x * w.size()), values = unset(grid.x * wv.size()),
                     scale = unset(grid.y * c.rows), value_scale = scale;
  emulated_cuda::run(grid, c.threads, [&] {
    cuda::net_backward<T>(net, {k.data(), v.data(), beta.data()}, {gk.data(), gv.data(), gb.data()},
                          {keys.data(), values.data(), scale.data(), value_scale.data()});
  });
  const auto expect_gradient = [&](const std::vector<float>& got, NetValues Inputs::*which, size_t parts,
                                   int64_t count) {
    EXPECT_LT(error_of(summed(got, parts), differences(c, in, which), count), 2e-6);
  };
  expect_gradient(keys, &Inputs::weight, grid.x, static_cast<int64_t>(w.size()));
  if (c.separate) expect_gradient(values, &Inputs::weight_values, grid.x, static_cast<int64_t>(wv.size()));
  if (c.key_scale) expect_gradient(scale, &Inputs::r, grid.y, rows);
  if (c.separate && c.value_scale) expect_gradient(value_scale, &Inputs::r_values, grid.y, rows);
}

TEST(CudaNet, KeysAndValuesOfOneNet) {
  expect_same_net<cuda::NetTeam<8, 1>>({.rows = 45, .channels = 7, .heads = 9, .width = 8});
  expect_same_net<cuda::NetTeam<8, 1>>({.rows = 20, .channels = 4, .heads = 3, .width = 5, .masked = true});
  expect_same_net<cuda::NetTeam<4, 1>>(
      {.rows = 3, .channels = 1, .heads = 2, .width = 1, .rate = ScanForm::Raw});
}

TEST(CudaNet, ValuesOfTheirOwn) {
  expect_same_net<cuda::NetTeam<32, 1>>(
      {.rows = 18, .channels = 9, .heads = 3, .width = 20, .separate = true});
  expect_same_net<cuda::NetTeam<16, 1>>({.rows = 40,
                                         .channels = 3,
                                         .heads = 5,
                                         .width = 13,
                                         .separate = true,
                                         .value_scale = true,
                                         .masked = true});
  expect_same_net<cuda::NetTeam<32, 2>>({.rows = 10,
                                         .channels = 6,
                                         .heads = 2,
                                         .width = 34,
                                         .separate = true,
                                         .key_scale = false,
                                         .key = ScanForm::Raw,
                                         .value = ScanForm::Raw});
}

TEST(CudaNet, RowsThatAreNotThere) {
  expect_same_net<cuda::NetTeam<8, 1>>({.rows = 48, .channels = 4, .heads = 3, .width = 6, .steps = 9});
}

}  // namespace
}  // namespace fastweights::kernels

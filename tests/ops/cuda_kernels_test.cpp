#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "base/random.h"
#include "ops/scan/cpu/kernel.h"
#include "ops/scan/cuda/finish.cuh"

/// The kernels of a GPU, thread by thread on the CPU (emulated_cuda), against those of the CPU in float64:
/// outputs, reads, slopes and all gradients.

namespace fastweights::kernels {

namespace cuda {
// the shared memory of the block that runs
alignas(16) float4 bytes[1 << 14];
}  // namespace cuda

namespace {

using cuda::Kind;
using cuda::Task;

struct KernelCase {
  ScanPhi phi;
  ScanMatrix matrix = ScanMatrix::Plain;
  ScanStep step = ScanStep::Stages;
  int64_t width, heads, stages;
  int64_t p_rows = 1, s_rows = 1, beta_rows = 1;
  int64_t queries = 0;
  ScanRead read = ScanRead::Along;
  bool extras = false;  // slopes and gradients of dt
  double p_scale = 1.2;
};

template <typename T>
using Numbers = std::vector<T>;

// everything of a call, in float32 for the GPU's kernels or float64 for the CPU's
template <typename T>
struct KernelArrays {
  Numbers<T> p, s, beta, dt, start, q, out, y, g;

  ScanArrays<T> pointers() {
    const auto of = [](Numbers<T>& x) { return x.empty() ? nullptr : x.data(); };
    ScanArrays<T> a = {};
    a.p = of(p);
    a.s = of(s);
    a.beta = of(beta);
    a.dt = of(dt);
    a.start = of(start);
    a.out = of(out);
    a.q = of(q);
    a.y = of(y);
    a.g = of(g);
    return a;
  }
};

struct Batch {
  std::vector<int64_t> lengths = {5, 0, 1, 19}, offsets = {0}, output_steps, output_offsets = {0};

  Batch() {
    for (const int64_t length : lengths) {
      offsets.push_back(offsets.back() + length);
      for (const int64_t step : {int64_t{0}, length / 2, length, length}) output_steps.push_back(step);
      output_offsets.push_back(static_cast<int64_t>(output_steps.size()));
    }
  }
  int64_t samples() const { return static_cast<int64_t>(lengths.size()); }
  int64_t rows() const { return offsets.back(); }
  CudaSamples pointers() const {
    return {offsets.data(), output_steps.data(), output_offsets.data(), samples()};
  }
};

Numbers<double> drawn(int64_t count, double low, double high, Random& random) {
  Numbers<double> numbers;
  // that float32 can hold
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.uniform(low, high)));
  return numbers;
}

template <typename T>
Numbers<T> unset(size_t count) {
  return Numbers<T>(count, std::numeric_limits<T>::quiet_NaN());
}

ScanPlan plan_of(const KernelCase& c) {
  ScanPlan plan = {};
  plan.phi = c.phi;
  plan.matrix = c.matrix;
  plan.step = c.step;
  plan.source = ScanSource::Given;
  plan.width = c.width;
  plan.heads = c.heads;
  plan.stages = c.stages;
  // Kutta's 3/8 method, or as much of it as there are stages
  const double a[4][4] = {{}, {1.0 / 3}, {-1.0 / 3, 1}, {1, -1, 1}}, b[] = {0.125, 0.375, 0.375, 0.125};
  for (int i = 0; i < c.stages; ++i) {
    plan.b[i] = c.stages == 1 ? 1 : b[i];
    for (int j = 0; j < i; ++j) plan.a[i][j] = a[i][j];
  }
  plan.p = {c.p_rows, 0, 0, ScanForm::Raw};
  plan.s = {c.s_rows, 0, 0, ScanForm::Raw};
  plan.beta = {c.beta_rows, 0, 0, ScanForm::Raw};
  plan.z_rows = 1;
  plan.queries = c.queries;
  plan.read = c.read;
  plan.stretch = 8;
  return plan;
}

struct Results {
  KernelArrays<double> values, grads;
};

struct FreeAligned {
  void operator()(double* x) const { std::free(x); }
};
std::unique_ptr<double, FreeAligned> room(int64_t numbers) {
  const size_t bytes = (static_cast<size_t>(numbers) * sizeof(double) / 64 + 2) * 64;
  return std::unique_ptr<double, FreeAligned>(static_cast<double*>(std::aligned_alloc(64, bytes)));
}

// one lane after another by the CPU's kernels
void run_cpu(const ScanPlan& plan, const Batch& batch, Results& r) {
  const int64_t lanes = scan_lanes(sizeof(double)), rows = batch.rows();
  const auto scratch = room(scan_layout(plan).size * lanes);
  Numbers<double> dt(rows, 0.0);
  for (int64_t b = 0; b < batch.samples(); ++b) {
    for (int64_t h = 0; h < plan.heads; ++h) {
      const int64_t first = batch.output_offsets[b];
      const ScanLane lane = {b,
                             h,
                             batch.offsets[b],
                             batch.lengths[b],
                             batch.output_steps.data() + first,
                             first,
                             batch.output_offsets[b + 1] - first};
      const auto kept = room((plan.kept(batch.lengths[b]) + 1) * lanes);
      scan_forward<double>(plan, r.values.pointers(), {&lane, 1}, kept.get(), scratch.get());
      scan_backward<double>(plan, r.values.pointers(), r.grads.pointers(), {&lane, 1}, kept.get(),
                            scratch.get());
      for (int64_t n = batch.offsets[b]; n < batch.offsets[b + 1]; ++n) dt[n] += r.grads.dt[n];
    }
  }
  r.grads.dt = dt;
}

Numbers<float> single(const Numbers<double>& x) { return {x.begin(), x.end()}; }

KernelArrays<float> single(const KernelArrays<double>& x) {
  return {single(x.p), single(x.s),   single(x.beta), single(x.dt), single(x.start),
          single(x.q), single(x.out), single(x.y),    single(x.g)};
}

double error_of(const Numbers<float>& got, const Numbers<double>& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double largest = 0, difference = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(got[i] - expected[i]);
    difference = std::isnan(here) ? INFINITY : std::max(difference, here);
  }
  return difference == 0 ? 0 : difference / largest;
}

Results expected_of(const KernelCase& c, const ScanPlan& plan, const Batch& batch) {
  Random random(11);
  const int64_t rows = batch.rows(), vector = c.heads * c.width, matrix = vector * c.width;
  const double p = c.p_scale / std::sqrt(static_cast<double>(c.width));
  Results r;
  KernelArrays<double>&v = r.values, &g = r.grads;
  v.p = drawn(rows * c.p_rows * vector, -p, p, random);
  v.s = drawn(rows * c.s_rows * vector, -1, 1, random);
  v.beta = drawn(rows * c.beta_rows * c.heads, 0.1, 1, random);
  v.dt = drawn(rows, 0.2, 1, random);
  v.start = drawn(batch.samples() * matrix, -1, 1, random);
  v.q = drawn(rows * c.stages * c.queries * vector, -1, 1, random);
  v.out = unset<double>(batch.output_steps.size() * matrix);
  v.y = unset<double>(v.q.size());
  if (c.extras) v.g = unset<double>(rows * c.stages * vector);
  g.out = drawn(static_cast<int64_t>(v.out.size()), -1, 1, random);
  g.y = drawn(static_cast<int64_t>(v.y.size()), -1, 1, random);
  g.g = drawn(static_cast<int64_t>(v.g.size()), -1, 1, random);
  g.p = unset<double>(v.p.size());
  g.s = unset<double>(v.s.size());
  g.beta = unset<double>(v.beta.size());
  g.dt = unset<double>(v.dt.size());
  g.start = unset<double>(v.start.size());
  g.q = unset<double>(v.q.size());
  run_cpu(plan, batch, r);
  return r;
}

// sums over heads: [R, H] to [R]
Numbers<float> summed(const Numbers<float>& x, int64_t heads) {
  Numbers<float> sums(x.size() / static_cast<size_t>(heads), 0.0f);
  for (size_t i = 0; i < x.size(); ++i) sums[i / static_cast<size_t>(heads)] += x[i];
  return sums;
}

template <typename K>
void expect_agreement(const KernelCase& c) {
  const ScanPlan plan = plan_of(c);
  const Batch batch;
  const Results expected = expected_of(c, plan, batch);
  KernelArrays<float> values = single(expected.values), grads = single(expected.grads);
  for (Numbers<float>* x : {&values.out, &values.y, &values.g}) *x = unset<float>(x->size());
  for (Numbers<float>* x : {&grads.p, &grads.s, &grads.beta, &grads.start, &grads.q})
    *x = unset<float>(x->size());
  grads.dt = unset<float>(c.extras ? grads.dt.size() * static_cast<size_t>(c.heads) : 0);
  const int64_t rows = batch.rows(), vector = c.heads * c.width;
  Numbers<float> phi = unset<float>(static_cast<size_t>(rows * c.stages * vector)),
                 m = unset<float>(
                     static_cast<size_t>(cuda_kept_rows(rows, batch.samples()) * vector * c.width));
  // as on_device.cpp keeps them: Hebb's rule has no use for matrices unless a query reads them
  if (c.phi == ScanPhi::Value && c.queries == 0) m.clear();

  Task task =
      cuda::task_of(plan, values.pointers(), batch.pointers(), {phi.data(), m.empty() ? nullptr : m.data()});
  const int groups =
      static_cast<int>((c.heads + cuda::Team<K::kWidth>::kTeams - 1) / cuda::Team<K::kWidth>::kTeams);
  const auto blocks = static_cast<unsigned>(batch.samples() * groups);
  ASSERT_LE(sizeof(cuda::BackwardRoom<K>), sizeof(cuda::bytes));
  emulated_cuda::run(blocks, cuda::kForwardThreads, [&] { cuda::forward<K>(task, groups); });
  task.grads = grads.pointers();
  emulated_cuda::run(blocks, cuda::kBackwardThreads, [&] { cuda::backward<K>(task, groups); });

  // some hundred roundings of 6e-8
  constexpr double kFloat = 1e-5;
  EXPECT_LT(error_of(values.out, expected.values.out), kFloat);
  EXPECT_LT(error_of(values.y, expected.values.y), kFloat);
  EXPECT_LT(error_of(values.g, expected.values.g), kFloat);
  EXPECT_LT(error_of(grads.p, expected.grads.p), kFloat);
  EXPECT_LT(error_of(grads.s, expected.grads.s), kFloat);
  EXPECT_LT(error_of(grads.beta, expected.grads.beta), kFloat);
  EXPECT_LT(error_of(grads.start, expected.grads.start), kFloat);
  EXPECT_LT(error_of(grads.q, expected.grads.q), kFloat);
  if (c.extras) {
    EXPECT_LT(error_of(summed(grads.dt, c.heads), expected.grads.dt), kFloat);
  }
}

constexpr int phi(ScanPhi kind) { return static_cast<int>(kind); }

TEST(CudaKernels, SharedPrograms) {
  expect_agreement<Kind<8, true, phi(ScanPhi::Tanh), 4, false>>(
      {.phi = ScanPhi::Tanh, .width = 8, .heads = 5, .stages = 4});
  expect_agreement<Kind<5, true, phi(ScanPhi::Difference), 4, false>>({.phi = ScanPhi::Difference,
                                                                       .matrix = ScanMatrix::Transposed,
                                                                       .width = 5,
                                                                       .heads = 3,
                                                                       .stages = 4,
                                                                       .s_rows = 4});
  expect_agreement<Kind<16, true, phi(ScanPhi::Softmax), 4, false>>(
      {.phi = ScanPhi::Softmax, .width = 13, .heads = 2, .stages = 4, .beta_rows = 4});
}

TEST(CudaKernels, AProgramForEachStage) {
  expect_agreement<Kind<20, false, phi(ScanPhi::Tanh), 4, false>>(
      {.phi = ScanPhi::Tanh, .width = 20, .heads = 2, .stages = 4, .p_rows = 4, .s_rows = 4, .beta_rows = 4});
  expect_agreement<Kind<4, false, phi(ScanPhi::Difference), 4, false>>(
      {.phi = ScanPhi::Difference, .width = 3, .heads = 9, .stages = 4, .p_rows = 4});
  expect_agreement<Kind<64, false, -1, 0, false>>({.phi = ScanPhi::Softmax,
                                                   .width = 33,
                                                   .heads = 1,
                                                   .stages = 2,
                                                   .p_rows = 2,
                                                   .s_rows = 2,
                                                   .beta_rows = 2});
}

TEST(CudaKernels, HebbsRuleKeepsNoMatrices) {
  expect_agreement<Kind<8, true, phi(ScanPhi::Value), 4, false>>(
      {.phi = ScanPhi::Value, .width = 6, .heads = 2, .stages = 4});
  expect_agreement<Kind<8, false, -1, 0, true>>(
      {.phi = ScanPhi::Value, .width = 8, .heads = 3, .stages = 3, .p_rows = 3, .extras = true});
}

TEST(CudaKernels, QueriesSlopesAndDt) {
  for (const ScanRead read : {ScanRead::Along, ScanRead::Across}) {
    expect_agreement<Kind<8, false, -1, 0, true>>({.phi = ScanPhi::Tanh,
                                                   .width = 7,
                                                   .heads = 3,
                                                   .stages = 4,
                                                   .p_rows = 4,
                                                   .s_rows = 4,
                                                   .beta_rows = 4,
                                                   .queries = 2,
                                                   .read = read,
                                                   .extras = true});
    expect_agreement<Kind<16, false, -1, 0, true>>({.phi = ScanPhi::Softmax,
                                                    .matrix = ScanMatrix::Transposed,
                                                    .width = 10,
                                                    .heads = 2,
                                                    .stages = 2,
                                                    .queries = 1,
                                                    .read = read,
                                                    .extras = true});
  }
}

TEST(CudaKernels, TheExactFlow) {
  expect_agreement<Kind<8, false, -1, 0, true>>({.phi = ScanPhi::Difference,
                                                 .step = ScanStep::ExactFlow,
                                                 .width = 8,
                                                 .heads = 3,
                                                 .stages = 1,
                                                 .queries = 1,
                                                 .extras = true});
}

}  // namespace
}  // namespace fastweights::kernels

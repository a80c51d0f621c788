#include "ops/cuda_kernel_cases.h"

#include <cstdlib>

#include "base/random.h"
#include "ops/scan/cpu/kernel.h"

namespace fastweights::kernels {

namespace cuda {
// the shared memory of the block that runs
alignas(16) float4 bytes[1 << 14];
}  // namespace cuda

namespace {

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
  v.s = drawn(rows * c.s_rows * vector, -c.s_scale, c.s_scale, random);
  v.beta = drawn(rows * c.beta_rows * c.heads, 0.1, 1, random);
  v.dt = drawn(rows, 0.2 * c.dt_scale, c.dt_scale, random);
  for (int64_t n = 0; c.pauses && n < rows; ++n) {
    if (n % 5 == 2) v.dt[n] = 0;
    const auto first = v.p.begin() + n * c.p_rows * vector;
    if (n % 7 == 3) std::fill(first, first + c.p_rows * vector, 0.0);
  }
  v.start = drawn(batch.samples() * matrix, -1, 1, random);
  v.q = drawn(rows * c.stages * c.queries * vector, -1, 1, random);
  v.out = unset<double>(batch.output_steps.size() * matrix);
  v.y = unset<double>(v.q.size());
  if (c.slopes) v.g = unset<double>(rows * c.stages * vector);
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

}  // namespace

void expect_agreement(const KernelCase& c, const CudaKernels& forward, const CudaKernels& backward) {
  const ScanPlan plan = plan_of(c);
  const Batch batch;
  const Results expected = expected_of(c, plan, batch);
  KernelArrays<float> values = single(expected.values), grads = single(expected.grads);
  for (Numbers<float>* x : {&values.out, &values.y, &values.g}) *x = unset<float>(x->size());
  for (Numbers<float>* x : {&grads.p, &grads.s, &grads.beta, &grads.start, &grads.q})
    *x = unset<float>(x->size());
  grads.dt = unset<float>(c.dt_gradient ? grads.dt.size() * static_cast<size_t>(c.heads) : 0);
  const int64_t rows = batch.rows(), vector = c.heads * c.width;
  Numbers<float> phi = unset<float>(static_cast<size_t>(rows * c.stages * vector)),
                 m = unset<float>(
                     static_cast<size_t>(cuda_kept_rows(rows, batch.samples()) * vector * c.width));
  // as device_scan.cpp keeps them: Hebb's rule has no use for matrices unless a query reads them
  if (c.phi == ScanPhi::Value && c.queries == 0) m.clear();

  cuda::Task task =
      cuda::task_of(plan, values.pointers(), batch.pointers(), {phi.data(), m.empty() ? nullptr : m.data()});
  const auto run = [&](const CudaKernels& kernels, unsigned threads, auto kernel) {
    ASSERT_LE(kernels.room, sizeof(cuda::bytes));
    const int64_t groups = (c.heads + kernels.teams - 1) / kernels.teams;
    emulated_cuda::run(static_cast<unsigned>(batch.samples() * groups), threads,
                       [&] { kernel(task, static_cast<int>(groups)); });
  };
  run(forward, cuda::kForwardThreads, forward.forward);
  task.grads = grads.pointers();
  run(backward, cuda::kBackwardThreads, backward.backward);

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
  if (c.dt_gradient) {
    EXPECT_LT(error_of(summed(grads.dt, c.heads), expected.grads.dt), kFloat);
  }
}

}  // namespace fastweights::kernels

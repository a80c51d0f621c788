#include "ops/cuda_kernel_cases.h"

/// Steps in closed form by the GPU's kernels.

namespace fastweights::kernels {
namespace {

using cuda::Decay;
using cuda::Kind;
using cuda::Psi;
using cuda::Scope;

template <int Width>
using Extras = Kind<Width, true, -1, 1, Scope::FlowExtras>;

constexpr ScanPhi kPhis[] = {ScanPhi::Value, ScanPhi::Difference, ScanPhi::Tanh};

// from steps that hardly move e to those that take it to 0
TEST(CudaFlow, PsiOfATanhHasSixDigits) {
  double mean = 0, by_e = 0, by_x = 0, end = 0;
  for (const float x : {-20.0f, -1.0f, -0.04f, 1e-8f, 1e-6f, 1e-3f, 0.02f, 0.049f, 0.051f, 0.1f,  0.3f,
                        0.5f,   1.0f,  3.0f,   10.0f, 20.0f, 25.0f, 39.0f, 41.0f,  60.0f,  80.0f, 1e3f}) {
    for (const float e : {1e-8f, 1e-4f, 0.1f, 0.4f, 0.49f, 0.51f, 1.0f, 2.0f, 5.0f, 12.0f, 20.0f, 30.0f,
                          39.9f, 40.1f, 50.0f, 100.0f, 500.0f}) {
      const long double size = e, way = x, left = std::exp(-way), t = std::tanh(size), t2 = t * t;
      const long double last = std::asinh(std::sinh(size) * left), phi = std::tanh(last);
      const long double end_cosh = std::cosh(last);
      const long double slope =
          -std::expm1(-2 * way) / (way * end_cosh * (end_cosh + std::cosh(size) * left));
      // differences say nothing where x is small
      const bool small = std::abs(x) < 1e-3;
      const long double series =
          t * (t2 - 1) * (0.5L + way * ((3 * t2 - 1) / 3 + way * (1 + t2 * (15 * t2 - 12)) / 8));
      const long double psi =
          small ? t + way * t * (t2 - 1) * (0.5L + way * (3 * t2 - 1) / 6) : (size - last) / way;
      const Decay d = cuda::decay_of(x);
      const Psi got = cuda::psi_of(ScanPhi::Tanh, e, d), other = cuda::psi_of(ScanPhi::Tanh, -e, d);
      const auto error = [](float g, long double expected, long double scale) {
        return static_cast<double>(std::abs(g - expected) / scale);
      };
      mean = std::max(mean, error(got.mean, psi, psi));
      by_e = std::max(by_e, error(got.by_e, slope, std::abs(slope) + 1e-6L));
      // what it is multiplied with is of the order of x
      by_x = std::max(
          by_x, error(got.by_x, small ? series : (phi - psi) / way, psi / std::max(0.05L, std::abs(way))));
      end = std::max(end, error(got.end, phi, phi + 1e-30L));
      EXPECT_EQ(cuda::mean_of(ScanPhi::Tanh, e, d), got.mean);
      EXPECT_EQ(other.mean, -got.mean);
      EXPECT_EQ(other.by_e, got.by_e);
      EXPECT_EQ(other.by_x, -got.by_x);
      EXPECT_EQ(other.end, -got.end);
    }
  }
  EXPECT_LT(mean, 1e-6);
  EXPECT_LT(by_e, 5e-6);
  EXPECT_LT(by_x, 1e-6);
  EXPECT_LT(end, 5e-6);
}

KernelCase flow_of(ScanPhi phi, int64_t width, int64_t heads) {
  return {.phi = phi, .step = ScanStep::Flow, .width = width, .heads = heads, .stages = 1};
}

template <int Width, ScanPhi Phi>
using Fast = Kind<Width, true, phi(Phi), 1, Scope::Flow>;

template <ScanPhi Phi>
void expect_widths() {
  SCOPED_TRACE(testing::Message() << "phi " << static_cast<int>(Phi));
  expect_agreement<Fast<4, Phi>>(flow_of(Phi, 4, 9));
  expect_agreement<Fast<5, Phi>>(flow_of(Phi, 5, 3));
  expect_agreement<Fast<8, Phi>>(flow_of(Phi, 7, 5));
  expect_agreement<Fast<10, Phi>>(flow_of(Phi, 10, 2));
  expect_agreement<Fast<16, Phi>>(flow_of(Phi, 13, 3));
  expect_agreement<Fast<20, Phi>>(flow_of(Phi, 20, 1));
  expect_agreement<Fast<32, Phi>>(flow_of(Phi, 23, 2));
  expect_agreement<Fast<64, Phi>>(flow_of(Phi, 33, 1));
  KernelCase c = flow_of(Phi, 8, 3);
  c.matrix = ScanMatrix::Transposed;
  c.pauses = true;
  expect_agreement<Fast<8, Phi>>(c);
  // e is kept by one kernel for the other
  c.dt_gradient = true;
  expect_agreement(c, kernels_of<Fast<8, Phi>>(), kernels_of<Extras<8>>());
}

TEST(CudaFlow, EveryWidth) {
  expect_widths<ScanPhi::Value>();
  expect_widths<ScanPhi::Difference>();
  expect_widths<ScanPhi::Tanh>();
}

// queries, slopes and gradients of dt, each with and without the others
KernelCase with_extras(KernelCase c, int choice) {
  c.pauses = true;
  c.queries = choice < 2 ? choice + 1 : choice == 2 ? 1 : 0;
  c.read = choice == 1 ? ScanRead::Across : ScanRead::Along;
  c.matrix = choice == 1 ? ScanMatrix::Transposed : ScanMatrix::Plain;
  c.slopes = choice != 0 && choice != 4;
  c.dt_gradient = choice % 2 == 0;
  return c;
}

TEST(CudaFlow, QueriesSlopesAndDt) {
  for (const ScanPhi phi : kPhis) {
    for (const int choice : {0, 1, 2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << "phi " << static_cast<int>(phi) << ", choice " << choice);
      expect_agreement<Extras<8>>(with_extras(flow_of(phi, 7, 5), choice));
    }
    SCOPED_TRACE(testing::Message() << "phi " << static_cast<int>(phi));
    expect_agreement<Extras<4>>(with_extras(flow_of(phi, 3, 9), 1));
    expect_agreement<Extras<16>>(with_extras(flow_of(phi, 16, 3), 2));
    expect_agreement<Extras<32>>(with_extras(flow_of(phi, 20, 1), 2));
    expect_agreement<Extras<64>>(with_extras(flow_of(phi, 33, 1), 1));
  }
}

// x from 1e-7 to 1e3; |e| up to 30, and beyond 40, where tanh(e) and sinh(e) are taken for 1 and e^e / 2
struct Range {
  double p_scale, s_scale, dt_scale;
};
constexpr Range kRanges[] = {{1e-3, 1, 1}, {1.2, 1, 1e-6}, {1.2, 1, 1e-2}, {1.2, 1, 40},   {1.2, 1, 3e3},
                             {1.2, 30, 1}, {1.2, 30, 40},  {1.2, 70, 40},  {1.2, 70, 1e3}, {40, 1, 1}};

KernelCase within(KernelCase c, const Range& range) {
  c.p_scale = range.p_scale;
  c.s_scale = range.s_scale;
  c.dt_scale = range.dt_scale;
  return c;
}

TEST(CudaFlow, ShortAndLongSteps) {
  for (const ScanPhi phi : kPhis) {
    for (const Range& range : kRanges) {
      SCOPED_TRACE(testing::Message() << "phi " << static_cast<int>(phi) << ", p " << range.p_scale << ", s "
                                      << range.s_scale << ", dt " << range.dt_scale);
      const KernelCase c = within(flow_of(phi, 8, 3), range);
      expect_agreement<Extras<8>>(with_extras(c, 2));
      if (phi == ScanPhi::Value) expect_agreement<Fast<8, ScanPhi::Value>>(c);
      if (phi == ScanPhi::Difference) expect_agreement<Fast<8, ScanPhi::Difference>>(c);
      if (phi == ScanPhi::Tanh) expect_agreement<Fast<8, ScanPhi::Tanh>>(c);
    }
  }
}

}  // namespace
}  // namespace fastweights::kernels

#include <gtest/gtest.h>

#include "control/cuda/on_device.h"
#include "fastweights/tensor.h"
#include "support/support.h"
#include "tensor/device.h"

/// Paths and log-signatures on a GPU against those of the CPU; skipped where there is none.

namespace fastweights {
namespace {

using testing::error_message;
using testing::irregular_times;
using testing::random;
using testing::relative_error;
using testing::with_missing;

// float64 arithmetic rounded to float32
constexpr double kRounded = 1e-6;

RaggedSeries some_series(int64_t channels, double missing) {
  std::vector<Tensor> times, values;
  for (const int64_t length : {2, 150, 33, 3, 64}) {
    times.push_back(irregular_times(length, static_cast<uint64_t>(length)));
    const Tensor x = random({length, channels}, static_cast<uint64_t>(length + 1)).to(at::kFloat);
    values.push_back(with_missing(x, missing, static_cast<uint64_t>(length + 2)));
  }
  return ragged(times, values);
}

class DeviceControl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }
  RaggedSeries there(const RaggedSeries& series) const {
    return {on_device(series.values, device_), series.times, series.offsets};
  }

  const at::Device device_ = find_device("auto");
};

TEST_F(DeviceControl, PathsAreThoseOfTheCpu) {
  for (const double missing : {0.0, 0.4, 0.9}) {
    const RaggedSeries series = some_series(7, missing);
    for (const Interpolation& interpolation :
         std::vector<Interpolation>{NaturalCubic{EndFilling::WholeGap}, NaturalCubic{EndFilling::EndPoint},
                                    HermiteCubic{}, Linear{}, Rectilinear{}}) {
      const ControlOptions options = {.interpolation = interpolation};
      const Control here(series, options), control = Control::on_device(there(series), options);
      for (int64_t k = 0; k < here.coefficients().size(1); ++k)
        EXPECT_LT(relative_error(control.coefficients().select(1, k).cpu(), here.coefficients().select(1, k)),
                  kRounded);
      const Tensor times = at::linspace(-1, 40, 501, at::kDouble);
      const Samples got = control.sample(times), expected = here.sample(times);
      EXPECT_LT(relative_error(got.value.cpu(), expected.value), kRounded);
      EXPECT_LT(relative_error(got.derivative.cpu(), expected.derivative), kRounded);
    }
    EXPECT_LT(relative_error(fill_missing(there(series)).values.cpu(), fill_missing(series).values),
              kRounded);
  }
}

TEST_F(DeviceControl, LogSignaturesAreThoseOfTheCpu) {
  // the last ones are too large for the memory that a block has for itself
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1}, {3, 2}, {5, 4}, {4, 5}, {6, 5}, {20, 3}};
  for (const auto& [channels, depth] : sizes) {
    const RaggedSeries series = some_series(channels, 0.3);
    for (const Windows& windows :
         {Windows(PointWindows{9, WindowTail::Keep}), Windows(DurationWindows{3.5})}) {
      const WindowedLogSignature expected = logsignature_windows(series, windows, {.depth = depth}),
                                 got = device_logsignature_windows(fill_missing(there(series)), windows,
                                                                   {.depth = depth});
      EXPECT_LT(relative_error(got.values.cpu(), expected.values), kRounded) << channels << " " << depth;
      EXPECT_TRUE(at::equal(got.begin, expected.begin) && at::equal(got.offsets, expected.offsets));
    }
  }
}

TEST(DeviceControlRefusal, ValuesOfTheCpuAreNoneOfAGpu) {
  EXPECT_EQ(error_message([] { Control::on_device(some_series(2, 0)); }),
            "[control] values on a GPU must be float32 [N, C] without gradients");
}

}  // namespace
}  // namespace fastweights

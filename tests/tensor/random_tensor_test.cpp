#include "tensor/random_tensor.h"

#include <cmath>

#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;

TEST(RandomTensor, UniformNumbersFillTheInterval) {
  Random random(1);
  const Tensor x = uniform({300, 200}, -2, 4, random, at::kFloat);
  EXPECT_EQ(x.scalar_type(), at::kFloat);
  EXPECT_EQ(x.sizes(), at::IntArrayRef({300, 200}));
  EXPECT_GE(x.min().item<double>(), -2);
  EXPECT_LE(x.max().item<double>(), 4);
  // five deviations of the mean: 6 / sqrt(12) for one number, and of the square for the second moment
  const double n = 60000, deviation = 6 / std::sqrt(12.0);
  EXPECT_NEAR(x.mean().item<double>(), 1, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(x.to(at::kDouble).var().item<double>(), 3, 5 * 9 * std::sqrt(4.0 / 45 / n));
}

TEST(RandomTensor, NumbersComeInTheOrderOfMemory) {
  Random random(2), again(2);
  const Tensor x = uniform({2, 3}, -1, 1, random, at::kDouble);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(x.flatten()[i].item<double>(), again.uniform(-1, 1));
  EXPECT_EQ(random.next(), again.next());
}

TEST(RandomTensor, SkippedNumbersAreThoseNotDrawn) {
  Random drawn(7), skipped(7);
  for (int i = 0; i < 1000; ++i) drawn.uniform();
  skipped.skip(1000);
  EXPECT_EQ(drawn.state(), skipped.state());
  EXPECT_EQ(drawn.next(), skipped.next());
}

TEST(RandomTensor, MaskKeepsTheMean) {
  Random random(3);
  for (const double rate : {0.1, 0.5, 0.9}) {
    const Tensor mask = dropout_mask({400, 200}, rate, random, at::kDouble);
    const Tensor dropped = mask == 0;
    EXPECT_TRUE(at::logical_or(dropped, mask == 1 / (1 - rate)).all().item<bool>());
    const double deviation = std::sqrt(rate * (1 - rate) / 80000);
    EXPECT_NEAR(dropped.to(at::kDouble).mean().item<double>(), rate, 5 * deviation) << rate;
  }
  EXPECT_TRUE(at::equal(dropout_mask({3, 5}, 0, random, at::kFloat), at::ones({3, 5}, at::kFloat)));
}

TEST(RandomTensor, WrongArgumentsAreNamed) {
  Random random(4);
  EXPECT_EQ(error_message([&] { dropout_mask({2}, 1, random, at::kFloat); }),
            "[dropout_mask] rate must be in [0, 1), got 1");
  EXPECT_EQ(error_message([&] { uniform({2}, 3, 1, random, at::kFloat); }),
            "[uniform] low must not be above high, and both must be finite, got 3 and 1");
  EXPECT_NE(error_message([&] { uniform({2}, std::nan(""), 1, random, at::kFloat); }), "");
  EXPECT_EQ(uniform({0, 3}, 0, 1, random, at::kFloat).numel(), 0);
}

}  // namespace
}  // namespace fastweights

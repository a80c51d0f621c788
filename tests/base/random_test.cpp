#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fastweights {
namespace {

// of the authors of splitmix64
TEST(Random, FirstNumbersAreThePublishedOnes) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
  Random zero(0);
  EXPECT_EQ(zero.next(), 0xe220a8397b1dcdafu);
}

// written down once, to the last bit: every machine has to find them again
TEST(Random, NumbersAreTheSameOnEveryMachine) {
  Random random(3);
  EXPECT_EQ(random.uniform(), 0x1.d0b14e4db0188p-4);
  EXPECT_EQ(random.uniform(-2, 5), 0x1.73768664b045cp+1);
  EXPECT_EQ(random.normal(), 0x1.705e93eb911fbp-3);
  EXPECT_EQ(random.normal(), -0x1.3a264f407ba66p+0);
  EXPECT_EQ(random.normal(), -0x1.7a4675eac4ad4p-6);
}

TEST(Random, ACopyContinuesAlike) {
  Random random(4);
  random.normal();
  Random copy = random;
  EXPECT_EQ(copy.normal(), random.normal());
  EXPECT_EQ(copy.next(), random.next());
}

// means over n numbers have a deviation of sigma / sqrt(n): five of them leave one failure in two million
// seeds
TEST(Random, MomentsAreThoseOfTheDistributions) {
  const int64_t n = 200000;
  Random random(5);
  double mean = 0, square = 0, normal_mean = 0, normal_square = 0, normal_fourth = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double u = random.uniform(), z = random.normal();
    ASSERT_TRUE(u >= 0 && u < 1);
    mean += u / n;
    square += u * u / n;
    normal_mean += z / n;
    normal_square += z * z / n;
    normal_fourth += z * z * z * z / n;
  }
  const double five = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(mean, 1.0 / 2, five * std::sqrt(1.0 / 12));
  EXPECT_NEAR(square, 1.0 / 3, five * std::sqrt(4.0 / 45));
  EXPECT_NEAR(normal_mean, 0, five);
  EXPECT_NEAR(normal_square, 1, five * std::sqrt(2.0));
  EXPECT_NEAR(normal_fourth, 3, five * std::sqrt(96.0));
}

// the share of numbers below a few borders
TEST(Random, NormalNumbersHaveTheNormalDistribution) {
  const int64_t n = 100000;
  for (const double border : {-2.5, -1.0, -0.1, 0.0, 0.7, 1.9}) {
    Random random(6);
    double below = 0;
    for (int64_t i = 0; i < n; ++i) below += random.normal() < border ? 1.0 / n : 0;
    const double share = std::erfc(-border / std::sqrt(2.0)) / 2;
    EXPECT_NEAR(below, share, 5 * std::sqrt(share * (1 - share) / n)) << border;
  }
}

}  // namespace
}  // namespace fastweights

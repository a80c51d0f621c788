#include "base/checksum.h"

#include <gtest/gtest.h>

namespace fastweights {
namespace {

std::string sum_of(const std::string& text) { return Checksum().add(text).text(); }

// of the reference implementation of XXH64
TEST(Checksum, PublishedValues) {
  EXPECT_EQ(sum_of(""), "ef46db3751d8e999");
  EXPECT_EQ(sum_of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(sum_of("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(sum_of("Nobody inspects the spammish repetition"), "fbcea83c8a378bf1");
}

TEST(Checksum, PiecesGiveTheSameAsTheWhole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t first = 0; first < 80; ++first) {
    Checksum sum;
    sum.add(text.substr(0, first)).add(text.substr(first, 45)).add(text.substr(first + 45));
    EXPECT_EQ(sum.text(), sum_of(text)) << first;
  }
}

TEST(Checksum, EveryBitCounts) {
  std::string text(100, 'x');
  const std::string before = sum_of(text);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(sum_of(text), before) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
  }
}

}  // namespace
}  // namespace fastweights

#include "base/lyndon.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fastweights {
namespace {

// a word is Lyndon if it is strictly smaller than all its rotations
bool smallest_rotation(const Word& word) {
  Word rotated = word;
  for (size_t i = 1; i < word.size(); ++i) {
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    if (!(word < rotated)) return false;
  }
  return true;
}

TEST(Lyndon, WordsAreExactlyTheSmallestRotations) {
  for (int64_t channels : {1, 2, 3, 5}) {
    for (int64_t depth = 1; depth <= 5; ++depth) {
      std::vector<Word> expected;
      for (const Word& word : all_words(channels, depth)) {
        if (smallest_rotation(word)) expected.push_back(word);
      }
      EXPECT_EQ(lyndon_words(channels, depth), expected) << channels << " letters, depth " << depth;
      EXPECT_EQ(lyndon_count(channels, depth), static_cast<int64_t>(expected.size()));
    }
  }
}

TEST(Lyndon, BracketsSplitAtTheLongestLyndonSuffix) {
  EXPECT_EQ(lyndon_bracket({0}), "0");
  EXPECT_EQ(lyndon_bracket({0, 1}), "[0, 1]");
  EXPECT_EQ(lyndon_bracket({0, 0, 1}), "[0, [0, 1]]");
  EXPECT_EQ(lyndon_bracket({0, 2, 1}), "[[0, 2], 1]");
}

TEST(Lyndon, BracketMatrixIsTriangular) {
  const std::vector<Word> words = lyndon_words(3, 5);
  const auto rows = bracket_rows(words);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const BracketTerm& term : rows[row]) {
      EXPECT_LT(term.column, static_cast<int64_t>(row));
      EXPECT_EQ(words[term.column].size(), words[row].size());
    }
  }
}

}  // namespace
}  // namespace fastweights

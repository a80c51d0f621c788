#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fastweights {

using Word = std::vector<int64_t>;

/// Lyndon words over the letters 0 .. channels - 1, by length and then in the order of the alphabet.
std::vector<Word> lyndon_words(int64_t channels, int64_t depth);

/// All words of length 1 to depth, in the same order: the axes of the truncated tensor algebra.
std::vector<Word> all_words(int64_t channels, int64_t depth);

/// Number of Lyndon words of length 1 to depth (Witt's formula), without listing them.
int64_t lyndon_count(int64_t channels, int64_t depth);

/// The Lyndon bracket of a word as text: [0, [0, 1]] for 001.
std::string lyndon_bracket(const Word& word);

/// The relation of words and brackets: the coefficient of the tensor logarithm at Lyndon word u is
/// sum over the terms (w, coefficient) of row u of the coefficient of bracket w, plus that of bracket u
/// itself.
struct BracketTerm {
  int64_t column;
  double coefficient;
};
std::vector<std::vector<BracketTerm>> bracket_rows(const std::vector<Word>& lyndon);

}  // namespace fastweights

#include "base/lyndon.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fastweights {
namespace {

bool by_length_then_alphabet(const Word& a, const Word& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// a word is Lyndon if it is smaller than each of its proper suffixes
bool is_lyndon(const Word& word) {
  for (size_t i = 1; i < word.size(); ++i) {
    if (!std::lexicographical_compare(word.begin(), word.end(), word.begin() + static_cast<int64_t>(i),
                                      word.end())) {
      return false;
    }
  }
  return true;
}

// standard factorisation: the right factor is the longest proper suffix that is a Lyndon word
std::pair<Word, Word> factors(const Word& word) {
  for (size_t i = 1; i < word.size(); ++i) {
    Word right(word.begin() + static_cast<int64_t>(i), word.end());
    if (is_lyndon(right)) return {Word(word.begin(), word.begin() + static_cast<int64_t>(i)), right};
  }
  return {};
}

using Polynomial = std::map<Word, double>;

void add_product(Polynomial& sum, const Polynomial& a, const Polynomial& b, double sign) {
  for (const auto& [u, x] : a) {
    for (const auto& [v, y] : b) {
      Word uv = u;
      uv.insert(uv.end(), v.begin(), v.end());
      sum[uv] += sign * x * y;
    }
  }
}

// [P, Q] = PQ - QP, expanded into words
Polynomial expand_bracket(const Word& word) {
  if (word.size() == 1) return {{word, 1.0}};
  const auto [left, right] = factors(word);
  const Polynomial p = expand_bracket(left), q = expand_bracket(right);
  Polynomial commutator;
  add_product(commutator, p, q, 1);
  add_product(commutator, q, p, -1);
  return commutator;
}

int64_t moebius(int64_t n) {
  int64_t sign = 1;
  for (int64_t p = 2; p <= n; ++p) {
    if (n % p != 0) continue;
    n /= p;
    if (n % p == 0) return 0;
    sign = -sign;
  }
  return sign;
}

}  // namespace

std::vector<Word> lyndon_words(int64_t channels, int64_t depth) {
  FW_CHECK(channels >= 1 && depth >= 1,
           "[lyndon_words] expected at least one channel and a depth of at least 1, got ", channels, " and ",
           depth);
  // Duval's algorithm visits them in alphabetical order
  std::vector<Word> words;
  Word word = {-1};
  while (!word.empty()) {
    ++word.back();
    words.push_back(word);
    const size_t period = word.size();
    while (static_cast<int64_t>(word.size()) < depth) word.push_back(word[word.size() - period]);
    while (!word.empty() && word.back() == channels - 1) word.pop_back();
  }
  std::stable_sort(words.begin(), words.end(), by_length_then_alphabet);
  return words;
}

std::vector<Word> all_words(int64_t channels, int64_t depth) {
  std::vector<Word> words = {Word{}};
  size_t level_begin = 0;
  for (int64_t length = 1; length <= depth; ++length) {
    const size_t level_end = words.size();
    for (size_t i = level_begin; i < level_end; ++i) {
      for (int64_t letter = 0; letter < channels; ++letter) {
        words.push_back(words[i]);
        words.back().push_back(letter);
      }
    }
    level_begin = level_end;
  }
  words.erase(words.begin());
  return words;
}

int64_t lyndon_count(int64_t channels, int64_t depth) {
  int64_t total = 0;
  for (int64_t length = 1; length <= depth; ++length) {
    int64_t necklaces = 0;
    for (int64_t divisor = 1; divisor <= length; ++divisor) {
      if (length % divisor != 0) continue;
      int64_t power = 1;
      for (int64_t i = 0; i < length / divisor; ++i) power *= channels;
      necklaces += moebius(divisor) * power;
    }
    total += necklaces / length;
  }
  return total;
}

std::string lyndon_bracket(const Word& word) {
  if (word.size() == 1) return std::to_string(word[0]);
  const auto [left, right] = factors(word);
  return "[" + lyndon_bracket(left) + ", " + lyndon_bracket(right) + "]";
}

std::vector<std::vector<BracketTerm>> bracket_rows(const std::vector<Word>& lyndon) {
  std::map<Word, int64_t> index;
  for (size_t i = 0; i < lyndon.size(); ++i) index[lyndon[i]] = static_cast<int64_t>(i);
  std::vector<std::vector<BracketTerm>> rows(lyndon.size());
  for (size_t column = 0; column < lyndon.size(); ++column) {
    for (const auto& [word, coefficient] : expand_bracket(lyndon[column])) {
      const auto row = index.find(word);
      if (row == index.end() || row->second == static_cast<int64_t>(column) || coefficient == 0) continue;
      rows[row->second].push_back({static_cast<int64_t>(column), coefficient});
    }
  }
  return rows;
}

}  // namespace fastweights

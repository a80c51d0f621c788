#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace fastweights {
namespace {

// letters to insert, delete or replace, or neighbours to swap, row by row of the usual table
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before = std::move(above);
    above = std::move(row);
    row.assign(b.size() + 1, i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, above[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string in_lower_case(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), lower_case);
  return word;
}

bool contains(const std::string& word, const std::string& part) {
  // shorter words are in many others
  constexpr size_t kLeast = 3;
  return part.size() >= kLeast && word.find(part) != std::string::npos;
}

constexpr size_t kFar = std::string::npos;

// letters that are to be changed; more than any word has letters, if the words are not near
size_t near_distance(const std::string& word, const std::string& other) {
  if (word.empty() || other.empty()) return kFar;
  const std::string a = in_lower_case(word), b = in_lower_case(other);
  const size_t distance = edit_distance(a, b), most = std::max<size_t>(1, std::max(a.size(), b.size()) / 3);
  return distance <= most || contains(a, b) || contains(b, a) ? distance : kFar;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  const std::string* best = nullptr;
  size_t least = kFar;
  for (const std::string& other : words) {
    const size_t distance = near_distance(word, other);
    if (distance >= least) continue;
    best = &other;
    least = distance;
  }
  return best ? *best : "";
}

std::string in_plain_quotes(const std::string& word) { return "'" + word + "'"; }

std::string suggestion(const std::string& word, const std::vector<std::string>& words,
                       const std::function<std::string(const std::string&)>& quoted) {
  constexpr size_t kMost = 10;
  const std::string close = nearest(word, words);
  if (!close.empty()) return "; the nearest is " + quoted(close);
  if (words.empty() || words.size() > kMost) return "";
  std::string text;
  for (const std::string& other : words) text += (text.empty() ? "" : ", ") + quoted(other);
  return "; expected one of " + text;
}

}  // namespace fastweights

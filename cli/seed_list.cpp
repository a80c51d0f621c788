#include "seed_list.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace fastweights::cli {
namespace {

constexpr size_t kMostSeeds = 1000;

void check_form(bool correct, const std::string& text) {
  FW_CHECK(correct, "expected two or more different numbers, such as 1..5 or 1,2,7, got '", text, "'");
}

int64_t seed_from(const std::string& word, const std::string& text) {
  int64_t seed = -1;
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, seed);
  check_form(error == std::errc() && at == end && seed >= 0, text);
  return seed;
}

}  // namespace

std::vector<int64_t> seed_list(const std::string& text) {
  std::vector<int64_t> seeds;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    const std::string item = text.substr(from, comma - from);
    const size_t dots = item.find("..");
    const int64_t first = seed_from(item.substr(0, dots), text);
    const int64_t last = dots == std::string::npos ? first : seed_from(item.substr(dots + 2), text);
    check_form(first <= last, text);
    FW_CHECK(static_cast<uint64_t>(last - first) < kMostSeeds && seeds.size() < kMostSeeds,
             "expected at most ", kMostSeeds, " seeds, got '", text, "'");
    for (int64_t seed = first;; ++seed) {
      check_form(std::find(seeds.begin(), seeds.end(), seed) == seeds.end(), text);
      seeds.push_back(seed);
      if (seed == last) break;
    }
    from = comma + 1;
  }
  check_form(seeds.size() >= 2, text);
  return seeds;
}

}  // namespace fastweights::cli

#include "../cli/errors.h"

#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "support/support.h"

namespace fastweights::cli {
namespace {

using fastweights::testing::error_message;

std::string text_of_error(const std::string& what) { return error_text(std::runtime_error(what)); }

TEST(ErrorText, IsOneShortLineWithoutControlCharacters) {
  EXPECT_EQ(text_of_error("a.csv:3: expected a number"), "a.csv:3: expected a number");
  EXPECT_EQ(text_of_error("'\x1b[31m'\n"), "'\\x1b[31m'\\x0a");
  EXPECT_EQ(text_of_error("sizes differ\nException raised from here at x.cpp:3"), "sizes differ");
  const std::string cut = text_of_error(std::string(1000, 'a') + std::string(500'000, 'b') + "end");
  EXPECT_LT(cut.size(), 2000u);
  EXPECT_EQ(cut.substr(0, 1000), std::string(1000, 'a'));
  EXPECT_EQ(cut.substr(cut.size() - 3), "end");
}

TEST(ErrorText, MemoryThatRanOutSaysForWhat) {
  const auto said = [](const auto& f) {
    return error_message<std::runtime_error>([&] { within_memory("reading a.csv", f); });
  };
  const std::string expected = "reading a.csv needs more memory than there is";
  EXPECT_EQ(said([] { throw std::bad_alloc(); }), expected);
  EXPECT_EQ(said([] { std::vector<int>().reserve(static_cast<size_t>(-1)); }), expected);
  EXPECT_EQ(said([] { at::empty({int64_t{1} << 50}); }), expected);
  EXPECT_EQ(said([] { throw std::runtime_error("other"); }), "other");
  EXPECT_EQ(within_memory("adding", [] { return 1 + 1; }), 2);
}

}  // namespace
}  // namespace fastweights::cli

#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace fastweights {
namespace {

TEST(Utf8, CharactersHaveTheirLengthAndNothingElseHasOne) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\xC3\xA9x"), 2u);
  EXPECT_EQ(utf8_length("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(utf8_length("\xF0\x9F\x98\x80"), 4u);
  // a continuation, cut, longer than necessary, a surrogate, beyond Unicode
  for (const char* text : {"", "\x80", "\xC3", "\xC3x", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_EQ(utf8_length(text), 0u) << text;
}

TEST(Utf8, OneByteSpoilsAText) {
  const std::string text = "a long text with \xC3\xA9 in it, longer than a word of the machine";
  EXPECT_TRUE(is_utf8(text));
  EXPECT_TRUE(is_utf8(""));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string bad = text;
    bad[i] = '\xFE';
    EXPECT_FALSE(is_utf8(bad)) << i;
  }
}

}  // namespace
}  // namespace fastweights

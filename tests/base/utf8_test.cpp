#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "base/printable.h"

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

TEST(Printable, ControlCharactersBecomeText) {
  EXPECT_EQ(printable("pulse \xC3\xA9\xF0\x9F\x98\x80"), "pulse \xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(printable("a\x1b[31mb\r\n\x7f"), "a\\x1b[31mb\\x0d\\x0a\\x7f");
  // the control sequence introducer of 8-bit terminals, and bytes that are not UTF-8
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m\xE9"),
            "\\xc2\\x9b31m\\xe9");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Checked, AProductThatDoesNotFitIsNone) {
  EXPECT_EQ(checked_product({3, 5, 7}), 105u);
  EXPECT_EQ(checked_product(std::vector<int64_t>{}), 1u);
  EXPECT_EQ(checked_product({3, 0}), 0u);
  EXPECT_EQ(checked_product(std::vector<int64_t>{1, 63995, 864758687727616}), std::nullopt);
  EXPECT_EQ(checked_product({SIZE_MAX, 2, 0}), std::nullopt) << "a zero hides nothing";
  EXPECT_EQ(checked_product({SIZE_MAX, 1}), SIZE_MAX);
}

}  // namespace
}  // namespace fastweights

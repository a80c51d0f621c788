#include "base/printable.h"
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace fastweights {
namespace {

TEST(Printable, TextStays) {
  for (const char* text :
       {"", "plain text, 'quoted'", "\xc3\xa9t\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x99\x82"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_utf8(text));
  }
}

TEST(Printable, ControlCharactersBecomeText) {
  EXPECT_EQ(printable("a\x1b[31mred\r\n\t\x7f"), "a\\x1b[31mred\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  // the same as ESC [ for some terminals
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xe9"),
            "\\xc2\\x9b31m\\xe9");
}

TEST(Printable, BytesThatAreNoUtf8BecomeText) {
  EXPECT_EQ(printable("caf\xe9 s"), "caf\\xe9 s");
  // too long a form, half of a pair, beyond the last character, cut off
  for (const char* text :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\x97", "\x80", "\xff"}) {
    EXPECT_FALSE(is_utf8(text));
    EXPECT_EQ(printable(text).substr(0, 2), "\\x");
  }
}

TEST(Printable, AShellTakesAWordAsItIs) {
  EXPECT_EQ(shell_word("runs/spirals-1:samples=60"), "runs/spirals-1:samples=60");
  EXPECT_EQ(shell_word("my data/a b"), "'my data/a b'");
  EXPECT_EQ(shell_word("it's; rm $x"), "'it'\\''s; rm $x'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace fastweights

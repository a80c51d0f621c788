#include "base/json_fields.h"

#include <gtest/gtest.h>

#include "support/support.h"

namespace fastweights {
namespace {

using testing::error_message;

TEST(JsonFields, DeepNestingIsRefused) {
  for (const std::string& text : {std::string(100'000, '['), std::string("[[[[[[[[[1]]]]]]]]]")}) {
    EXPECT_EQ(error_message([&] { parse_json(text); }),
              "[config] objects and lists are nested deeper than 8 levels");
    EXPECT_EQ(error_message([&] { json_setting("key", text); }),
              "[config] objects and lists are nested deeper than 8 levels");
  }
  EXPECT_EQ(parse_json("[[[[[[[[1]]]]]]]]").dump(), "[[[[[[[[1]]]]]]]]");
}

// each dot of a key is a level
TEST(JsonFields, KeysOfManyDotsAreRefused) {
  std::string key = "a";
  for (int i = 0; i < 60'000; ++i) key += ".a";
  const std::string error = error_message([&] { json_setting(key, "1"); });
  EXPECT_EQ(error.rfind("[config] the key 'a.a.a.", 0), 0u) << error;
  EXPECT_NE(error.find("has more than 8 dots"), std::string::npos) << error;
  EXPECT_LT(error.size(), 300u);
  EXPECT_EQ(json_setting("a.b.c", "1").dump(), R"({"a":{"b":{"c":1}}})");
}

}  // namespace
}  // namespace fastweights

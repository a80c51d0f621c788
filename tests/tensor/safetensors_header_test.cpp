#include "tensor/safetensors_header.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fastweights {
namespace {

// what the reader says about a header in a file with this much data
std::string complaint(const std::string& json, int64_t data_bytes) {
  try {
    parse_safetensors_header(json, 8 + static_cast<int64_t>(json.size()) + data_bytes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

struct Hostile {
  const char* what;
  std::string json;
  int64_t data_bytes;
  const char* complaint;
};

class HostileHeader : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsNamedForWhatItIs) {
  const Hostile& h = GetParam();
  EXPECT_NE(complaint(h.json, h.data_bytes).find(h.complaint), std::string::npos)
      << h.what << ": said '" << complaint(h.json, h.data_bytes) << "'";
}

std::string nested(int depth) {
  std::string text = R"({"a":{"shape":)";
  for (int i = 0; i < depth; ++i) text += R"({"a":)";
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Header, HostileHeader,
    ::testing::Values(
        Hostile{"empty", "", 0, "must begin with '{'"}, Hostile{"no object", "[1]", 0, "must begin with '{'"},
        Hostile{"cut off", R"({"a":{"dtype")", 0, "not valid JSON"},
        Hostile{"text behind", "{} x", 0, "not valid JSON"},
        Hostile{"wrong UTF-8", "{\"\xff\xfe\":{}}", 0, "not valid JSON"},
        Hostile{"overlong UTF-8", "{\"\xc0\x80\":{}}", 0, "not valid JSON"},
        Hostile{"same name twice",
                "{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}", 8,
                "'a' comes twice"},
        Hostile{"same field twice", R"({"a":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,4]}})",
                4, "'dtype' comes twice in 'a'"},
        Hostile{"unknown type", "{" + entry("a", "C64", "[1]", "[0,8]") + "}", 8, "type 'C64'"},
        Hostile{"unknown field", R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"extra":1}})", 4,
                "'extra'"},
        Hostile{"missing field", R"({"a":{"dtype":"F32","shape":[1]}})", 4, "no data_offsets"},
        Hostile{"offsets too short", "{" + entry("a", "F32", "[3]", "[0,8]") + "}", 8, "needs 12 bytes"},
        Hostile{"shape overflows",
                "{" + entry("a", "F64", "[4294967296,4294967296,4294967296]", "[0,8]") + "}", 8, "overflows"},
        Hostile{"zero hides an overflow", "{" + entry("a", "F64", "[0,4611686018427387904,4]", "[0,0]") + "}",
                0, "overflows"},
        Hostile{"huge number", "{" + entry("a", "F64", "[18446744073709551615]", "[0,8]") + "}", 8,
                "too large"},
        Hostile{"number beyond 64 bits", "{" + entry("a", "F64", "[99999999999999999999999]", "[0,8]") + "}",
                8, "number"},
        Hostile{"negative extent", "{" + entry("a", "F64", "[-1]", "[0,8]") + "}", 8, "negative"},
        Hostile{"fractional extent", "{" + entry("a", "F64", "[1.5]", "[0,8]") + "}", 8, "number"},
        Hostile{"out of range", "{" + entry("a", "F64", "[100]", "[0,800]") + "}", 8, "the file has only 8"},
        Hostile{"ends before it begins", "{" + entry("a", "F64", "[1]", "[8,0]") + "}", 8,
                "before they begin"},
        Hostile{"overlap",
                "{" + entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[2]", "[4,12]") + "}", 12,
                "'b' overlaps 'a'"},
        Hostile{"hole", "{" + entry("a", "F32", "[1]", "[4,8]") + "}", 8, "belong to nothing"},
        Hostile{"data left over", "{" + entry("a", "F32", "[1]", "[0,4]") + "}", 8, "the last 4 bytes"},
        Hostile{"metadata not text", R"({"__metadata__":{"a":1}})", 0, "must be text"},
        Hostile{"metadata nested", R"({"__metadata__":{"a":{}}})", 0, "nested deeper"},
        Hostile{"three offsets", "{" + entry("a", "F32", "[1]", "[0,2,4]") + "}", 4, "two data offsets"},
        Hostile{"many dimensions",
                "{" +
                    entry(
                        "a", "F32",
                        "[1" +
                            [] {
                              std::string ones;
                              for (int i = 0; i < 50; ++i) ones += ",1";
                              return ones;
                            }() +
                            "]",
                        "[0,4]") +
                    "}",
                4, "more than 32"},
        Hostile{"deeply nested", nested(100000), 0, "nested deeper"},
        Hostile{"a number for a tensor", R"({"a":5})", 0, "unexpected"}));

TEST(SafetensorsHeader, LengthIsCheckedBeforeAnythingIsRead) {
  const unsigned char huge[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  EXPECT_THROW(safetensors_header_length(huge, 1 << 20), std::runtime_error);
  const unsigned char lying[8] = {0, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_THROW(safetensors_header_length(lying, 100), std::runtime_error);
  EXPECT_EQ(safetensors_header_length(lying, 264), 256);
  EXPECT_THROW(safetensors_header_length(lying, 7), std::runtime_error);
}

TEST(SafetensorsHeader, WrittenHeadersComeBack) {
  SafetensorsHeader header;
  header.entries["w"] = {"F32", {2, 3}, 0, 24};
  header.entries["\xc3\xa4 \"quoted\""] = {"U8", {}, 24, 25};
  header.metadata = {{"note", "line\nbreak"}};
  const std::string bytes = write_safetensors_header(header);
  ASSERT_EQ(bytes.size() % 8, 0u);
  const SafetensorsHeader back =
      parse_safetensors_header(std::string_view(bytes).substr(8), static_cast<int64_t>(bytes.size()) + 25);
  EXPECT_EQ(back.metadata, header.metadata);
  ASSERT_EQ(back.entries.size(), 2u);
  EXPECT_EQ(back.entries.at("w").shape, (std::vector<int64_t>{2, 3}));
}

TEST(SafetensorsHeader, RefusesToWriteWrongUtf8) {
  SafetensorsHeader header;
  header.metadata = {{"note", "\xff"}};
  EXPECT_THROW(write_safetensors_header(header), std::invalid_argument);
}

}  // namespace
}  // namespace fastweights

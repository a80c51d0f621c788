#include "data/npz.h"

#include <cstring>

#include "data/data_support.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

using Arrays = std::map<std::string, NpyArray>;

// an array as numpy writes it, with any header
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += std::string(version == 1 ? 1 : 3, '\0');
  return bytes + header + data;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string header(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

TEST(Npz, EveryTypeAndVersionIsRead) {
  for (const char version : {1, 2, 3}) {
    expect_equal(parse_npy(npy(header("<f8", "(2,)"), raw<double>({1.5, -2}), version), "a").reals, {1.5, -2},
                 "f8");
    expect_equal(parse_npy(npy(header("<f4", "(2, 1)"), raw<float>({0.5f, 3}), version), "a").reals, {0.5, 3},
                 "f4");
  }
  EXPECT_EQ(parse_npy(npy(header("<i8", "()"), raw<int64_t>({-7})), "a").integers,
            (std::vector<int64_t>{-7}));
  EXPECT_EQ(parse_npy(npy(header("<i4", "(1,)"), raw<int32_t>({-7})), "a").integers,
            (std::vector<int64_t>{-7}));
  EXPECT_EQ(parse_npy(npy(header("|S3", "(2,)"), std::string("ab\0abc", 6)), "a").texts,
            (std::vector<std::string>{"ab", "abc"}));
  EXPECT_EQ(parse_npy(npy(header("<U2", "(2,)"), raw<uint32_t>({0xe9, 0x1f600, 'x', 0})), "a").texts,
            (std::vector<std::string>{"\xC3\xA9\xF0\x9F\x98\x80", "x"}));
  EXPECT_EQ(parse_npy(npy(header("<f8", "(0, 3)"), ""), "a").shape, (std::vector<int64_t>{0, 3}));
}

TEST(Npz, FortranOrderBecomesC) {
  std::vector<double> values(2 * 3 * 5), expected;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 5; ++k) expected.push_back(values[i + 2 * j + 6 * k]);
    }
  }
  expect_equal(parse_npy(npy(header("<f8", "(2, 3, 5)", "True"), raw(values)), "a").reals, expected, "value");
}

TEST(Npz, ArraysComeBackStoredAndDeflated) {
  const Arrays arrays = {{"x", real_array({2, 3}, {1, 2, kMissing, 4, 5e-324, 6})},
                         {"n", integer_array({1, -2, int64_t{1} << 60})},
                         {"t", text_array({"", "caf\xC3\xA9", "a b"})}};
  for (const Packing packing : {Packing::Stored, Packing::Deflated}) {
    if (packing == Packing::Deflated && !can_deflate()) continue;
    const Arrays back = parse_npz_arrays(npz_bytes(arrays, packing), "f");
    EXPECT_EQ(back.size(), 3u);
    EXPECT_EQ(back.at("x").shape, (std::vector<int64_t>{2, 3}));
    expect_equal(back.at("x").reals, arrays.at("x").reals, "value");
    EXPECT_EQ(back.at("n").integers, arrays.at("n").integers);
    EXPECT_EQ(back.at("t").texts, arrays.at("t").texts);
  }
}

TEST(Npz, WithoutZlibDeflatedMembersSaySo) {
  if (can_deflate()) GTEST_SKIP() << "this build has zlib";
  EXPECT_NE(refusal([] { zip({{"a", "b"}}, Packing::Deflated); }).find("no zlib"), std::string::npos);
}

TEST(Npz, BrokenArraysSayWhatIsWrong) {
  const auto said = [](const std::string& bytes) { return refusal([&] { parse_npy(bytes, "f: a"); }); };
  EXPECT_EQ(said("hello"), "f: a: not a numpy array");
  EXPECT_EQ(said(npy(header("<f8", "(1,)"), "", 4)),
            "f: a: expected version 1, 2 or 3 of the array format, got 4");
  EXPECT_EQ(said(npy(header("<f8", "(1,)"), "").substr(0, 30)), "f: a: the file ends inside the header");
  EXPECT_EQ(said(npy("{'descr': '<f8', 'shape': (1,)}", "")),
            "f: a: no 'fortran_order' in the header of the array");
  for (const char* type : {">f8", "<f2", "|O", "<c16", "<U", "<Ux", ""})
    EXPECT_NE(said(npy(header(type, "(1,)"), "12345678"))
                  .find("expected float32, float64, int32, int64 or strings"),
              std::string::npos)
        << type;
  EXPECT_EQ(said(npy(header("<f8", "(-1,)"), "")), "f: a: shape: expected up to 8 sizes, got '-1,'");
  EXPECT_EQ(said(npy("{'fortran_order': False, 'descr': '<f8', 'shape': 3}", "")),
            "f: a: expected a shape in parentheses, got '3}'");
  EXPECT_EQ(said(npy(header("<f8", "(2,)"), "12345678")),
            "f: a: expected more data for the shape and 8 bytes per element, got 8 bytes");
  EXPECT_EQ(said(npy(header("<f8", "(99999999999999, 99999999999999)"), "12345678")),
            "f: a: expected more data for the shape and 8 bytes per element, got 8 bytes");
  EXPECT_EQ(said(npy(header("<f8", "(1,)"), "123456789")),
            "f: a: expected 8 bytes of data for the shape, got 9");
}

// the product of the first sizes wraps to 131072, which is what the data have
TEST(Npz, AShapeThatOverflowsIsRefused) {
  for (const auto& [shape, bytes] :
       {std::pair{"(1, 63995, 864758687727616)", 131072u * 8}, std::pair{"(4294967296, 4294967296, 2)", 0u},
        std::pair{"(0, 999999999999999, 999999999999999)", 0u}}) {
    const std::string data(bytes, '\0');
    EXPECT_EQ(refusal([&, &shape = shape] { parse_npy(npy(header("<f8", shape), data), "f: a"); }),
              "f: a: expected more data for the shape and 8 bytes per element, got " + std::to_string(bytes) +
                  " bytes")
        << shape;
  }
}

TEST(Npz, BrokenArchivesSayWhatIsWrong) {
  const auto said = [](const std::string& bytes) { return refusal([&] { unzip(bytes, "f"); }); };
  const std::string good = zip({{"a.npy", "content"}}, Packing::Stored);
  EXPECT_EQ(unzip(good + "comment", "f").at(0).second, "content");
  EXPECT_EQ(said(""), "f: not a complete zip archive; the .npz file may be truncated");
  EXPECT_EQ(said(good.substr(0, good.size() - 3)),
            "f: not a complete zip archive; the .npz file may be truncated");
  const size_t data = good.find("content"), central = good.find("PK\1\2");
  const auto changed = [&](size_t at, char to) {
    std::string bad = good;
    bad[at] = to;
    return said(bad);
  };
  EXPECT_EQ(changed(data, 'X'), "f: a.npy: checksum mismatch: the file is damaged");
  EXPECT_EQ(changed(central, 'X'), "f: malformed directory; expected 1 members");
  EXPECT_EQ(changed(central + 8, 1), "f: a.npy: encrypted members are not supported");
  EXPECT_EQ(changed(central + 10, 12),
            "f: a.npy: expected the compression method stored or deflated, got 12");
  EXPECT_EQ(changed(central + 24, 3), "f: a.npy: the two sizes of stored data differ");
  EXPECT_EQ(changed(central + 21, 1), "f: the directory claims more data than the file has");
  EXPECT_EQ(changed(central + 28, 100), "f: malformed directory; expected a name");
  EXPECT_EQ(changed(central + 42, 5), "f: a.npy: no member at the offset that the directory gives");
  EXPECT_EQ(changed(central + 20, 100), "f: a.npy: the file ends inside the data; expected 100 bytes");
  std::string large = good;
  for (size_t i = 0; i < 4; ++i) large[central + 42 + i] = '\xff';
  EXPECT_EQ(said(large), "f: a.npy: members of 4 GB or more are not supported; split the set");
}

DataSet parsed(const Arrays& arrays) { return parse_npz(npz_bytes(arrays, Packing::Stored), "f"); }
std::string said(const Arrays& arrays) {
  return refusal([&] { parsed(arrays); });
}

TEST(NpzReader, RowsOneAfterAnother) {
  const DataSet data = parsed({{"values", real_array({3, 2}, {1, 2, 3, kMissing, 5, 6})},
                               {"times", real_array({3}, {0, 0.5, 0})},
                               {"offsets", integer_array({0, 2, 3})},
                               {"labels", integer_array({7, -1})}});
  EXPECT_EQ(data.ids, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"7"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0, -1}));
  expect_equal(data.values, {1, 2, 3, kMissing, 5, 6}, "value");
}

TEST(NpzReader, SeriesBesideOneAnotherWithLengths) {
  Arrays arrays = {{"values", real_array({2, 3, 1}, {1, 2, 3, 4, 5, 6})}, {"labels", text_array({"b", "a"})}};
  DataSet data = parsed(arrays);
  expect_equal(data.times, {0, 1, 2, 0, 1, 2}, "time");
  EXPECT_EQ(data.head.time_unit, "step");
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0}));
  arrays["lengths"] = integer_array({3, 1});
  arrays["times"] = real_array({3}, {0, 2, 5});
  data = parsed(arrays);
  expect_equal(data.times, {0, 2, 5, 0}, "time");
  expect_equal(data.values, {1, 2, 3, 4}, "value");
  arrays["times"] = real_array({2, 3}, {0, 2, 5, 1, 8, 9});
  expect_equal(parsed(arrays).times, {0, 2, 5, 1}, "time");
}

TEST(NpzReader, SaysWhatIsWrong) {
  const Arrays good = {{"values", real_array({2, 1}, {1, 2})},
                       {"times", real_array({2}, {0, 1})},
                       {"offsets", integer_array({0, 2})}};
  const auto with = [&](const std::string& name, const NpyArray& array) {
    Arrays arrays = good;
    arrays[name] = array;
    return said(arrays);
  };
  EXPECT_EQ(said(good), "");
  EXPECT_EQ(with("label", integer_array({1})), "f: unknown array 'label'; the nearest is 'labels'");
  EXPECT_EQ(said({}), "f: no array 'values'; expected the shape [N, C] with offsets, or [B, L, C]");
  EXPECT_EQ(
      said({{"values", real_array({2, 1}, {1, 2})}}),
      "f: values: expected the shape [N, C] with offsets, or [B, L, C] without, got [2, 1] without offsets");
  EXPECT_EQ(said({{"values", real_array({2, 1}, {1, 2})}, {"offsets", integer_array({0, 2})}}),
            "f: no array 'times'; expected the shape [2]");
  EXPECT_EQ(with("times", real_array({1}, {1})), "f: times: expected the shape [2], got [1]");
  EXPECT_EQ(with("times", text_array({"a", "b"})), "f: times: expected numbers, got strings");
  EXPECT_EQ(with("offsets", integer_array({0, 1})),
            "f: offsets: expected values that increase from 0 to 2, the number of rows");
  EXPECT_EQ(with("offsets", real_array({2}, {0, 2})), "f: offsets: expected int64, got another type");
  EXPECT_EQ(with("channels", text_array({"a", "b"})), "f: expected 1 channels, got 2");
  EXPECT_EQ(with("channels", real_array({1}, {1})),
            "f: channels: expected strings, got floating-point numbers");
  EXPECT_EQ(with("labels", real_array({1}, {1})),
            "f: labels: expected int64 or strings, got floating-point numbers; values to predict belong in "
            "targets");
  EXPECT_EQ(with("labels", integer_array({-2})), "f: labels: expected 0 or more, or -1 for unknown, got -2");
  EXPECT_EQ(with("parts", text_array({"tset"})),
            "f: expected the part train, validation, test or any, got 'tset'");
  EXPECT_EQ(with("statics", real_array({2}, {1, 2})), "f: statics: expected the shape [1], got [2]");
  EXPECT_EQ(with("times", real_array({2}, {1, 1})), "f: series 1: times must increase: row 2 has 1 after 1");
  Arrays names = good;
  names["targets"] = real_array({1}, {3});
  names["target_names"] = text_array({"a", "b"});
  EXPECT_EQ(said(names), "f: expected 1 target_names, got 2");
  Arrays classes = good;
  classes["classes"] = text_array({"a", "b"});
  classes["labels"] = integer_array({2});
  Arrays twice = good;
  twice["classes"] = text_array({"a", "a"});
  EXPECT_EQ(said(twice), "f: duplicate or empty class name 'a'");
  EXPECT_EQ(said({{"values", real_array({0, 3, 1}, {})}}), "f: no series; expected at least one");
  EXPECT_EQ(said(classes), "f: labels: expected 0 to 1, or -1 for unknown, got 2");
  EXPECT_EQ(said({{"values", real_array({1, 2, 1}, {1, 2})}, {"lengths", integer_array({3})}}),
            "f: lengths: expected 1 to 2, got 3");
}

}  // namespace
}  // namespace fastweights::data

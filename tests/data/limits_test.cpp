#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <new>

#include "data/data_support.h"
#include "data/files.h"
#include "data/npz.h"
#include "data/parsers.h"
#include "data/readers.h"
#include "support/support.h"

/// What readers may take, and from what they read.

namespace fastweights::data {
namespace {

using testing::error_message;

const std::string kTable = "id,time,x\na,0,1\na,1,2\n";

TEST(ReadLimits, AFileLargerThanTheLimitIsNamed) {
  const TestFolder folder;
  const std::string file = folder.file("t.csv", kTable);
  EXPECT_EQ(refusal([&] { read_data(file, {.read_limit = 10}); }),
            file +
                ": its content would take 22 bytes, more than the limit of 10 bytes for reading; set another "
                "one with --read-limit");
  EXPECT_EQ(read_data(file, {.read_limit = 100'000}).samples(), 1);
  EXPECT_EQ(error_message([&] { read_data(file, {.read_limit = -1}); }),
            "[read_data] read_limit must not be negative, got -1");
}

TEST(ReadLimits, CompressedZerosAreRefusedBeforeTheyAreInflated) {
  if (!can_deflate()) GTEST_SKIP() << "this build has no zlib";
  const TestFolder folder;
  const std::string bytes = zip({{"values.npy", std::string(50'000'000, '\0')}}, Packing::Deflated);
  ASSERT_LT(bytes.size(), 100'000u);
  const std::string file = folder.file("bomb.npz", bytes);
  EXPECT_EQ(refusal([&] { read_data(file, {.read_limit = 1'000'000}); }),
            file +
                ": its uncompressed content would take 50 MB, more than the limit of 1 MB for reading; set "
                "another one with --read-limit");
}

TEST(ReadLimits, PackedFilesAreLimitedByTheirSize) {
  EXPECT_EQ(unpack_limit({}, 1'000'000), 512'000'000u);
  EXPECT_EQ(unpack_limit({}, 10'000'000), 640'000'000u);
  EXPECT_EQ(unpack_limit({}, std::numeric_limits<size_t>::max()), read_limit({}));
  EXPECT_EQ(unpack_limit({.read_limit = 7}, 1'000'000), 7u);
}

TEST(ReadLimits, ColonsAndShortSeriesAreCounted) {
  const std::string flood = "@data\n" + std::string(100'000, ':') + "\n";
  EXPECT_EQ(refusal([&] { parse_ts(flood, "f.ts", 1'000'000'000); }),
            "f.ts:2:1: expected values between colons, got 100000 colons in 100000 characters");
  std::string dimensions = "@data\n1";
  for (int i = 0; i < 100'000; ++i) dimensions += ":1";
  EXPECT_EQ(
      refusal([&] { parse_ts(dimensions + "\n", "f.ts", 1'000'000); }),
      "f.ts: its dimensions would take 20 MB, more than the limit of 1 MB for reading; set another one with "
      "--read-limit");
  std::string table = "id,time,x\n";
  for (int i = 0; i < 3000; ++i) table += std::to_string(i) + ",0,1\n";
  EXPECT_EQ(refusal([&] {
              parse_csv(table, "f.csv", {}, 1'000'000);
            }).rfind("f.csv: its series would take 1 MB", 0),
            0u);
  EXPECT_EQ(parse_csv(table, "f.csv", {}, 2'000'000).series.size(), 3000u);
}

// a ? per dimension, each of which gets a value per row
TEST(ReadLimits, DimensionsThatWereNotObservedAreCounted) {
  std::string line = "1";
  for (int i = 0; i < 1000; ++i) line += ",1";
  for (int i = 0; i < 1000; ++i) line += ":?";
  const std::string text = "@data\n" + line + "\n" + line + "\n";
  EXPECT_EQ(
      refusal([&] { parse_ts(text, "f.ts", 40'000'000); }).rfind("f.ts: its values would take 32 MB", 0), 0u)
      << "the second one";
  EXPECT_EQ(parse_ts(text, "f.ts", 80'000'000).series.size(), 2u);
}

TEST(ReadLimits, NamesAreCounted) {
  std::string names;
  for (int i = 0; i < 1000; ++i) names += std::to_string(i) + ",";
  std::string words = names;
  std::replace(words.begin(), words.end(), ',', ' ');
  const std::string end =
      " would take 100 kB, more than the limit of 100 kB for reading; set another one with --read-limit";
  constexpr size_t kLimit = 100'000;
  const std::string table = "id,time," + names + "x\n";
  EXPECT_EQ(refusal([&] { parse_csv(table, "f", {}, kLimit); }), "f: its columns" + end);
  const std::string ts = "@classLabel true " + words + "\n@data\n1:1\n";
  EXPECT_EQ(refusal([&] { parse_ts(ts, "f", kLimit); }), "f: its header" + end);
  EXPECT_EQ(parse_ts(ts, "f", 3 * kLimit).head.classes.size(), 1000u);
  const std::string arff = "@attribute x numeric\n@attribute c {" + names + "}\n@data\n1,1\n";
  EXPECT_EQ(refusal([&] { parse_arff(arff, "f", kLimit); }), "f: its classes" + end);
  EXPECT_EQ(parse_arff(arff, "f", 3 * kLimit).head.classes.size(), 1000u);
}

TEST(ReadLimits, MemoryThatIsNotThereIsNamed) {
  EXPECT_EQ(refusal([&] {
              read_files({"a.psv"}, {}, [](const std::string&) -> FileSeries { throw std::bad_alloc(); });
            }),
            "a.psv: reading it needs more memory than there is");
}

TEST(ReadSources, ANamedPipeIsRefusedAndDoesNotHang) {
  const TestFolder folder;
  const std::string pipe = folder.path("pipe.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string message =
      pipe +
      ": expected a file or a folder, got a named pipe; copy its content into a file, or "
      "pipe it to /dev/stdin";
  EXPECT_EQ(refusal([&] { read_data(pipe); }), message);
  EXPECT_EQ(refusal([&] { read_cached(pipe, {}, folder.path("cache")); }), message);
  EXPECT_EQ(
      refusal([&] { read_data("/dev/zero", {.format = "csv"}); }).rfind("/dev/zero: expected a file", 0), 0u);
  // as the table of a series
  folder.file("set/labels.csv", "id,label\na,u\n");
  ASSERT_EQ(mkfifo(folder.path("set/a.csv").c_str(), 0600), 0);
  EXPECT_NE(refusal([&] { read_data(folder.path("set")); }).find("got a named pipe"), std::string::npos);
}

TEST(ReadSources, AnOpenPipeIsReadOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], kTable.data(), kTable.size()), static_cast<ssize_t>(kTable.size()));
  close(ends[1]);
  const TestFolder folder;
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(refusal([&] { read_data(path); }),
            path + ": the format of a pipe cannot be detected; set it with --format");
  EXPECT_EQ(read_cached(path, {.format = "csv"}, folder.path("cache")).rows(), 2);
  close(ends[0]);
}

}  // namespace
}  // namespace fastweights::data

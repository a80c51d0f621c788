#include "data/data_support.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

const std::string kHead =
    "@problemName P\n@timeStamps false\n@univariate false\n@dimensions 2\n@classLabel true b a\n";

DataSet parsed_ts(const std::string& text) { return finished(parse_ts(text, "f"), {}); }
std::string ts_error(const std::string& text) {
  return refusal([&] { parsed_ts(text); });
}

TEST(TsReader, RaggedSeriesWithMissingValuesAreReadAsTheyAre) {
  const DataSet data =
      parsed_ts("\xEF\xBB\xBF# caf\xE9\r\n" + kHead + "@data\r\n1,2,3:4,?,6:a\r\n\n7:NaN:b\r\n8,9:?:?\n");
  EXPECT_EQ(data.offsets, (std::vector<int64_t>{0, 3, 4, 6}));
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0, -1}));
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"channel 1", "channel 2"}));
  EXPECT_EQ(data.head.time_unit, "step");
  expect_equal(data.times, {0, 1, 2, 0, 0, 1}, "time");
  expect_equal(data.values, {1, 4, 2, kMissing, 3, 6, 7, kMissing, 8, kMissing, 9, kMissing}, "value");
}

TEST(TsReader, DimensionsWithOtherTimesAreMerged) {
  const DataSet data = parsed_ts(
      "@timestamps true\n@dimensions 3\n@classLabel false\n@data\n(0,1),(2.5,2): (1,3) , (2.5,?) ,(4,5):?\n");
  expect_equal(data.times, {0, 1, 2.5, 4}, "time");
  expect_equal(data.values,
               {1, kMissing, kMissing, kMissing, 3, kMissing, 2, kMissing, kMissing, kMissing, 5, kMissing},
               "value");
  EXPECT_TRUE(data.labels.empty());
}

TEST(TsReader, TimestampsMayBeDates) {
  const DataSet data = parsed_ts(
      "@timestamps true\n@univariate true\n@classLabel true x\n@data\n(2017-07-03 01:00:00,10),(2017-07-03 "
      "01:30:00,20):x\n(2017-07-03T03:00:00+02:00,5):x\n");
  expect_equal(data.times, {0, 1800, 0}, "time");
  EXPECT_EQ(data.head.time_zero, "2017-07-03T01:00:00Z");
  EXPECT_EQ(data.head.time_unit, "second");
}

TEST(TsReader, TargetsAreNumbersToPredict) {
  const DataSet data = parsed_ts("@univariate true\n@targetlabel true\n@data\n1,2:0.5\n3,4:?\n");
  EXPECT_EQ(data.head.targets, (std::vector<std::string>{"target"}));
  expect_equal(data.targets, {0.5, kMissing}, "target");
  EXPECT_TRUE(data.labels.empty());
}

TEST(TsReader, CommentsMayNameChannels) {
  EXPECT_EQ(
      parsed_ts("# channel 2: heart rate\n# channel 9: none\n" + kHead + "@data\n1:2:a\n").head.channels,
      (std::vector<std::string>{"channel 1", "heart rate"}));
}

TEST(TsReader, FoldersJoinTheirParts) {
  const TestFolder folder;
  folder.file("Set/Set_TRAIN.ts", kHead + "@data\n1:2:a\n3:4:b\n");
  folder.file("Set/Set_TEST.ts", "@dimensions 2\n@classLabel true a b\n@data\n5:6:a\n");
  for (const char* path : {"Set", "Set/"}) {
    const DataSet data = read_ts(folder.path(path), {});
    EXPECT_EQ(data.ids, (std::vector<std::string>{"train-1", "train-2", "test-1"}));
    EXPECT_EQ(data.parts, (std::vector<Part>{Part::Train, Part::Train, Part::Test}));
    EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0, 1}));
    EXPECT_EQ(data.head.name, "Set");
  }
  const DataSet test = read_ts(folder.path("Set/Set_TEST.ts"), {});
  EXPECT_EQ(test.parts, (std::vector<Part>{Part::Test}));
  EXPECT_EQ(test.head.name, "Set");
  std::remove(folder.path("Set/Set_TRAIN.ts").c_str());
  EXPECT_EQ(read_ts(folder.path("Set"), {}).ids, (std::vector<std::string>{"test-1"}));
  std::remove(folder.path("Set/Set_TEST.ts").c_str());
  EXPECT_EQ(refusal([&] { read_ts(folder.path("Set"), {}); }),
            folder.path("Set") + ": expected Set_TRAIN.ts or Set_TEST.ts, got neither");
}

TEST(TsReader, PartsThatDifferAreRefused) {
  const TestFolder folder;
  folder.file("S/S_TRAIN.ts", kHead + "@data\n1:2:a\n");
  folder.file("S/S_TEST.ts", "@dimensions 2\n@classLabel true a b c\n@data\n5:6:c\n");
  EXPECT_EQ(refusal([&] { read_ts(folder.path("S"), {}); }),
            folder.path("S/S_TEST.ts") + ": expected 2 classes as in the other part, got 3");
}

TEST(TsReader, HeadersSayWhatIsWrong) {
  EXPECT_EQ(ts_error(""), "f:1:1: expected @data, got the end of the file");
  EXPECT_EQ(ts_error("@univariate true\n"), "f:1:1: expected @data, got the end of the file");
  EXPECT_EQ(ts_error("hello\n"), "f:1:1: expected a line starting with @ or #, or @data, got 'hello'");
  EXPECT_EQ(ts_error("@timestamps maybe\n"), "f:1:13: expected true or false, got 'maybe'");
  EXPECT_EQ(ts_error(" @missing\n"), "f:1:2: expected true or false after '@missing', got nothing");
  EXPECT_EQ(ts_error("@dimensions 0\n"), "f:1:13: expected an integer of at least 1, got '0'");
  EXPECT_EQ(ts_error("@seriesLength 1.5\n"), "f:1:15: expected an integer of at least 1, got '1.5'");
  EXPECT_EQ(ts_error("@classLabel true a b a\n"), "f:1:22: duplicate class 'a'");
  EXPECT_EQ(ts_error(kHead + "@data\n"), "f:6:1: no case after @data");
}

TEST(TsReader, CasesSayWhatIsWrong) {
  EXPECT_EQ(ts_error(kHead + "@data\n1,2:3,x:a\n"), "f:7:7: expected a number, ? or NaN, got 'x'");
  EXPECT_EQ(ts_error(kHead + "@data\n1,inf:3,4:a\n"), "f:7:3: expected a number, ? or NaN, got 'inf'");
  EXPECT_EQ(ts_error(kHead + "@data\n1,2:a\n"), "f:7:1: expected 2 dimensions and a label, got 1");
  EXPECT_EQ(ts_error(kHead + "@data\n1,2:3:a\n"),
            "f:7:1: dimension 2: expected 2 values as in the longest one, got 1");
  EXPECT_EQ(ts_error(kHead + "@data\n1,2:3,4:\n"), "f:7:9: expected a label, or ? if unknown, got nothing");
  EXPECT_EQ(ts_error(kHead + "@data\n1,2:3,4:aa\n"), "f:7: unknown class 'aa'; the nearest is 'a'");
  EXPECT_EQ(ts_error(kHead + "@equalLength true\n@seriesLength 3\n@data\n1,2:3,4:a\n"),
            "f:9:1: expected 3 values as in @seriesLength, got 2");
  EXPECT_EQ(ts_error("@classLabel true a\n@data\na\n"),
            "f:3:1: expected at least 1 dimensions and a label, got 0");
  EXPECT_EQ(ts_error("@targetlabel true\n@data\n1:a\n"), "f:3:3: expected a number, got 'a'");
}

TEST(TsReader, TimestampsSayWhatIsWrong) {
  const std::string head = "@timestamps true\n@univariate true\n@classLabel true x\n@data\n";
  EXPECT_EQ(ts_error(head + "(0,1),(1,2:x\n"), "f:5:1: expected 1 dimensions and a label, got 0");
  EXPECT_EQ(ts_error(head + "(0,1),1:x\n"), "f:5:7: expected (time,value), got '1'");
  EXPECT_EQ(ts_error(head + "(0 1):x\n"), "f:5:1: expected (time,value), got '(0 1)'");
  EXPECT_EQ(ts_error(head + "(0,1)(1,2):x\n"), "f:5:6: expected a comma, got '(1,2)'");
  EXPECT_EQ(ts_error(head + "(1,1),(1,2):x\n"),
            "f:5:8: expected a later time than the previous one, got '1'");
  EXPECT_EQ(ts_error(head + "(0,1),(2020-01-01,2):x\n"),
            "f:5:8: expected a number as in earlier rows, got the date '2020-01-01'");
  EXPECT_EQ(ts_error(head + "?:x\n"), "f:5: expected at least one row, got none");
}

}  // namespace
}  // namespace fastweights::data

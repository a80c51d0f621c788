#include "data/data_support.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

const std::string kPlain =
    "@relation P\n@attribute t1 numeric\n@ATTRIBUTE 't 2' REAL\n@attribute target {b, 'a c'}\n@data\n";
const std::string kRelational =
    "% worms\n@relation R\n\n@attribute bag relational\n  @attribute t1 numeric\n  @attribute t2 numeric\n  "
    "@attribute t3 numeric\n@end bag\n@attribute class {1,2}\n@data\n";

DataSet parsed(const std::string& text) { return finished(parse_arff(text, "f"), {}); }
std::string said(const std::string& text) {
  return refusal([&] { parsed(text); });
}

TEST(ArffReader, OneAttributePerTimePoint) {
  const DataSet data = parsed(kPlain + "1.5, 2,b\r\n% comment \xE9\n?,4,'a c'\n5,6,?\n");
  EXPECT_EQ(data.offsets, (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"b", "a c"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0, 1, -1}));
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"channel 1"}));
  EXPECT_EQ(data.head.time_unit, "step");
  expect_equal(data.values, {1.5, 2, kMissing, 4, 5, 6}, "value");
}

TEST(ArffReader, RelationsAreDimensionsWithTwoLettersBetween) {
  const DataSet data = parsed(kRelational + "'1,2,3\\n4,?,6',2\n\"7,8,9\\n10,11,12\\n\",1\n");
  EXPECT_EQ(data.head.channels.size(), 2u);
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0}));
  expect_equal(data.values, {1, 4, 2, kMissing, 3, 6, 7, 10, 8, 11, 9, 12}, "value");
}

TEST(ArffReader, StepsThatOnlyFillUpAreCutOff) {
  const DataSet data = parsed(kRelational + "'1,2,?\\n4,?,?',2\n'?,?,?\\n?,?,?',1\n'?,?,3\\n?,?,?',1\n");
  EXPECT_EQ(data.offsets, (std::vector<int64_t>{0, 2, 3, 6}));
}

TEST(ArffReader, FoldersJoinTheirParts) {
  const TestFolder folder;
  folder.file("S/S_TRAIN.arff", kPlain + "1,2,b\n");
  folder.file("S/S_TEST.arff", kPlain + "3,4,b\n");
  const DataSet data = read_arff(folder.path("S"), {});
  EXPECT_EQ(data.ids, (std::vector<std::string>{"train-1", "test-1"}));
  EXPECT_EQ(data.head.origin, "arff");
}

TEST(ArffReader, WithoutClassesThereAreNoLabels) {
  EXPECT_TRUE(parsed("@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n").labels.empty());
}

TEST(ArffReader, HeadersSayWhatIsWrong) {
  EXPECT_EQ(said("@relation r\n"), "f:1:1: expected @data, got the end of the file");
  EXPECT_EQ(said("1,2\n"), "f:1:1: expected @relation, @attribute, @end or @data, got '1,2'");
  EXPECT_EQ(said("@attribute\n"), "f:1:11: expected the name of an attribute, got nothing");
  EXPECT_EQ(said("@attribute a string\n"),
            "f:1:13: attribute 'a': expected the type numeric, real, integer, relational (once) or "
            "{classes}, got 'string'");
  EXPECT_EQ(said("@attribute a {x,y\n"), "f:1:18: expected }, got the end of the line");
  EXPECT_EQ(said("@attribute a {x,,y}\n"), "f:1:17: expected the name of a class, got nothing");
  EXPECT_EQ(said("@attribute a {x,x}\n"), "f:1:17: duplicate class 'x'");
  EXPECT_EQ(said("@attribute 'a numeric\n"), "f:1:12: expected a closing ' before the end of the line");
  EXPECT_EQ(said("@attribute c {x}\n@attribute a numeric\n"),
            "f:2:13: expected @data after the classes, got the attribute 'a'");
  EXPECT_EQ(said("@attribute r relational\n@attribute c {x}\n"),
            "f:2:13: expected numeric attributes inside a relation, got the nominal attribute 'c'");
  EXPECT_EQ(said("@attribute r relational\n@attribute a numeric\n@data\n"),
            "f:3:1: expected @end of the relation, got @data");
  EXPECT_EQ(said("@attribute r relational\n@attribute a numeric\n@end r\n@attribute b numeric\n"),
            "f:4:13: expected {classes} after the relation, got the numeric attribute 'b'");
  EXPECT_EQ(said("@attribute c {x}\n@data\n"), "f:2:1: no numeric attribute; expected one per time point");
  EXPECT_EQ(said(kPlain), "f:5:1: no case after @data");
}

TEST(ArffReader, CasesSayWhatIsWrong) {
  EXPECT_EQ(said(kPlain + "1,x,b\n"), "f:6:3: expected a number or ?, got 'x'");
  EXPECT_EQ(said(kPlain + "1,b\n"), "f:6:1: expected 3 fields (2 values and the class), got 2");
  EXPECT_EQ(said(kPlain + "1,2,b,3\n"), "f:6:6: expected the end of the line, got ',3'");
  EXPECT_EQ(said(kPlain + "1,2,\n"), "f:6:5: expected the class, or ? if unknown, got nothing");
  EXPECT_EQ(said(kPlain + "1,2,c\n"), "f:6: unknown class 'c'; the nearest is 'b'");
  EXPECT_EQ(said(kPlain + "{0 1, 2 b}\n"), "f:6:1: expected comma-separated values, got a sparse case in {}");
  EXPECT_EQ(said(kRelational + "1,2,3,1\n"), "f:11:1: expected a quoted relation like '1,2\\n3,4', got '1'");
  EXPECT_EQ(said(kRelational + "'1,2\\n3,4',1\n"), "f:11:2: expected 3 values, one per attribute, got 2");
  EXPECT_EQ(said(kRelational + "'1,2,3\\n4,z,6',1\n"), "f:11:11: expected a number or ?, got 'z'");
  EXPECT_EQ(said(kRelational + "'',1\n"),
            "f:11:2: expected rows of numbers separated by \\n, got an empty relation");
  EXPECT_EQ(said(kRelational + "'1,2,3'\n"), "f:11:8: expected a comma and the class, got ''");
  EXPECT_EQ(said(kRelational + "'1,2,3',1\n'1,2,3\\n4,5,6',1\n"),
            "f:12:1: expected 1 dimensions as in the first case, got 2");
}

}  // namespace
}  // namespace fastweights::data

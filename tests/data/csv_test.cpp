#include "data/data_support.h"
#include "data/parsers.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

DataSet parsed(const std::string& text, const TableColumns& columns = {}) {
  return finished(parse_csv(text, "f", {.columns = columns}), {});
}
std::string said(const std::string& text, const TableColumns& columns = {}) {
  return refusal([&] { parsed(text, columns); });
}

TEST(CsvReader, RowsOfSeriesMayStandAmongOthers) {
  const DataSet data =
      parsed("id,time,x,label,y\nb,0,1,yes,2\na,5,3,no,\nb,0.5,NA,yes,4\na,7.25,null,no,?\nb,2,5,yes,NaN\n");
  EXPECT_EQ(data.ids, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(data.offsets, (std::vector<int64_t>{0, 3, 5}));
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0}));
  expect_equal(data.times, {0, 0.5, 2, 5, 7.25}, "time");
  expect_equal(data.values, {1, 2, kMissing, 4, 5, kMissing, 3, kMissing, kMissing, kMissing}, "value");
}

TEST(CsvReader, SeparatorsAndQuotesChangeNothing) {
  const DataSet data = parsed("id,time,x,label\na,0,1.5,p\na,1,,p\n");
  expect_same(data, parsed("id;time;x;label\r\na;0;1.5;p\r\na;1;;p\r\n"));
  expect_same(data, parsed("id\ttime\tx\tlabel\na\t0\t1.5\tp\na\t1\t\tp\n"));
  expect_same(data, parsed("\xEF\xBB\xBF\"id\",\"time\",\"x\",\"label\"\n\"a\",0,\"1.5\",p\n\na,1, ,p"));
}

TEST(CsvReader, ALabelThatVariesInsideASeriesIsOnePerStep) {
  const DataSet data = parsed("id,time,x,label\na,0,1,0\na,1,1,1\nb,0,1,0\nb,1,1,\n");
  EXPECT_TRUE(data.labels.empty());
  EXPECT_EQ(data.step_labels, (std::vector<int64_t>{0, 1, 0, -1}));
}

TEST(CsvReader, ALabelMayBeMissingOrAbsent) {
  EXPECT_EQ(parsed("id,time,x,label\na,0,1,\na,1,1,u\na,2,1,\nb,0,1,\n").labels,
            (std::vector<int64_t>{0, -1}));
  EXPECT_TRUE(parsed("id,time,x\na,0,1\n").labels.empty());
}

TEST(CsvReader, ColumnsMeanWhatTheOptionsSay) {
  const TableColumns columns = {.id = "stay",
                                .time = "hour",
                                .label = "died",
                                .group = "patient",
                                .statics = {"age"},
                                .targets = {"days"}};
  const DataSet data = parsed(
      "patient,stay,hour,age,hr,died,days\np1,s1,0,60,70,no,3.5\np1,s1,1,,71,no,3.5\np1,s2,0,61,72,yes,\n",
      columns);
  EXPECT_EQ(data.groups, (std::vector<std::string>{"p1", "p1"}));
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"hr"}));
  expect_equal(data.statics, {60, 61}, "static feature");
  expect_equal(data.targets, {3.5, kMissing}, "target");
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0, 1}));
}

TEST(CsvReader, ANumericLabelCanBeATarget) {
  const DataSet data = parsed("id,time,x,label\na,0,1,2.5\nb,0,1,3\n", {.targets = {"label"}});
  EXPECT_TRUE(data.labels.empty());
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"x"}));
  expect_equal(data.targets, {2.5, 3}, "target");
}

TEST(CsvReader, PartsAreKeptAndANumericColumnOfThatNameIsAChannel) {
  EXPECT_EQ(parsed("id,part,time,x\na,train,0,1\nb,Test,0,1\nc,,0,1\n").parts,
            (std::vector<Part>{Part::Train, Part::Test, Part::Any}));
  EXPECT_EQ(parsed("id,part,time,x\na,3,0,1\n").head.channels, (std::vector<std::string>{"part", "x"}));
}

TEST(CsvReader, DatesAreTimes) {
  const TestFolder folder;
  const std::string path =
      folder.file("d.csv", "id,time,x\na,2020-01-01T00:00:00Z,1\na,2020-01-01T02:30:00+01:00,2\n");
  const DataSet data = read_csv(path, {.time_unit = "hour"});
  expect_equal(data.times, {0, 1.5}, "time");
  EXPECT_EQ(data.head.time_unit, "hour");
  EXPECT_EQ(data.head.time_zero, "2020-01-01T00:00:00Z");
  EXPECT_EQ(data.head.name, "d");
}

TEST(CsvReader, AColumnThatMayHaveTheLabelsIsNoted) {
  const auto notes = [](const std::string& text, const TableColumns& columns = {}) {
    return parsed(text, columns).head.notes;
  };
  const std::string table = "id,time,x,lable\na,0,1,u\nb,0,1,v\n";
  const std::vector<std::string> note = {
      "no column 'label', so there are no labels; the nearest is 'lable', which --label-column 'lable' "
      "names"};
  EXPECT_EQ(notes(table), note);
  EXPECT_TRUE(notes(table, {.label = "lable"}).empty());
  EXPECT_TRUE(notes(table, {.targets = {"x"}}).empty());
  EXPECT_TRUE(notes(table, {.label_columns = LabelColumns::Optional}).empty());
  EXPECT_TRUE(notes(table, {.ignored = {"lable"}}).empty());
  EXPECT_TRUE(notes("id,time,x,outcome\na,0,1,u\n").empty());
  EXPECT_TRUE(notes("id,time,x,lable,label\na,0,1,u,v\n").empty());
  // labels.csv of a folder, unless rows have labels
  const TestFolder folder;
  folder.file("labels.csv", "id,lable\na,u\n");
  folder.file("a.csv", "time,x\n0,1\n");
  EXPECT_EQ(read_csv_folder(folder.path(""), {}).head.notes, note);
  folder.file("a.csv", "time,x,label\n0,1,u\n");
  EXPECT_TRUE(read_csv_folder(folder.path(""), {}).head.notes.empty());
}

TEST(CsvReader, HeadersSayWhatIsWrong) {
  EXPECT_EQ(said(""), "f:1:1: expected a header, got an empty file");
  EXPECT_EQ(said("ID,time,x\n"),
            "f:1:1: no column 'id' (the id of a series, see --id-column); the nearest is 'ID'");
  EXPECT_EQ(said("id,times,x\n"), "f:1:1: no column 'time' (the time); the nearest is 'times'");
  EXPECT_EQ(said("id,time,x,\n"), "f:1:11: expected the name of a column, got nothing");
  EXPECT_EQ(said("id,time,x,x\n"), "f:1:11: duplicate column 'x'");
  EXPECT_EQ(said("id,time,x\n"), "f:1:1: expected rows of series after the header, got nothing");
  const std::string table = "id,time,x,label\na,0,1,u\n";
  EXPECT_EQ(said(table, {.label = "class"}),
            "f:1:1: no column 'class' (the label); expected one of 'id', 'time', 'x', 'label'");
  EXPECT_EQ(said(table, {.group = "y"}), "f:1:1: no column 'y' (the group); the nearest is 'x'");
  EXPECT_EQ(said(table, {.statics = {"y"}}), "f:1:1: no column 'y' (a static feature); the nearest is 'x'");
  EXPECT_EQ(said(table, {.targets = {"y"}}), "f:1:1: no column 'y' (a target); the nearest is 'x'");
}

TEST(CsvReader, RowsSayWhatIsWrong) {
  EXPECT_EQ(said("id,time,x\na,0\n"), "f:2:3: expected 3 fields as in the header, got 2");
  EXPECT_EQ(said("id,time,x\na,0,1,2\n"), "f:2:7: expected 3 fields as in the header, got 4");
  EXPECT_EQ(
      said("id,time,x\na,0,1\na,1,abc\n"),
      "f:3:5: column 'x': expected a number, got 'abc'; if that is a missing value, use --missing 'abc'");
  EXPECT_EQ(said("id,time,x\n,0,1\n"), "f:2:1: expected the id of a series, got nothing");
  EXPECT_EQ(said("id,time,x\na,,1\n"),
            "f:2:3: expected a time, a number or a date such as 2020-02-29T12:30:00Z, got ''");
  EXPECT_EQ(said("id,time,x\na,1,1\nb,0,1\na,1,1\n"),
            "f:4:3: expected a later time than in the previous row of series 'a', got '1'; --duplicates "
            "first (or mean) "
            "makes one row of those with the same time");
  EXPECT_EQ(said("id,part,time,x\na,train,0,1\nb,tset,0,1\n"),
            "f:3:3: expected train, validation, test or nothing, got 'tset'");
  EXPECT_EQ(said("id,part,time,x\na,train,0,1\na,test,1,1\n"),
            "f:3:3: expected the same part in all rows of series 'a', got 'test'");
  EXPECT_EQ(said("id,time,x,g\na,0,1,p\na,1,1,q\n", {.group = "g"}),
            "f:3:7: column 'g' of series 'a': expected 'p' as in earlier rows, got 'q'");
  EXPECT_EQ(said("id,time,x,age\na,0,1,60\na,1,1,61\n", {.statics = {"age"}}),
            "f:3:7: column 'age' of series 'a': expected 60 as in earlier rows, got 61");
}

const char* const kLabels = "id,label,group,age\nb,yes,p,60\na,no,q,\n";

TEST(CsvFolder, LabelsGroupsAndStaticFeaturesStandInOneTable) {
  const TestFolder folder;
  folder.file("d/labels.csv", kLabels);
  folder.file("d/a.csv", "time,x,y\n0,1,2\n1,,4\n");
  folder.file("d/b.csv", "y,time,x\n6,3,5\n");
  const DataSet data = read_csv_folder(folder.path("d"), {});
  EXPECT_EQ(data.ids, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(data.groups, (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(data.labels, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(data.head.channels, (std::vector<std::string>{"y", "x"}));
  EXPECT_EQ(data.head.statics, (std::vector<std::string>{"age"}));
  EXPECT_EQ(data.head.name, "d");
  expect_equal(data.values, {6, 5, 2, 1, 4, kMissing}, "value");
  expect_equal(data.statics, {60, kMissing}, "static feature");
}

TEST(CsvFolder, LabelsInTheTablesAreThoseOfSteps) {
  const TestFolder folder;
  folder.file("labels.csv", "id,label\na,u\n");
  folder.file("a.csv", "time,x,label\n0,1,v\n1,2,v\n");
  const DataSet data = read_csv_folder(folder.path(""), {});
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0}));
  EXPECT_EQ(data.step_labels, (std::vector<int64_t>{1, 1}));
}

TEST(CsvFolder, BrokenFilesAreTheEndOrAreListed) {
  const TestFolder folder;
  folder.file("labels.csv", "id,label\na,u\nb,v\nc,u\nd,v\n");
  folder.file("a.csv", "time,x\n0,one\n");
  folder.file("b.csv", "time,x\n0,1\n");
  folder.file("d.csv", "time,y\n0,1\n");
  folder.file("e.csv", "time,x\n0,1\n");
  const std::string a =
      folder.path("a.csv") +
      ":2:3: column 'x': expected a number, got 'one'; if that is a missing value, use --missing 'one'";
  EXPECT_EQ(refusal([&] { read_csv_folder(folder.path(""), {}); }), a);
  const DataSet data = read_csv_folder(folder.path(""), {.skip_bad = true});
  EXPECT_EQ(data.ids, (std::vector<std::string>{"b"}));
  EXPECT_EQ(data.head.skipped,
            (std::vector<std::string>{
                a, folder.path("c.csv") + ": no such file, although labels.csv lists the series",
                folder.path("d.csv") + ":1:1: no channel 'x', which the first file has",
                folder.path("e.csv") + ": labels.csv has no row for this series"}));
}

TEST(CsvFolder, ProgressReachesTheEnd) {
  const TestFolder folder;
  folder.file("labels.csv", "id,label\na,u\n");
  folder.file("a.csv", "time,x\n0,1\n");
  std::vector<int64_t> seen;
  read_csv_folder(folder.path(""), {.progress = [&](int64_t done, int64_t) { seen.push_back(done); }});
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1}));
}

// the error of a folder with one series
std::string folder_said(const std::string& labels, const std::string& table,
                        const ReadOptions& options = {}) {
  const TestFolder folder;
  folder.file("labels.csv", labels);
  folder.file("a.csv", table);
  const std::string what = refusal([&] { read_csv_folder(folder.path(""), options); });
  return what.substr(what.rfind('/') + 1);
}

TEST(CsvFolder, SaysWhatIsWrong) {
  EXPECT_EQ(folder_said("", ""), "labels.csv:1:1: expected a header, got an empty file");
  EXPECT_EQ(folder_said("name,label\n", ""),
            "labels.csv:1:1: no column 'id'; expected one of 'name', 'label'");
  EXPECT_EQ(folder_said("id,label\n", ""),
            "labels.csv:1:1: expected a row per series after the header, got nothing");
  EXPECT_EQ(folder_said("id,label\na,u\na,v\n", ""), "labels.csv:3:1: duplicate series 'a'");
  EXPECT_EQ(folder_said("id,label\n,u\n", ""), "labels.csv:2:1: expected the id of a series, got nothing");
  EXPECT_EQ(folder_said("id,label,age\na,u,F\nb,u,3\n", ""),
            "labels.csv:2:5: column 'age': expected a number, got 'F'; if that is a missing value, use "
            "--missing 'F'");
  EXPECT_EQ(folder_said("id,label\na,u\n", "time,x\n"),
            "a.csv:1:1: expected rows after the header, got nothing");
  EXPECT_EQ(
      folder_said("id,label\na,u\n", "time,x\n1,1\n1,2\n"),
      "a.csv:3:1: expected a later time than in the previous row, got '1'; --duplicates first (or mean) "
      "makes one row of those with the same time");
  EXPECT_EQ(folder_said("id,label\na,u\n", "id,time,x\nb,1,1\n"),
            "a.csv:2:1: expected series 'a', as in the file name, got 'b'");
  EXPECT_EQ(folder_said("id,label\na,u\n", "time,x\n1,1\n2,z\n", {.skip_bad = true}),
            ": no series could be read");
  const TestFolder empty;
  EXPECT_EQ(refusal([&] { read_csv_folder(empty.path("x"), {}); }),
            empty.path("x") + ": expected a folder, got a file");
  EXPECT_EQ(refusal([&] { read_csv_folder(empty.path(""), {}); }),
            empty.path("labels.csv") + ": no such file");
}

}  // namespace
}  // namespace fastweights::data

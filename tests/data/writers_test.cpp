#include "data/writers.h"

#include "base/files.h"
#include "data/data_support.h"
#include "data/readers.h"

namespace fastweights::data {
namespace {

const char* const kTable =
    "id,time,x,\"y, z\",label\n"
    "s1,0,0.1,2,up\ns1,0.30000000000000004,,1e-300,up\ns2,-1,3,,down\ns3,5e-324,1,1,up\ns3,1,2,2,up\n";

TEST(DataFormats, TheSameTableLongPerSeriesAndAsArraysIsTheSameSet) {
  const TestFolder folder;
  const DataSet data = read_csv(folder.file("long.csv", kTable), {});
  folder.file("d/labels.csv", "id,label\ns1,up\ns2,down\ns3,up\n");
  folder.file("d/s1.csv", "time,x,\"y, z\"\n0,0.1,2\n0.30000000000000004,,1e-300\n");
  folder.file("d/s2.csv", "time,x,\"y, z\"\n-1,3,\n");
  folder.file("d/s3.csv", "time,x,\"y, z\"\n5e-324,1,1\n1,2,2\n");
  const std::map<std::string, NpyArray> arrays = {
      {"values", real_array({5, 2}, {0.1, 2, kMissing, 1e-300, 3, kMissing, 1, 1, 2, 2})},
      {"times", real_array({5}, {0, 0.1 + 0.2, -1, 5e-324, 1})},
      {"offsets", integer_array({0, 2, 3, 5})},
      {"channels", text_array({"x", "y, z"})},
      {"ids", text_array({"s1", "s2", "s3"})},
      {"labels", text_array({"up", "down", "up"})}};
  expect_same(data, read_csv_folder(folder.path("d"), {}));
  expect_same(data, read_npz(folder.file("d.npz", npz_bytes(arrays, Packing::Stored)), {}));
}

// everything a set can hold
DataSet written_set() {
  const DataHead head = {.name = "full set",
                         .channels = {"heart rate", "x,\"y\""},
                         .statics = {"age"},
                         .targets = {"days", "cost"},
                         .classes = {"10", "9", "z"},
                         .time_unit = "hour",
                         .time_zero = "2020-01-01T00:00:00Z"};
  return collect_series(head, {{.id = "a b",
                                .group = "p",
                                .part = Part::Train,
                                .times = {0, 0.1},
                                .values = {1, 2, kMissing, 1.0 / 3},
                                .statics = {61.5},
                                .label = "9",
                                .targets = {1, kMissing},
                                .step_labels = {"z", ""}},
                               {.id = "c",
                                .part = Part::Validation,
                                .times = {-1e-9},
                                .values = {kMissing, kMissing},
                                .statics = {kMissing},
                                .targets = {2, 3}}});
}

TEST(DataWriters, ArraysKeepEverything) {
  const TestFolder folder;
  const DataSet data = written_set();
  for (const Packing packing : {Packing::Stored, Packing::Deflated}) {
    if (packing == Packing::Deflated && !can_deflate()) continue;
    write_npz(data, folder.path("new/f.npz"), packing);
    const DataSet back = read_npz(folder.path("new/f.npz"), {});
    expect_same(data, back);
    EXPECT_EQ(back.head.time_unit, "hour");
    EXPECT_EQ(back.head.time_zero, data.head.time_zero);
    EXPECT_EQ(back.head.name, "f");
  }
}

TEST(DataWriters, FoldersOfTablesKeepAllButTheOrderOfClasses) {
  const TestFolder folder;
  DataSet data = written_set();
  write_csv_folder(data, folder.path("d"));
  const DataSet back = read_csv_folder(folder.path("d"), {.columns = {.targets = {"days", "cost"}}});
  // a class that no series has is not found, and numbers do not sort as numbers beside a word
  EXPECT_EQ(back.head.classes, (std::vector<std::string>{"9", "z"}));
  EXPECT_EQ(back.labels, (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(back.step_labels, (std::vector<int64_t>{1, -1, -1}));
  data.head.classes = back.head.classes;
  data.labels = back.labels;
  data.step_labels = back.step_labels;
  expect_same(data, back);
}

TEST(DataWriters, LongTablesComeBackWhenTheirColumnsAreNamed) {
  const TestFolder folder;
  DataSet data = written_set();
  EXPECT_NE(refusal([&] { write_csv(data, folder.path("f.csv")); }).find("labels of series and of steps"),
            std::string::npos);
  data.step_labels.clear();
  data.head.classes = {"9"};
  data.labels = {0, -1};
  write_csv(data, folder.path("f.csv"));
  const TableColumns columns = {.group = "group", .statics = {"age"}, .targets = {"days", "cost"}};
  expect_same(data, read_csv(folder.path("f.csv"), {.columns = columns}));
}

TEST(DataWriters, TsComesBackWithAndWithoutTimes) {
  const TestFolder folder;
  const DataHead head = {.name = "S", .channels = {"u", "channel 2"}, .classes = {"b", "a"}};
  for (const double step : {1.0, 0.1}) {
    const DataSet data = collect_series(
        head, {{.id = "train-1",
                .part = Part::Train,
                .times = {0, step},
                .values = {1, 2, kMissing, kMissing},
                .label = "a"},
               {.id = "train-2", .part = Part::Train, .times = {0}, .values = {1.0 / 3, kMissing}},
               {.id = "test-1",
                .part = Part::Test,
                .times = {0, step, 2 * step},
                .values = {1, 4, kMissing, 5, 3, 6},
                .label = "b"}});
    write_ts(data, folder.path("S"));
    expect_same(data, read_ts(folder.path("S"), {}));
  }
  const DataSet targets =
      collect_series({.channels = {"channel 1"}, .targets = {"target"}},
                     {{.id = "case-1", .times = {0, 1}, .values = {1, 2}, .targets = {0.1}}});
  write_ts(targets, folder.path("t.ts"));
  expect_same(targets, read_ts(folder.path("t.ts"), {}));
}

TEST(DataWriters, WhatAFormatHasNoPlaceForIsRefused) {
  const TestFolder folder;
  const auto said = [&](const DataSet& data, const char* name, const char* format) {
    const std::string what = refusal([&] { write_data(data, folder.path(name), format); });
    EXPECT_FALSE(std::filesystem::exists(folder.path(name))) << name;
    return what.substr(what.find(": ") + 2);
  };
  DataSet plain =
      collect_series({.channels = {"x"}}, {{.id = "a", .times = {0}, .values = {1}, .label = "u v"}});
  EXPECT_EQ(said(written_set(), "f.ts", "ts"),
            "cannot be written: a .ts file cannot store static features or step labels; write .npz");
  EXPECT_EQ(said(plain, "f.ts", ""), "cannot be written: a .ts file cannot store the class name 'u v'");
  plain.head.classes = {"NA"};
  EXPECT_EQ(said(plain, "f.csv", ""), "cannot be written: the class 'NA' would read as unknown");
  EXPECT_EQ(said(plain, "S", "ts"),
            "cannot be written: a folder of .ts files has a training and a test part only; write a .ts file "
            "or .npz");
  EXPECT_EQ(said(plain, "S_TRAIN.ts", ""),
            "cannot be written: the file name implies another part than that of its series; write a folder");
  plain.head.classes = {"u"};
  plain.head.channels = {"time"};
  EXPECT_EQ(said(plain, "f.csv", ""),
            "cannot be written: the column name 'time' is reserved, empty or duplicate");
  plain.head.channels = {"x"};
  plain.ids = {"../a"};
  EXPECT_EQ(said(plain, "d", ""), "cannot be written: '../a.csv' cannot be the name of a file there");
  EXPECT_EQ(said(select_series(written_set(), {0, 0}), "f.csv", ""),
            "cannot be written: empty or duplicate id 'a b'");
  DataSet two = written_set();
  two.head.statics.clear();
  two.step_labels.clear();
  EXPECT_EQ(said(two, "f.ts", ""),
            "cannot be written: a .ts file can store either a label or one target; write .npz");
  EXPECT_THROW(write_data(plain, folder.path("f.xls")), std::invalid_argument);
}

// cut at the end of a line, tables and .ts files are still valid
TEST(DataWriters, AFileThatIsCutIsRefused) {
  const TestFolder folder;
  std::vector<Series> all;
  for (const char* id : {"a", "b", "c"})
    all.push_back({.id = id, .times = {0, 1}, .values = {1, 2}, .label = "u"});
  const DataSet data = collect_series({.channels = {"x"}}, all);
  const auto cut = [&](const std::string& file) {
    std::string text = read_file(file);
    text.pop_back();
    std::ofstream(file) << text.substr(0, text.rfind('\n') + 1);
  };
  const std::string table = folder.path("t.csv"), series = folder.path("t.ts"), tables = folder.path("d");
  write_data(data, table);
  expect_same(read_data(table), data);
  cut(table);
  EXPECT_EQ(refusal([&] { read_data(table); }),
            table + ": expected '3 series, 6 rows' as written in " + table +
                ".rows, got '3 series, 5 rows'; the file was cut, or changed later: then remove " + table +
                ".rows");
  std::filesystem::remove(table + ".rows");
  EXPECT_EQ(read_data(table).rows(), 5);
  // within the last number
  write_data(data, table);
  const std::string whole = read_file(table);
  std::ofstream(table) << whole.substr(0, whole.size() - 1);
  EXPECT_NE(refusal([&] { read_data(table); }).find("got '3 series, 6 rows and no end of the last line'"),
            std::string::npos);
  write_data(data, series);
  EXPECT_EQ(read_data(series).samples(), 3);
  cut(series);
  EXPECT_EQ(refusal([&] { read_data(series); }),
            series +
                ": expected '3 series, 6 rows' as written in the comment at its beginning, got '2 series, 4 "
                "rows'; the file was cut, or changed later: then remove the comment at its beginning");
  write_data(data, tables, "csv-folder");
  expect_same(read_data(tables), data);
  cut(tables + "/b.csv");
  EXPECT_NE(refusal([&] { read_data(tables); }).find("labels.csv.rows, got '3 series, 5 rows'"),
            std::string::npos);
}

TEST(DataWriters, AFileThatCannotBeWrittenSaysSo) {
  const TestFolder folder;
  const std::string file = folder.file("file", "");
  EXPECT_EQ(refusal([&] { write_npz(written_set(), file + "/f.npz"); }),
            file + "/f.npz: cannot be written: Not a directory");
}

}  // namespace
}  // namespace fastweights::data

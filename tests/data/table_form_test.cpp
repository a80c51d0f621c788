#include <sstream>

#include "base/files.h"
#include "data/data_support.h"
#include "data/gzip.h"
#include "data/parsers.h"
#include "data/readers.h"
#include "data/zip.h"

/// How cells, rows and columns of tables are read, and come out again.

namespace fastweights::data {
namespace {
using Words = std::vector<std::string>;

DataSet parsed(const std::string& text, const ReadOptions& options = {}) {
  return finished(parse_csv(text, "f", options), options);
}
std::string said(const std::string& text, const ReadOptions& options = {}) {
  return refusal([&] { parsed(text, options); });
}
// the table that a set is written as
std::string written(const DataSet& data) {
  const TestFolder folder;
  write_data(data, folder.path("t.csv"));
  return read_file(folder.path("t.csv"));
}

TEST(TableForm, UsualWordsForMissingValuesAreNoNumbers) {
  const DataSet data = parsed("id,time,x\na,0,1\na,1,N/A\na,2,None\na,3,-\na,4,null\na,5,na\na,6,\na,7,-2\n");
  const double m = kMissing;
  expect_equal(data.values, {1, m, m, m, m, m, m, -2}, "value");
  // as labels they are names
  EXPECT_EQ(parsed("id,time,x,label\na,0,1,none\nb,0,1,some\n").head.classes, (Words{"none", "some"}));
}

TEST(TableForm, OtherWordsForMissingValuesCanBeNamed) {
  const std::string table = "id,time,x,label\na,0,-999,u\na,1,-999.0,u\na,2,off,u\na,3,4,u\nb,0,1,off\n";
  EXPECT_EQ(
      said(table),
      "f:4:5: column 'x': expected a number, got 'off'; if that is a missing value, use --missing 'off'");
  const DataSet data = parsed(table, {.table = {.missing = {"-999", "off"}}});
  expect_equal(data.values, {kMissing, kMissing, kMissing, 4, 1}, "value");
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0, -1}));
}

TEST(TableForm, ADecimalCommaIsFoundWhereCommasDoNotSeparate) {
  const DataSet data = parsed("id,time,x\na,0,1.5\na,0.5,-2e-3\n");
  expect_same(data, parsed("id;time;x\na;0;1,5\na;0,5;-2e-3\n"));
  expect_same(data, parsed("id\ttime\tx\na\t0\t1,5\na\t0,5\t-2e-3\n"));
  expect_same(
      data, parsed("id,time,x\na,0,\"1,5\"\na,\"0,5\",-2e-3\n", {.table = {.decimal = DecimalMark::Comma}}));
}

TEST(TableForm, TablesAreWrittenWithCommasAndDecimalPoints) {
  const TestFolder folder;
  write_data(parsed("id;time;x;note\na;0;1,5;2,5\na;0,5;3;b\n", {.columns = {.ignored = {"note"}}}),
             folder.path("t.csv"));
  EXPECT_EQ(read_file(folder.path("t.csv")), "id,time,x,note\na,0,1.5,\"2,5\"\na,0.5,3,b\n");
}

// in which predictions are written
TEST(TableForm, TheMarksOfATableAreKnown) {
  const auto marks = [](const std::string& text, const ReadOptions& options = {}) {
    const SourceColumns source = parsed(text, options).head.source;
    return std::string{source.separator, source.decimal};
  };
  EXPECT_EQ(marks("id,time,x\na,0,1.5\n"), ",.");
  EXPECT_EQ(marks("id;time;x\na;0;1,5\n"), ";,");
  EXPECT_EQ(marks("id;time;x\na;0;1.5\n"), ";.");
  EXPECT_EQ(marks("id\ttime\tx\na\t0,5\t1\n"), "\t,");
  EXPECT_EQ(marks("id|time|x\na|0|1\n"), "|.");
  EXPECT_EQ(marks("id,time,x\na,0,\"1,5\"\n", {.table = {.decimal = DecimalMark::Comma}}), ",,");
  // of a table per series: a mark that any of them has
  const TestFolder folder;
  folder.file("set/labels.csv", "id\na\nb\n");
  folder.file("set/a.csv", "time;x\n0;1\n");
  folder.file("set/b.csv", "time;x\n0;1,5\n");
  const SourceColumns source = read_data(folder.path("set")).head.source;
  EXPECT_EQ((std::string{source.separator, source.decimal}), ";,");
}

TEST(TableForm, DecimalMarksAreNotMixed) {
  EXPECT_EQ(
      said("id;time;x\na;0;1.5\na;1;2,5\n"),
      "f:3:5: column 'x': expected a number, got '2,5'; use --decimal comma or point to say which one the "
      "numbers have");
  EXPECT_NE(said("id;time;x\na;0;1,5\na;1;2.5\n").find("expected a number, got '2.5'"), std::string::npos);
  EXPECT_NE(said("id;time;x\na;0;1\na;1;1.234,5\n").find("got '1.234,5'"), std::string::npos);
  EXPECT_NE(said("id;time;x\na;0;2\na;1;1,5\n", {.table = {.decimal = DecimalMark::Point}}).find("got '1,5'"),
            std::string::npos);
}

TEST(TableForm, ABarSeparatesColumnsIfNothingElseDoes) {
  expect_same(parsed("id|time|x\na|0|1\n"), parsed("id,time,x\na,0,1\n"));
  EXPECT_EQ(parsed("id,time,x|y\na,0,1\n").head.channels, (Words{"x|y"}));
  const TestFolder folder;
  EXPECT_EQ(read_data(folder.file("t.txt", "id|time|x\na|0|1\n")).head.origin, "csv");
}

TEST(TableForm, AnIndexIsNotAChannel) {
  for (const char* name : {"", "Unnamed: 0"}) {
    const DataSet data = parsed(std::string(name) + ",id,time,x\n0,a,0,1\n1,a,1,2\n");
    EXPECT_EQ(data.head.channels, (Words{"x"}));
    EXPECT_EQ(data.head.unused, (Words{"Unnamed: 0"}));
    EXPECT_EQ(data.unused, (Words{"0", "1"}));
    EXPECT_EQ(data.head.notes,
              (Words{"the column 'Unnamed: 0' is not read: it looks like an index; --columns can "
                     "name it"}));
  }
  EXPECT_EQ(
      parsed("Unnamed: 0,id,time,x\n0,a,0,1\n", {.columns = {.channels = {"Unnamed: 0"}}}).head.channels,
      (Words{"Unnamed: 0"}));
}

TEST(TableForm, RowsOfTheSameTimeAreRefusedOrMerged) {
  const std::string table = "id,time,x,y,k,label\na,0,1,,p,\na,0,3,4,q,u\na,1,5,6,r,v\n";
  EXPECT_EQ(
      said(table, {.columns = {.ignored = {"k"}}}),
      "f:3:3: expected a later time than in the previous row of series 'a', got '0'; --duplicates first (or "
      "mean) makes one row of those with the same time");
  const auto merged = [&](Duplicates duplicates) {
    return parsed(table, {.columns = {.ignored = {"k"}}, .table = {.duplicates = duplicates}});
  };
  const DataSet first = merged(Duplicates::First), mean = merged(Duplicates::Mean);
  expect_equal(first.values, {1, kMissing, 5, 6}, "first");
  expect_equal(mean.values, {2, 4, 5, 6}, "mean");
  EXPECT_EQ(mean.unused, (Words{"p", "r"}));
  // a label that only one of them has is that of the time
  EXPECT_EQ(mean.step_labels, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(first.head.notes, (Words{"1 row left out for the first one of the same time"}));
}

TEST(TableForm, RowsAreSortedIfThatIsAskedFor) {
  const std::string table = "id,time,x,label\na,2,3,w\na,0,1,u\nb,0,7,u\na,1,2,v\n";
  EXPECT_EQ(
      said(table),
      "f:3:3: expected a later time than in the previous row of series 'a', got '0'; --sort sorts the rows "
      "of each series by time");
  const DataSet data = parsed(table, {.table = {.order = UnsortedRows::Sort}});
  EXPECT_EQ(data.ids, (Words{"a", "b"}));
  expect_equal(data.times, {0, 1, 2, 0}, "time");
  expect_equal(data.values, {1, 2, 3, 7}, "value");
  EXPECT_EQ(data.step_labels, (std::vector<int64_t>{0, 1, 2, 0}));
  EXPECT_EQ(data.head.notes, (Words{"sorted the rows of 1 series by time"}));
  // equal times that stood apart
  EXPECT_NE(said("id,time,x\na,1,1\na,0,2\na,1,3\n", {.table = {.order = UnsortedRows::Sort}})
                .find("several rows of series 'a' have the time 1; --duplicates first"),
            std::string::npos);
}

TEST(TableForm, ColumnsCanBeChosenAndTheOthersAreKept) {
  const std::string table = "id,time,x,note,y,z\na,0,1,\"so, so\",2,3\na,1,4,,5,6\n";
  const DataSet chosen = parsed(table, {.columns = {.channels = {"y", "x"}}});
  EXPECT_EQ(chosen.head.channels, (Words{"x", "y"}));
  EXPECT_EQ(chosen.head.unused, (Words{"note", "z"}));
  EXPECT_EQ(chosen.unused, (Words{"so, so", "3", "", "6"}));
  const DataSet others = parsed(table, {.columns = {.ignored = {"note", "z"}}});
  expect_same(chosen, others);
  EXPECT_EQ(select_series(chosen, {0}).unused, chosen.unused);
  EXPECT_EQ(said(table, {.columns = {.channels = {"w"}}}),
            "f:1:1: no column 'w' (a channel); the nearest is 'x'");
  EXPECT_EQ(said(table, {.columns = {.ignored = {"nota"}}}),
            "f:1:1: no column 'nota' (to be ignored); the nearest is 'note'");
  EXPECT_EQ(said(table, {.columns = {.ignored = {"id"}}}),
            "f:1:1: the column 'id' is needed and cannot be ignored");
  EXPECT_TRUE(parsed("id,time,x,label\na,0,1,u\n", {.columns = {.ignored = {"label"}}}).labels.empty());
}

TEST(TableForm, ChannelsOfOtherFormatsCanBeChosen) {
  const TestFolder folder;
  const std::string file = folder.path("t.npz");
  write_data(parsed("id,time,x,y,z\na,0,1,2,3\na,1,4,5,6\n"), file);
  const DataSet data = read_data(file, {.columns = {.ignored = {"y"}}});
  EXPECT_EQ(data.head.channels, (Words{"x", "z"}));
  expect_equal(data.values, {1, 3, 4, 6}, "value");
  EXPECT_EQ(refusal([&] { read_data(file, {.columns = {.channels = {"w"}}}); }),
            "t: no channel 'w'; the nearest is 'x'");
}

TEST(TextColumns, EachValueIsAChannel) {
  const DataSet data = parsed("id,time,sky,x,sex\na,0,sun,1,F\na,1,,2,F\na,2,rain,3,\nb,0,sun,4,M\n",
                              {.columns = {.statics = {"sex"}}});
  EXPECT_EQ(data.head.channels, (Words{"sky=rain", "sky=sun", "x"}));
  const double m = kMissing;
  expect_equal(data.values, {0, 1, 1, m, m, 2, 1, 0, 3, 0, 1, 4}, "value");
  EXPECT_EQ(data.head.statics, (Words{"sex=F", "sex=M"}));
  expect_equal(data.statics, {1, 0, 0, 1}, "static feature");
  ASSERT_EQ(data.head.channel_texts.size(), 1u);
  EXPECT_EQ(data.head.channel_texts[0].values, (Words{"rain", "sun"}));
}

TEST(TextColumns, NumbersAreTextOnlyIfThatIsSaid) {
  EXPECT_EQ(
      said("id,time,x\na,0,one\na,1,2\n"),
      "f:2:5: column 'x': expected a number, got 'one'; if that is a missing value, use --missing 'one'");
  EXPECT_EQ(said("id,time,x\na,0,1\na,1,inf\n").find("f:3:5: column 'x': expected a number, got 'inf'"), 0u);
  const DataSet codes = parsed("id,time,x\na,0,10\na,1,2\na,2,A\n", {.columns = {.texts = {"x"}}});
  EXPECT_EQ(codes.head.channels, (Words{"x=10", "x=2", "x=A"}));
}

TEST(TextColumns, HaveFewValues) {
  std::string table = "id,time,remark\n";
  for (int i = 0; i < 60; ++i) table += "a," + std::to_string(i) + ",remark " + std::to_string(i) + "\n";
  EXPECT_EQ(
      said(table),
      "f:52:6: column 'remark': expected a number, or at most 50 different texts, each of which becomes a "
      "channel, got 'remark 50' as one more; leave the column out with --ignore-columns 'remark'");
  EXPECT_EQ(parsed(table, {.columns = {.ignored = {"remark"}}}).rows(), 60);
}

// cells of two bytes that would take much more
TEST(TextColumns, AndUnusedColumnsAreLimited) {
  const std::string header = "id,time,s0,s1,s2,s3,s4,s5,s6,s7\n";
  std::string texts;
  for (int i = 0; i < 200; ++i) {
    std::string row = "a," + std::to_string(i);
    for (int c = 0; c < 8; ++c) row += std::string(",") + static_cast<char>('A' + (i + c) % 26);
    texts += row + "\n";
  }
  const auto limited = [&](const TableColumns& columns, size_t limit) {
    return refusal([&] { parse_csv(header + texts, "f", {.columns = columns}, limit); });
  };
  EXPECT_EQ(limited({}, 300'000).rfind("f: a channel for each text of its text columns would take", 0), 0u);
  EXPECT_EQ(limited({}, 400'000), "");
  const TableColumns none = {.ignored = {"s1", "s2", "s3", "s4", "s5", "s6", "s7"}};
  EXPECT_EQ(limited(none, 40'000).rfind("f: its unused columns would take", 0), 0u);
  const TestFolder folder;
  folder.file("labels.csv", "id,note\na," + std::string(5000, 'x') + "\n");
  folder.file("a.csv", "time,x\n0,1\n1,1\n2,1\n3,1\n");
  const ReadOptions options = {.columns = {.ignored = {"note"}}, .read_limit = 15'000};
  EXPECT_NE(refusal([&] {
              read_csv_folder(folder.path(""), options);
            }).find("the unused columns of labels.csv would take"),
            std::string::npos);
}

TEST(TextColumns, OfFoldersAreThoseOfAllTables) {
  const TestFolder folder;
  folder.file("labels.csv", "id,label,sex\na,u,F\nb,v,M\n");
  folder.file("a.csv", "time,sky\n0,sun\n1,rain\n");
  folder.file("b.csv", "time,sky\n0,snow\n1,\n2,sun\n");
  const DataSet data = read_csv_folder(folder.path(""), {});
  EXPECT_EQ(data.head.channels, (Words{"sky=rain", "sky=snow", "sky=sun"}));
  const double m = kMissing;
  expect_equal(data.values, {0, 0, 1, 1, 0, 0, 0, 1, 0, m, m, m, 0, 0, 1}, "value");
  EXPECT_EQ(data.head.statics, (Words{"sex=F", "sex=M"}));
  write_data(data, folder.path("again"), "csv-folder");
  expect_same(data, read_csv_folder(folder.path("again"), {}));
}

TEST(TextColumns, AreThoseOfTheTrainingPart) {
  const DataSet data = parsed("id,time,sky,x\na,0,sun,1\nb,0,rain,2\nc,0,snow,3\n");
  const DataSet seen = with_texts_of(data, {0, 1});
  EXPECT_EQ(seen.head.channels, (Words{"sky=rain", "sky=sun", "x"}));
  EXPECT_EQ(seen.head.notes, (Words{"no training series has 'sky=snow', which is left out"}));
  expect_equal(seen.values, {0, 1, 1, 1, 0, 2, 0, 0, 3}, "value");
  const Preparation preparation = fit_preparation(seen, {0, 1}, {});
  EXPECT_EQ(preparation.channels, seen.head.channels);
  // an unknown value, a missing one, and no value that the model knows
  const DataSet other = parsed("id,time,x,sky\nd,0,1,hail\nd,1,2,\nd,2,2,hail\n");
  const DataSet matched = match_data(other, preparation);
  EXPECT_EQ(matched.head.channels, seen.head.channels);
  expect_equal(matched.values, {0, 0, 1, kMissing, kMissing, 2, 0, 0, 2}, "value");
  EXPECT_EQ(
      match_notes(other, preparation),
      (Words{"column 'sky': the value 'hail' is unknown to the model; its channels are 0 there (2 times)"}));
  EXPECT_EQ(refusal([&] { match_data(parsed("id,time,x\nd,0,1\n"), preparation); }),
            "the model was trained with channel 'sky=rain', which '' lacks; expected one of 'x'");
  EXPECT_EQ(refusal([&] { match_data(parsed("id,time,x,sky\nd,0,no,rain\n"), preparation); }),
            "the model was trained with numbers in column 'x', which '' fills with texts such as 'no'");
}

// a file of an earlier version does not say what its training data had
TEST(MatchNotes, SayThatOnlyOneOfDataAndModelHasDates) {
  const DataSet numbers = parsed("id,time,x\na,0,1\na,1,2\n"),
                dates = parsed("id,time,x\na,2024-01-01,1\na,2024-01-02,2\n", {.time_unit = "day"});
  Preparation p = fit_preparation(dates, {0}, {});
  EXPECT_EQ(match_notes(dates, p), Words{});
  EXPECT_EQ(
      match_notes(numbers, p),
      (Words{"the model was trained with dates, and the times of '' are numbers: they are taken in units of "
             "'day', to which the dates were converted"}));
  p = fit_preparation(numbers, {0}, {});
  EXPECT_EQ(match_notes(numbers, p), Words{});
  EXPECT_EQ(
      match_notes(dates, p),
      (Words{"the model was trained with numbers as times, and those of '' are dates: they are converted to "
             "units of 'day'; --time-unit chooses another unit"}));
  p.time_form = TimeForm::Unknown;
  EXPECT_EQ(match_notes(dates, p), Words{});
}

TEST(TablesComeBack, AsTheyWere) {
  const std::string table =
      "sensor,when,sky,x,note,outcome\n"
      "s1,2024-03-31 00:30,sun,1.5,first,up\ns1,2024-03-31 01:00,,2,,up\ns1,2024-03-31 02:15,rain,3,,up\n"
      "s0,2024-03-30 23:00,rain,,\"a, b\",down\n";
  const ReadOptions options = {
      .columns = {.id = "sensor", .time = "when", .label = "outcome", .ignored = {"note"}}};
  const std::string expected =
      "sensor,when,sky,x,note,outcome\n"
      "s1,2024-03-31 00:30,sun,1.5,first,up\ns1,2024-03-31 01:00,,2,,up\ns1,2024-03-31 02:15,rain,3,,up\n"
      "s0,2024-03-30 23:00,rain,,\"a, b\",down\n";
  EXPECT_EQ(written(parsed(table, options)), expected);
  // through a cache, too
  const TestFolder folder;
  const std::string file = folder.file("t.csv", table);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(written(read_cached(file, options, folder.path("cache"))), expected);
}

TEST(TablesComeBack, ThroughArrays) {
  const std::string table =
      "sensor,when,sky,x,sex,outcome\ns1,2024-03-31 00:30,sun,1.5,F,up\n"
      "s1,2024-03-31 01:00,,2,F,up\ns0,2024-03-30 23:00,rain,,M,down\n";
  const DataSet data =
      parsed(table, {.columns = {.id = "sensor", .time = "when", .label = "outcome", .statics = {"sex"}}});
  const TestFolder folder;
  write_data(data, folder.path("t.npz"));
  const DataSet back = read_data(folder.path("t.npz"));
  expect_same(data, back);
  EXPECT_EQ(written(back), written(data));
  EXPECT_EQ(written(back), table);
}

TEST(TablesComeBack, WithDatesInTheirForm) {
  for (const std::string form :
       {"2020-02-29", "2020-02-29T12:30", "2020-02-29 12:30:05", "2020-02-29T12:30:05.250Z",
        "2020-02-29 12:30:05,5", "2020-02-29t12:30:05+02:00", "2020-02-29 12:30-0130",
        "1969-12-31 23:59:59.999999", "2020-02-29 12:30:05.123456789", "2020-02-29T24:00:00", "0001-01-01"}) {
    const DataSet data = parsed("id;time;x\na;" + form + ";1\na;2200-01-01T00:00:00Z;2\n");
    EXPECT_EQ(time_text(data, 0), form);
    EXPECT_EQ(time_text(data, 1), "2200-01-01T00:00:00Z") << form;
  }
  // those of a day on which clocks change
  const DataSet data = parsed(
      "id,time,x\na,2024-03-31T01:30:00+01:00,1\na,2024-03-31T03:00:00+02:00,2\na,2024-03-31T03:30:00+02:00,"
      "3\n");
  EXPECT_EQ(time_text(data, 1), "2024-03-31T03:00:00+02:00");
  EXPECT_EQ(time_text(select_series(data, {0}), 2), "2024-03-31T03:30:00+02:00");
}

TEST(TablesComeBack, WithDatesOfTimesThatAreNotInThem) {
  const auto next = [](const std::string& first, const std::string& unit, double time) {
    return time_text(parsed("id,time,x\na," + first + ",1\n", {.time_unit = unit}).head, time);
  };
  EXPECT_EQ(next("2024-12-31", "day", 1), "2025-01-01");
  EXPECT_EQ(next("2024-12-31", "day", 0.5), "2024-12-31 12:00");
  EXPECT_EQ(next("2024-12-31 23:50", "minute", 10.25), "2025-01-01 00:00:15");
  EXPECT_EQ(next("2024-12-31T23:50:00Z", "hour", 1.0 / 3), "2025-01-01T00:10:00Z");
  EXPECT_EQ(next("2024-12-31T23:50:00+01:00", "second", 0.5), "2024-12-31T23:50:00.500000+01:00");
  EXPECT_EQ(next("12.5", "hour", 3.25), "3.25");
}

// a gzip file of one member
std::string gzip(const std::string& content) {
  constexpr size_t kSum = 14, kPacked = 18, kData = 31;
  const std::string archive = zip({{"m", content}}, Packing::Deflated);
  size_t packed = 0;
  for (size_t i = 0; i < 4; ++i)
    packed += static_cast<size_t>(static_cast<unsigned char>(archive[kPacked + i])) << (8 * i);
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + archive.substr(kData, packed) +
         archive.substr(kSum, 4) + archive.substr(kPacked + 4, 4);
}

TEST(Gzip, TablesAreReadAsIfTheyWereNotCompressed) {
  if (!can_deflate()) GTEST_SKIP() << "this build has no zlib";
  const TestFolder folder;
  const std::string table = "id,time,x\na,0,1\na,1,2\n";
  const DataSet plain = read_data(folder.file("t.csv", table));
  const DataSet packed = read_data(folder.file("t.csv.gz", gzip(table)));
  expect_same(plain, packed);
  EXPECT_EQ(packed.head.name, "t");
  EXPECT_EQ(packed.head.origin, "csv");
  // two members, as after cat, and padding
  expect_same(plain, read_data(folder.file("two.csv.gz", gzip(table.substr(0, 9)) + gzip(table.substr(9)) +
                                                             std::string(5, '\0'))));
  EXPECT_EQ(gunzip(gzip(""), "f"), "");
}

TEST(Gzip, DamagedAndLargeFilesAreRefused) {
  if (!can_deflate()) GTEST_SKIP() << "this build has no zlib";
  const std::string good = gzip("id,time,x\na,0,1\n");
  const auto refused = [](const std::string& bytes) { return refusal([&] { gunzip(bytes, "f"); }); };
  const std::string cut = "f: the compressed data end too early; the file was cut";
  for (size_t size = 2; size < good.size(); ++size) EXPECT_EQ(refused(good.substr(0, size)), cut) << size;
  std::string bad = good;
  bad[bad.size() - 6] ^= 1;
  EXPECT_EQ(refused(bad), "f: the compressed data are damaged");
  EXPECT_EQ(refused(good + "rest"), "f: the compressed data are damaged");
  const TestFolder folder;
  const std::string bomb = folder.file("bomb.csv.gz", gzip(std::string(50'000'000, '\n')));
  EXPECT_EQ(refusal([&] {
              read_data(bomb, {.read_limit = 1'000'000});
            }).rfind(bomb + ": its uncompressed content would take 1 MB, more than the limit of 1 MB", 0),
            0u);
}

}  // namespace
}  // namespace fastweights::data

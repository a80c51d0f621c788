#include "data/text.h"

#include <clocale>
#include <limits>

#include "data/data_support.h"
#include "data/time_axis.h"

namespace fastweights::data {
namespace {

TEST(Text, NumbersAreReadToTheLastBitAndPrintedSo) {
  for (const double x : {0.1, -1.0 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e22, 1e23,
                         9007199254740993.0, 123456.789, -0.0}) {
    const double back = parse_number(exact(x)).value();
    EXPECT_EQ(back, x);
    EXPECT_EQ(std::signbit(back), std::signbit(x));
  }
  EXPECT_EQ(parse_number(" +1.5e2\t").value(), 150);
  EXPECT_EQ(parse_number("1e-400").value(), 0);
  EXPECT_TRUE(std::isinf(parse_number("1e400").value()));
  EXPECT_EQ(parse_number("-1e400").value(), -std::numeric_limits<double>::infinity());
}

TEST(Text, WhatIsNoNumberIsNone) {
  for (const char* text : {"", " ", "1,5", "1.5x", "0x10", "--1", "+-1", "1 2", "e5", ".", "1e", "one"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Text, MissingIsWrittenInManyWays) {
  for (const char* text : {"", " ", "?", "NaN", "nan", "NA", "na", "null", "NULL", " ? "})
    EXPECT_TRUE(is_missing(text)) << text;
  for (const char* text : {"0", "-", "none", "n", "nanny", "??"}) EXPECT_FALSE(is_missing(text)) << text;
}

TEST(Text, EveryEncodingBecomesUtf8) {
  const auto expect = [](const std::string& bytes, const std::string& text, const std::string& encoding) {
    const DecodedText got = decoded_file(bytes);
    EXPECT_EQ(got.text, text);
    EXPECT_EQ(got.encoding, encoding);
  };
  expect("pulse,\xC3\xA9", "pulse,\xC3\xA9", "");
  expect(
      "Gr\xF6\xDF"
      "e",
      "Gr\xC3\xB6\xC3\x9F"
      "e",
      "Windows-1252");
  // the euro sign and the en dash, where Latin-1 has control characters; 0x81 is unused
  expect(
      "\x80 1\x96"
      "2 \x81",
      "\xE2\x82\xAC 1\xE2\x80\x93"
      "2 \xC2\x81",
      "Windows-1252");
  expect(std::string("\xFF\xFE"
                     "a\0\xE9\0\x3D\xD8\x00\xDE",
                     10),
         "a\xC3\xA9\xF0\x9F\x98\x80", "UTF-16");
  expect(std::string("\xFE\xFF\0a\0\xE9", 6), "a\xC3\xA9", "UTF-16");
  // half a pair
  expect(std::string("\xFF\xFE\x3D\xD8", 4), "\xEF\xBF\xBD", "UTF-16");
}

TEST(Text, QuotedTextIsShortAndPrintable) {
  EXPECT_EQ(in_quotes("a\x1b[2J"), "'a\\x1b[2J'");
  EXPECT_EQ(in_quotes(std::string(500'000, 'x')), "'" + std::string(40, 'x') + "...'");
  // not in the middle of a character
  EXPECT_EQ(in_quotes(std::string(39, 'x') + "\xC3\xA9yy"), "'" + std::string(39, 'x') + "...'");
  EXPECT_EQ(in_quotes(std::string(38, 'x') + "\xC3\xA9yy"), "'" + std::string(38, 'x') + "\xC3\xA9...'");
}

TEST(Text, AnInfiniteValueIsNoNumber) {
  EXPECT_EQ(refusal([] {
              number_or_missing("1e999", {"f", 3, 7});
            }),
            "f:3:7: expected a number, got '1e999'");
}

TEST(Text, LinesEndInBothWaysAndTheMarkIsNoText) {
  Lines lines(
      "\xEF\xBB\xBF"
      "a\r\nb\n\nc");
  std::vector<std::string> found;
  while (lines.next()) found.emplace_back(lines.line());
  EXPECT_EQ(found, (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(lines.row(), 4);
}

TEST(Text, FilesThatCannotBeReadSaySo) {
  const TestFolder folder;
  EXPECT_EQ(refusal([&] { read_file(folder.path("none")); }), folder.path("none") + ": no such file");
  EXPECT_EQ(refusal([&] { read_file(folder.path("")); }),
            folder.path("") + ": expected a file, got a folder");
  EXPECT_EQ(read_file(folder.file("empty", "")), "");
}

TEST(Text, ZeroBytesAreNoText) {
  EXPECT_EQ(refusal([] { require_text(std::string_view("ab\nc\0", 5), "f"); }),
            "f:2:2: expected text in UTF-8, got a zero byte; the file may be UTF-16 or an archive");
  EXPECT_EQ(refusal([] { require_text("caf\xE9", "f"); }), "");
}

std::vector<std::vector<std::string>> table(std::string_view text) {
  TableRows rows(text, "t");
  std::vector<std::vector<std::string>> found;
  while (rows.next()) {
    found.emplace_back();
    for (const Field& field : rows.fields()) found.back().emplace_back(field.text);
  }
  return found;
}

TEST(Text, QuotedFieldsHoldSeparatorsQuotesAndLines) {
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(table("a,\"b,c\"\n1 , \"say \"\"hi\"\"\" \r\n\n\"x\ny\",\n"),
            (Rows{{"a", "b,c"}, {"1", "say \"hi\""}, {"x\ny", ""}}));
  EXPECT_EQ(table("a;b,c\n1;2\n"), (Rows{{"a", "b,c"}, {"1", "2"}}));
  EXPECT_EQ(table("a\tb\n\t2\n"), (Rows{{"a", "b"}, {"", "2"}}));
  EXPECT_EQ(table("\"a,b\";c\n"), (Rows{{"a,b", "c"}}));
}

TEST(Text, RowsBehindAQuotedLineEndAreCountedRight) {
  TableRows rows("a,b\n\"x\ny\",2\n3,4\n", "t");
  rows.next();
  rows.next();
  EXPECT_EQ(rows.row(), 2);
  rows.next();
  EXPECT_EQ(rows.row(), 4);
  EXPECT_EQ(rows.fields()[1].column, 3);
}

TEST(Text, BrokenQuotesSayWhere) {
  EXPECT_EQ(refusal([] { table("a,b\n1,\"2\n"); }),
            "t:2:3: expected a closing \" before the end of the file");
  EXPECT_EQ(refusal([] { table("a,b\n1,\"2\"x\n"); }),
            "t:2:3: expected a separator after the closing quote, got text");
}

TEST(Dates, AreInstantsWhateverTheirZone) {
  const double noon = parse_date("2020-02-29T12:00:00Z").value();
  EXPECT_EQ(noon, 1582977600e6);
  for (const char* text : {"2020-02-29 12:00", "2020-02-29T14:00:00+02:00", "2020-02-29T14:00+02",
                           "2020-02-29t07:00:00-0500", "2020-02-29T12:00:00.000z", " 2020-02-29 12:00:00 "})
    EXPECT_EQ(parse_date(text).value_or(-1), noon) << text;
  EXPECT_EQ(parse_date("2020-02-29").value(), noon - 43200e6);
  EXPECT_EQ(parse_date("1970-01-01T00:00:00.1234567").value(), 123457);
  EXPECT_EQ(parse_date("1969-12-31T23:59:59.5Z").value(), -500000);
}

TEST(Dates, ThatDoNotExistAreNone) {
  for (const char* text :
       {"2019-02-29", "2020-13-01", "2020-1-1", "20200101", "2020-01-01T25:00", "2020-01-01T12:60",
        "2020-01-01T12:00:61", "2020-01-01T12", "2020-01-01T12:00:00+", "2020-01-01T12:00:00.Z",
        "2020-01-01X12:00", "2020-01-01T12:00 CET", "2020-01-01T24:00:01", ""})
    EXPECT_FALSE(parse_date(text)) << text;
}

TEST(Dates, ArePrintedAsTheyRead) {
  for (const char* text :
       {"2020-02-29T12:30:05Z", "1969-12-31T23:59:59.500000Z", "1685-01-01T00:00:00.000001Z"})
    EXPECT_EQ(date_text(parse_date(text).value()), text);
}

TEST(Dates, BecomeUnitsSinceTheEarliest) {
  TimeAxis axis;
  std::vector<Series> series(2);
  series[0].times = {axis.read("2020-01-02T00:00:00Z", {"f"}), axis.read("2020-01-02T06:00:00Z", {"f"})};
  series[1].times = {axis.read("2020-01-01T12:00:00Z", {"f"})};
  std::vector<Series> hours = series;
  DataHead head;
  axis.finish(head, series, {});
  EXPECT_EQ(head.time_unit, "second");
  EXPECT_EQ(head.time_zero, "2020-01-01T12:00:00Z");
  EXPECT_EQ(series[0].times, (std::vector<double>{43200, 64800}));
  axis.finish(head, hours, {.time_unit = "hour"});
  EXPECT_EQ(hours[0].times, (std::vector<double>{12, 18}));
  EXPECT_EQ(hours[1].times, (std::vector<double>{0}));
  EXPECT_THROW(axis.finish(head, hours, {.time_unit = "fortnight"}), std::invalid_argument);
}

TEST(Dates, AndNumbersDoNotMix) {
  TimeAxis numbers, dates;
  numbers.read("1.5", {"f", 2, 1});
  EXPECT_EQ(refusal([&] {
              numbers.read("2020-01-01", {"f", 3, 4});
            }),
            "f:3:4: expected a number as in earlier rows, got the date '2020-01-01'");
  dates.read("2020-01-01", {"f", 2, 1});
  EXPECT_EQ(refusal([&] {
              dates.read("7", {"f", 3, 4});
            }),
            "f:3:4: expected a date as in earlier rows, got the number '7'");
  EXPECT_EQ(refusal([&] {
              dates.read("soon", {"f", 3, 4});
            }),
            "f:3:4: expected a time, a number or a date such as 2020-02-29T12:30:00Z, got 'soon'");
  EXPECT_EQ(refusal([&] { dates.join(numbers, "g"); }),
            "g: expected times as dates as in the other files, got numbers");
}

}  // namespace
}  // namespace fastweights::data

#include "fastweights/data.h"

#include "data/data_support.h"
#include "data/npz.h"

namespace fastweights::data {
namespace {

const char* const kTs = "@univariate true\n@classLabel true a\n@data\n1,2:a\n";
const char* const kArff = "@relation r\n@attribute t numeric\n@attribute c {a}\n@data\n1,a\n";
const char* const kCsv = "id,time,x,label\na,0,1,u\n";

TEST(ReadData, FormatsAreFoundByNameAndByContent) {
  const TestFolder folder;
  const std::string npz = npz_bytes({{"values", real_array({1, 2, 1}, {1, 2})}}, Packing::Stored);
  const auto origin = [&](const std::string& name, std::string_view text) {
    return read_data(folder.file(name, text)).head.origin;
  };
  EXPECT_EQ(origin("a.ts", kTs), "ts");
  EXPECT_EQ(origin("a.ARFF", kArff), "arff");
  EXPECT_EQ(origin("a.csv", kCsv), "csv");
  EXPECT_EQ(origin("a.npz", npz), "npz");
  EXPECT_EQ(origin("b", std::string("# comment\n") + kTs), "ts");
  EXPECT_EQ(origin("c.txt", kArff), "arff");
  EXPECT_EQ(origin("d.txt", kCsv), "csv");
  EXPECT_EQ(origin("e.bin", npz), "npz");
}

TEST(ReadData, FoldersAreKnownByWhatIsInThem) {
  const TestFolder folder;
  folder.file("S/S_TEST.ts", kTs);
  EXPECT_EQ(read_data(folder.path("S")).head.origin, "ts");
  folder.file("R/R_TRAIN.arff", kArff);
  EXPECT_EQ(read_data(folder.path("R/")).head.origin, "arff");
  folder.file("d/labels.csv", "id,label\na,u\n");
  folder.file("d/a.csv", "time,x\n0,1\n");
  EXPECT_EQ(read_data(folder.path("d")).head.origin, "csv-folder");
  folder.file("e/a.csv", "time,x\n0,1\n");
  EXPECT_EQ(refusal([&] { read_data(folder.path("e")); }), folder.path("e/labels.csv") + ": no such file");
}

TEST(ReadData, AFormatCanBeAskedFor) {
  const TestFolder folder;
  EXPECT_EQ(read_data(folder.file("a.txt", kTs), {.format = "ts"}).head.origin, "ts");
  EXPECT_THROW(read_data(folder.path("a.txt"), {.format = "tss"}), std::invalid_argument);
}

TEST(ReadData, PathsThatAreNothingSayWhatThereIs) {
  const TestFolder folder;
  const std::string formats =
      "ts, arff, csv, csv-folder, npz, physionet2019, physionet2012, speech, built-in";
  EXPECT_EQ(refusal([] { read_data("spirls:samples=3"); }),
            "spirls:samples=3: no such file, folder or built-in set; the nearest set is 'spirals'; "
            "the formats are " +
                formats);
  EXPECT_EQ(refusal([&] { read_data(folder.path("")); }),
            folder.path("") + ": unknown format; expected one of " + formats + "; set the format explicitly");
  EXPECT_EQ(
      refusal([&] { read_data(folder.file("a.txt", "hello\n")); }),
      folder.path("a.txt") + ": unknown format; expected one of " + formats + "; set the format explicitly");
  EXPECT_EQ(refusal([&] { read_data("none.csv", {.format = "csv"}); }), "none.csv: no such file or folder");
}

TEST(ReadData, EveryFormatHasASentence) {
  const auto formats = data_formats();
  EXPECT_EQ(formats.size(), 9u);
  for (const auto& [name, sentence] : formats) EXPECT_GT(sentence.size(), name.size()) << name;
}

using Words = std::vector<std::string>;

TEST(ReadData, TextThatIsNotUtf8IsConvertedAndNoted) {
  const TestFolder folder;
  const auto read = [&](const std::string& name, std::string_view text, const Words& classes) {
    const DataSet data = read_data(folder.file(name, text));
    EXPECT_EQ(data.head.classes, classes) << name;
    EXPECT_EQ(data.head.notes, (Words{folder.path(name) + ": not UTF-8; read as Windows-1252"}));
    return data;
  };
  const Words classes = {
      "gr\xC3\xBC"
      "n"};
  const DataSet table = read("a.csv",
                             "id,time,\xB0"
                             "C,label\n\xE9,0,1,gr\xFC"
                             "n\n",
                             classes);
  EXPECT_EQ(table.head.channels, (Words{"\xC2\xB0"
                                        "C"}));
  EXPECT_EQ(table.ids, (Words{"\xC3\xA9"}));
  read("a.ts",
       "@classLabel true gr\xFC"
       "n\n@data\n1,2:gr\xFC"
       "n\n",
       classes);
  read("a.arff",
       "@relation r\n@attribute t numeric\n@attribute c {gr\xFC"
       "n}\n@data\n1,gr\xFC"
       "n\n",
       classes);
  const std::string wide(
      "\xFF\xFE"
      "i\0d\0,\0t\0i\0m\0e\0,\0x\0\n\0\xE9\0,\0"
      "1\0,\0"
      "2\0\n\0",
      34);
  const DataSet utf16 = read_data(folder.file("w.csv", wide));
  EXPECT_EQ(utf16.ids, (Words{"\xC3\xA9"}));
  EXPECT_EQ(utf16.head.notes, (Words{folder.path("w.csv") + ": not UTF-8; read as UTF-16"}));
  EXPECT_EQ(read_data(folder.file("u.csv", kCsv)).head.notes, Words{});
}

TEST(ReadData, NamesOfFilesAndArraysBecomeUtf8) {
  const TestFolder folder;
  folder.file("d/labels.csv",
              "id,label\n\xE9,u\nb,gr\xFC"
              "n\n");
  folder.file("d/\xE9.csv", "time,\xB0\n0,1\n");
  folder.file("d/b.csv", "time,\xB0\n0,1\n");
  const DataSet tables = read_data(folder.path("d"));
  EXPECT_EQ(tables.ids, (Words{"\xC3\xA9", "b"}));
  EXPECT_EQ(tables.head.channels, (Words{"\xC2\xB0"}));
  EXPECT_EQ(tables.head.notes, (Words{folder.path("d/labels.csv") +
                                      ": not UTF-8; read as Windows-1252, and 2 other files, too"}));
  // as bytes, numpy stores any encoding
  const std::string header = "{'descr': '|S4', 'fortran_order': False, 'shape': (1,), }\n";
  const std::string ids = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header +
                          "gr\xFC"
                          "n";
  const std::string values = npy_bytes(real_array({1, 2, 1}, {1, 2}));
  const DataSet arrays =
      read_data(folder.file("a.npz", zip({{"values.npy", values}, {"ids.npy", ids}}, Packing::Stored)));
  EXPECT_EQ(arrays.ids, (Words{"gr\xC3\xBC"
                               "n"}));
  EXPECT_EQ(arrays.head.notes, (Words{"the name 'gr\xC3\xBC"
                                      "n' is not UTF-8; read as Windows-1252"}));
}

// names in messages are short and cannot command a terminal
TEST(ReadData, MessagesStayShort) {
  const TestFolder folder;
  const std::string longest(500'000, 'x');
  for (const std::string& text : {"id,time," + longest + "\na,0,1\na,1,b\n", longest + ",time,x\n1,2,3\n",
                                  "id,time,x\n" + longest + ",1,2\n" + longest + ",1,3\n",
                                  std::string("id,time,x\n\x1b[2J,1,2\n\x1b[2J,1,3\n")}) {
    const std::string said = refusal([&] { read_data(folder.file("m.csv", text)); });
    EXPECT_FALSE(said.empty());
    EXPECT_LT(said.size(), 600u) << said.substr(0, 200);
    EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace fastweights::data

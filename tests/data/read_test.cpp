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

}  // namespace
}  // namespace fastweights::data

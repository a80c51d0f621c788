#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "data/data_support.h"
#include "fastweights/data.h"
#include "support/counted_heap.h"

/// What readers hold while they read files that describe much with little text, against their limit.

namespace fastweights {
namespace {

constexpr int64_t kLimit = 4'000'000;

// a set whose files take at most 4 MB, and which would take five times as much without a limit, or more
struct LargeSet {
  std::string name, path;
  std::vector<std::pair<std::string, std::string>> files;
};

std::string repeated(const std::string& before, const std::string& piece, int count,
                     const std::string& after) {
  std::string text = before;
  for (int i = 0; i < count; ++i) text += piece;
  return text + after;
}

std::string numbered(const std::string& before, int count, const std::string& between,
                     const std::string& after) {
  std::string text = before;
  for (int i = 0; i < count; ++i) text += std::to_string(i) + between;
  return text + after;
}

std::vector<LargeSet> large_sets() {
  const std::string columns = numbered("id,time,", 500'000, ",", "x\n");
  std::string rows = "id,time,label\n";
  for (int i = 0; i < 350'000; ++i) rows += "a," + std::to_string(i) + ",\n";
  const std::string outcomes = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death";
  return {
      {"columns of a table", "t.csv", {{"t.csv", columns}}},
      {"fields of a row", "t.csv", {{"t.csv", repeated("id,time,x\na,0,1", ",", 3'000'000, "\n")}}},
      {"rows of a table", "t.csv", {{"t.csv", rows}}},
      {"series of labels.csv", "set", {{"set/labels.csv", numbered("id,label\n", 300'000, ",\n", "")}}},
      {"columns of labels.csv", "set", {{"set/labels.csv", numbered("id,", 500'000, ",", "x\n")}}},
      {"columns of a series", "set", {{"set/labels.csv", "id,label\na,u\n"}, {"set/a.csv", columns}}},
      {"classes of a header",
       "t.ts",
       {{"t.ts", numbered("@classLabel true ", 500'000, " ", "\n@data\n1:1\n")}}},
      {"names of channels", "t.ts", {{"t.ts", repeated("", "# channel 1: x\n", 260'000, "@data\n1\n")}}},
      {"values of a line", "t.ts", {{"t.ts", repeated("@data\n", "1,", 1'900'000, "1\n")}}},
      {"classes in braces",
       "t.arff",
       {{"t.arff", numbered("@attribute x numeric\n@attribute c {", 500'000, ",", "x}\n@data\n1,1\n")}}},
      {"dimensions of a relation",
       "t.arff",
       {{"t.arff", repeated("@attribute d relational\n@attribute x numeric\n@end d\n@data\n'", "1\\n",
                            1'000'000, "1'\n")}}},
      {"columns of a stay", "set", {{"set/p1.psv", std::string(3'900'000, '|') + "\n"}}},
      {"columns of outcomes",
       "set",
       {{"set/set-a/1.txt", "Time,Parameter,Value\n"},
        {"set/Outcomes-a.txt", outcomes + std::string(3'000'000, ',') + "\n"}}},
      {"rows of outcomes",
       "set",
       {{"set/set-a/1.txt", "Time,Parameter,Value\n"},
        {"set/Outcomes-a.txt", numbered(outcomes + "\n", 240'000, ",,,,,0\n", "")}}},
      {"fields of a patient",
       "set",
       {{"set/set-a/1.txt", "Time,Parameter,Value\n" + std::string(3'900'000, ',')}}},
      {"lines of a list of clips",
       "set",
       {{"set/yes/a.wav", "RIFF"}, {"set/testing_list.txt", numbered("", 500'000, "\n", "")}}},
  };
}

TEST(ReaderMemory, LittleTextTakesNoMoreThanTheLimit) {
  if (!testing::heap_is_counted()) GTEST_SKIP() << "memory cannot be counted here";
  for (const LargeSet& set : large_sets()) {
    const TestFolder folder;
    for (const auto& [name, text] : set.files) {
      ASSERT_LE(text.size(), static_cast<size_t>(kLimit)) << set.name;
      folder.file(name, text);
    }
    testing::forget_heap_peak();
    const int64_t before = testing::heap_in_use();
    const std::string error = refusal([&] { read_data(folder.path(set.path), {.read_limit = kLimit}); });
    EXPECT_NE(error, "") << set.name;
    // the text, and what it describes
    EXPECT_LE(testing::heap_peak() - before, 3 * kLimit) << set.name << ": " << error;
  }
}

}  // namespace
}  // namespace fastweights

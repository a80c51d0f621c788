#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/readers.h"
#include "data/scratch_folder.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using testing::ScratchFolder;

const std::string kStayHeader =
    "HR|O2Sat|Temp|SBP|MAP|DBP|Resp|EtCO2|BaseExcess|HCO3|FiO2|pH|PaCO2|SaO2|AST|BUN|Alkalinephos|Calcium|"
    "Chloride|Creatinine|Bilirubin_direct|Glucose|Lactate|Magnesium|Phosphate|Potassium|Bilirubin_total|"
    "TroponinI|Hct|Hgb|PTT|WBC|Fibrinogen|Platelets|Age|Gender|Unit1|Unit2|HospAdmTime|ICULOS|SepsisLabel\n";

// a row with one vital sign and one laboratory value
std::string row(const std::string& heart_rate, const std::string& hour, const std::string& label,
                const std::string& age = "83.14") {
  std::string text = heart_rate;
  for (int i = 0; i < 32; ++i) text += "|NaN";
  return text + "|250|" + age + "|0|NaN|1|-0.03|" + hour + "|" + label + "\n";
}

std::string hours(int first, int last) {
  std::string text = kStayHeader;
  for (int hour = first; hour <= last; ++hour) text += row("60", std::to_string(hour), "0");
  return text;
}

DataSet read(const ScratchFolder& folder, const ReadOptions& options = {}) {
  return read_physionet2019(folder.path(), options);
}

std::string stay_error(const std::string& text) {
  ScratchFolder folder;
  folder.write("p1.psv", text);
  const std::string error = error_message<std::runtime_error>([&] { read(folder); });
  EXPECT_EQ(error.rfind(folder.path("p1.psv") + ":", 0), 0u) << error;
  return error.substr(std::min(error.size(), folder.path("p1.psv:").size()));
}

TEST(PhysioNet2019, RowsAreHours) {
  ScratchFolder folder;
  folder.write("training_setA/p1.psv",
               kStayHeader + row("97", "2", "0") + row("NaN", "3", "0") + row("89.5", "6", "1"));
  const DataSet data = read(folder);
  ASSERT_EQ(data.samples(), 1);
  EXPECT_EQ(data.times, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(data.head.time_unit, "hour");
  ASSERT_EQ(data.channels(), 34);
  EXPECT_EQ(data.head.channels.front(), "HR");
  EXPECT_EQ(data.head.channels.back(), "Platelets");
  const std::vector<double> heart_rates = {NAN, 97, NAN, NAN, NAN, 89.5},
                            platelets = {NAN, 250, 250, NAN, NAN, 250};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(std::isnan(data.values[34 * i]), std::isnan(heart_rates[i])) << i;
    EXPECT_EQ(std::isnan(data.values[34 * i + 33]), std::isnan(platelets[i])) << i;
    EXPECT_TRUE(std::isnan(data.values[34 * i + 1]));
  }
  EXPECT_EQ(data.values[34], 97);
  EXPECT_EQ(data.values[34 * 5], 89.5);
  EXPECT_EQ(data.values[34 * 5 + 33], 250);
  EXPECT_EQ(data.step_labels, (std::vector<int64_t>{-1, 0, 0, -1, -1, 1}));
  EXPECT_EQ(data.labels, std::vector<int64_t>{1});
  EXPECT_EQ(data.head.classes, (std::vector<std::string>{"0", "1"}));
}

TEST(PhysioNet2019, StaticFeaturesKeepWhatIsUnknown) {
  ScratchFolder folder;
  folder.write("p1.psv", hours(1, 3));
  const DataSet data = read(folder);
  EXPECT_EQ(data.head.statics, (std::vector<std::string>{"Age", "Gender", "Unit1", "Unit2", "HospAdmTime"}));
  ASSERT_EQ(data.statics.size(), 5u);
  EXPECT_EQ(data.statics[0], 83.14);
  EXPECT_EQ(data.statics[1], 0);
  EXPECT_TRUE(std::isnan(data.statics[2]));
  EXPECT_EQ(data.statics[3], 1);
  EXPECT_EQ(data.statics[4], -0.03);
}

TEST(PhysioNet2019, HoursAfterThreeDaysAreDropped) {
  ScratchFolder folder;
  folder.write("p1.psv", hours(1, 72) + row("60", "73", "1", "84") + row("60", "74", "1", "85"));
  const DataSet data = read(folder);
  EXPECT_EQ(data.rows(), 72);
  EXPECT_EQ(data.labels, std::vector<int64_t>{0});
  // static features are those of the first line that was too late, as in the published code
  EXPECT_EQ(data.statics[0], 84);
}

TEST(PhysioNet2019, FilesComeInOrderAndShortStaysAreLeftOut) {
  ScratchFolder folder;
  for (const char* name : {"training_setB/p100001", "training_setA/p000010", "training_setA/p000002"})
    folder.write(std::string(name) + ".psv", hours(1, 3));
  folder.write("training_setA/p000003.psv", hours(1, 2));
  folder.write("training_setA/p000004.psv", hours(73, 80));
  folder.write("training_setA/index.html", "no patient");
  const DataSet data = read(folder);
  EXPECT_EQ(data.ids, (std::vector<std::string>{"p000002", "p000010", "p100001"}));
  EXPECT_EQ(data.head.skipped, std::vector<std::string>{"2 files: at most 2 rows"});
}

TEST(PhysioNet2019, AFolderOfWhichNothingIsLeftIsRefused) {
  ScratchFolder folder;
  folder.write("training_setA/p000003.psv", hours(1, 2));
  const std::string error = error_message<std::runtime_error>([&] { read(folder); });
  EXPECT_NE(error.find("training_setA: all files were left out: 1 file: at most 2 rows"), std::string::npos)
      << error;
}

TEST(PhysioNet2019, ManyFilesOnManyThreadsKeepTheirOrder) {
  ScratchFolder folder;
  for (int i = 0; i < 300; ++i) folder.write("p" + std::to_string(1000 + i) + ".psv", hours(1, 3 + i % 7));
  int64_t last = 0;
  const DataSet data = read_physionet2019(folder.path(), {.progress = [&](int64_t done, int64_t all) {
                                            EXPECT_EQ(all, 300);
                                            EXPECT_GE(done, last);
                                            last = done;
                                          }});
  ASSERT_EQ(data.samples(), 300);
  EXPECT_EQ(last, 300);
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(data.ids[static_cast<size_t>(i)], "p" + std::to_string(1000 + i));
    EXPECT_EQ(data.length(i), 3 + i % 7);
  }
}

TEST(PhysioNet2019, BrokenFilesStopOrAreListed) {
  ScratchFolder folder;
  folder.write("p1.psv", hours(1, 3));
  folder.write("p2.psv", kStayHeader + row("6o", "1", "0"));
  folder.write("p3.psv", "");
  EXPECT_EQ(error_message<std::runtime_error>([&] { read(folder); }),
            folder.path("p2.psv:2:1: column 'HR': expected a number, got '6o'"));
  const DataSet data = read(folder, {.skip_bad = true});
  EXPECT_EQ(data.ids, std::vector<std::string>{"p1"});
  EXPECT_EQ(data.head.skipped,
            (std::vector<std::string>{folder.path("p2.psv:2:1: column 'HR': expected a number, got '6o'"),
                                      folder.path("p3.psv:1:1: expected a header, got an empty file")}));
}

TEST(PhysioNet2019, EveryMistakeIsNamed) {
  EXPECT_EQ(stay_error("HR|O2Sat|Tmp\n"), "1:10: expected the column 'Temp', got 'Tmp'");
  EXPECT_EQ(stay_error("HR|O2Sat\n"), "1:1: expected 41 columns, got 2");
  EXPECT_EQ(stay_error(kStayHeader + "60|NaN\n"), "2:1: expected 41 fields, got 2");
  EXPECT_EQ(stay_error(kStayHeader + row("60", "1", "0|7")), "2:1: expected 41 fields, got 42");
  EXPECT_EQ(stay_error(kStayHeader + row("inf", "1", "0")), "2:1: column 'HR': expected a number, got 'inf'");
  EXPECT_EQ(stay_error(kStayHeader + row("", "1", "0")), "2:1: column 'HR': expected a number, got ''");
  EXPECT_EQ(stay_error(kStayHeader + row("60", "0", "0")),
            "2:1: column 'ICULOS': expected an integer of at least 1, got 0");
  EXPECT_EQ(stay_error(kStayHeader + row("60", "NaN", "0")),
            "2:1: column 'ICULOS': expected an integer of at least 1, got nan");
  EXPECT_EQ(stay_error(kStayHeader + row("60", "4", "0") + row("60", "4", "0")),
            "3:1: column 'ICULOS': expected an hour after 4, got 4");
  EXPECT_EQ(stay_error(kStayHeader + row("60", "1", "2")),
            "2:1: column 'SepsisLabel': expected 0 or 1, got 2");
}

TEST(PhysioNet2019, AFolderWithoutPatientsIsAnError) {
  ScratchFolder folder;
  EXPECT_EQ(error_message<std::runtime_error>([&] { read(folder); }),
            folder.path() +
                ": no .psv files below it; the PhysioNet challenge 2019 has a file per patient in "
                "training_setA and training_setB");
  EXPECT_EQ(error_message<std::runtime_error>([&] { read_physionet2019(folder.path("none"), {}); }),
            folder.path("none: no such folder"));
}

TEST(PhysioNet2019, LinesMayEndAsOnWindows) {
  ScratchFolder folder;
  std::string text;
  for (const char c : hours(1, 3)) text += c == '\n' ? "\r\n" : std::string(1, c);
  folder.write("p1.psv", text + "\r\n");
  EXPECT_EQ(read(folder).rows(), 3);
}

}  // namespace
}  // namespace fastweights::data

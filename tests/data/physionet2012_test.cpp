#include <gtest/gtest.h>

#include <cmath>

#include "data/readers.h"
#include "data/scratch_folder.h"
#include "support/support.h"

namespace fastweights::data {
namespace {

using testing::error_message;
using testing::ScratchFolder;

const std::string kHeader = "Time,Parameter,Value\n";
const std::string kDescriptors =
    "00:00,RecordID,132539\n00:00,Age,54\n00:00,Gender,0\n00:00,Height,-1\n00:00,ICUType,4\n00:00,Weight,80."
    "5\n";
const std::string kOutcomes = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n";

double value(const DataSet& data, int64_t row, const std::string& channel) {
  const auto& names = data.head.channels;
  const auto column = std::find(names.begin(), names.end(), channel) - names.begin();
  return data.values.at(static_cast<size_t>(row * data.channels() + column));
}

std::string error_of(const std::string& lines) {
  ScratchFolder folder;
  const std::string file = folder.write("set-a/1.txt", lines);
  const std::string error = error_message<std::runtime_error>([&] { read_physionet2012(folder.path(), {}); });
  EXPECT_EQ(error.rfind(file + ":", 0), 0u) << error;
  return error.substr(std::min(error.size(), file.size() + 1));
}

TEST(PhysioNet2012, TimesAreHoursAndEachTimeIsARow) {
  ScratchFolder folder;
  folder.write("set-a/132539.txt", kHeader + kDescriptors +
                                       "00:00,HR,70\n00:07,GCS,15\n00:07,HR,73\n01:30,HR,-1\n01:30,pH,7.4\n"
                                       "47:45,Temp,36.5\n");
  const DataSet data = read_physionet2012(folder.path(), {});
  ASSERT_EQ(data.rows(), 4);
  EXPECT_EQ(data.channels(), 37);
  EXPECT_EQ(data.times, (std::vector<double>{0, 7 / 60.0, 1.5, 47.75}));
  EXPECT_EQ(data.head.time_unit, "hour");
  EXPECT_EQ(value(data, 0, "HR"), 70);
  EXPECT_EQ(value(data, 1, "HR"), 73);
  EXPECT_EQ(value(data, 1, "GCS"), 15);
  EXPECT_TRUE(std::isnan(value(data, 0, "GCS")));
  // -1 is how the files write a missing value
  EXPECT_TRUE(std::isnan(value(data, 2, "HR")));
  EXPECT_EQ(value(data, 2, "pH"), 7.4);
  EXPECT_EQ(value(data, 3, "Temp"), 36.5);
}

TEST(PhysioNet2012, DescriptorsAreStaticAndTheWeightIsAChannelLater) {
  ScratchFolder folder;
  folder.write("set-a/1.txt", kHeader + kDescriptors + "02:00,Weight,81\n");
  const DataSet data = read_physionet2012(folder.path(), {});
  EXPECT_EQ(data.head.statics, (std::vector<std::string>{"Age", "Gender", "Height", "ICUType", "Weight"}));
  EXPECT_EQ(data.statics[0], 54);
  EXPECT_TRUE(std::isnan(data.statics[2]));
  EXPECT_EQ(data.statics[4], 80.5);
  ASSERT_EQ(data.rows(), 1);
  EXPECT_EQ(data.times[0], 2);
  EXPECT_EQ(value(data, 0, "Weight"), 81);
}

TEST(PhysioNet2012, TheLastOfSeveralValuesAtOneTimeCounts) {
  ScratchFolder folder;
  folder.write("set-a/1.txt", kHeader + "00:10,HR,70\n00:10,Na,140\n00:10,HR,75\n");
  const DataSet data = read_physionet2012(folder.path(), {});
  EXPECT_EQ(data.rows(), 1);
  EXPECT_EQ(value(data, 0, "HR"), 75);
}

TEST(PhysioNet2012, PatientsWithDescriptorsOnlyHaveOneRowWithoutObservations) {
  ScratchFolder folder;
  folder.write("set-a/1.txt", kHeader + kDescriptors);
  const DataSet data = read_physionet2012(folder.path(), {});
  ASSERT_EQ(data.rows(), 1);
  EXPECT_EQ(data.times[0], 0);
  for (const double x : data.values) EXPECT_TRUE(std::isnan(x));
}

TEST(PhysioNet2012, LabelsAreDeathsInHospital) {
  ScratchFolder folder;
  for (const char* name : {"set-b/3", "set-a/2", "set-a/1", "set-c/4"})
    folder.write(std::string(name) + ".txt", kHeader + "00:10,HR,70\n");
  folder.write("Outcomes-a.txt", kOutcomes + "1,6,1,5,-1,0\n2,16,8,8,3,1\n");
  folder.write("Outcomes-b.txt", kOutcomes + "3,6,1,5,-1,1\n");
  const DataSet data = read_physionet2012(folder.path(), {});
  EXPECT_EQ(data.ids, (std::vector<std::string>{"1", "2", "3", "4"}));
  // nothing is known about the last one
  EXPECT_EQ(data.labels, (std::vector<int64_t>{0, 1, 1, -1}));
}

TEST(PhysioNet2012, EveryMistakeIsNamed) {
  EXPECT_EQ(error_of("Time;Parameter\n"), "1:1: expected 'Time,Parameter,Value', got 'Time;Parameter'");
  EXPECT_EQ(error_of(kHeader + "00:10,HR\n"),
            "2:1: expected the fields Time, Parameter and Value, got 2 fields");
  for (const char* time : {"0010", "00:1", "00:60", "a:10", "-1:10", "00:-1", "", "00:100"})
    EXPECT_EQ(error_of(kHeader + time + ",HR,1\n"),
              "2:1: expected a time hh:mm, got '" + std::string(time) + "'");
  EXPECT_EQ(error_of(kHeader + "00:10,HR,x\n"), "2:10: column 'Value': expected a number, got 'x'");
  EXPECT_EQ(error_of(kHeader + "00:10,Tmp,36\n"), "2:7: unknown parameter 'Tmp'; the nearest is 'Temp'");
  EXPECT_EQ(error_of(kHeader + "00:10,HR,70\n00:09,HR,70\n"),
            "3:1: expected a time not earlier than in the previous row, got '00:09'");
}

TEST(PhysioNet2012, MistakesInOutcomesAreNamed) {
  ScratchFolder folder;
  folder.write("set-a/1.txt", kHeader + "00:10,HR,70\n");
  const auto error = [&](const std::string& outcomes) {
    const std::string file = folder.write("Outcomes-a.txt", outcomes);
    return error_message<std::runtime_error>([&] { read_physionet2012(folder.path(), {}); })
        .substr(file.size() + 1);
  };
  EXPECT_EQ(error("RecordID,Death\n"), "1:1: no column 'In-hospital_death'");
  EXPECT_EQ(error(kOutcomes + "1,2\n"), "2:1: expected 6 fields as in the header, got 2");
  EXPECT_EQ(error(kOutcomes + "1,6,1,5,-1,2\n"),
            "2:12: column 'In-hospital_death': expected 0 or 1, got '2'");
}

TEST(PhysioNet2012, AFolderWithoutSetsIsAnError) {
  ScratchFolder folder;
  EXPECT_EQ(
      error_message<std::runtime_error>([&] { read_physionet2012(folder.path(), {}); }),
      folder.path() + ": no patients in set-a, set-b or set-c, the folders of the PhysioNet challenge 2012");
}

}  // namespace
}  // namespace fastweights::data

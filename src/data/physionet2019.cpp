#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "data/files.h"
#include "data/readers.h"
#include "data/text.h"
#include "fastweights/error.h"

namespace fastweights {
namespace {

constexpr size_t kChannels = 34, kStatics = 5, kColumns = 41, kHourColumn = 39, kLabelColumn = 40;
constexpr std::array<const char*, kColumns> kNames = {"HR",        "O2Sat",        "Temp",
                                                      "SBP",       "MAP",          "DBP",
                                                      "Resp",      "EtCO2",        "BaseExcess",
                                                      "HCO3",      "FiO2",         "pH",
                                                      "PaCO2",     "SaO2",         "AST",
                                                      "BUN",       "Alkalinephos", "Calcium",
                                                      "Chloride",  "Creatinine",   "Bilirubin_direct",
                                                      "Glucose",   "Lactate",      "Magnesium",
                                                      "Phosphate", "Potassium",    "Bilirubin_total",
                                                      "TroponinI", "Hct",          "Hgb",
                                                      "PTT",       "WBC",          "Fibrinogen",
                                                      "Platelets", "Age",          "Gender",
                                                      "Unit1",     "Unit2",        "HospAdmTime",
                                                      "ICULOS",    "SepsisLabel"};
// the first three days are kept, and stays of at least three hours
constexpr double kLastHour = 72;
constexpr size_t kLeastRows = 3;

std::vector<std::string> names(size_t first, size_t count) {
  return {kNames.begin() + first, kNames.begin() + first + count};
}

void check_header(const std::string& file, Lines& lines) {
  if (!lines.next()) refuse({file}, "found an empty file, expected a header");
  const std::vector<Field> columns = fields(lines.line(), '|');
  for (size_t i = 0; i < std::min(columns.size(), kColumns); ++i) {
    if (columns[i].text != kNames[i])
      refuse({file, 1, columns[i].column}, "found the column ", in_quotes(columns[i].text), ", expected '",
             kNames[i], "'");
  }
  if (columns.size() != kColumns) refuse({file}, "found ", columns.size(), " columns, expected ", kColumns);
}

// one line of a file into its numbers: [kColumns]
std::array<double, kColumns> row(const std::string& file, const Lines& lines) {
  std::array<double, kColumns> numbers = {};
  const std::string_view line = lines.line();
  size_t begin = 0;
  for (size_t i = 0; i < kColumns; ++i) {
    const size_t end = line.find('|', begin);
    if ((end == std::string_view::npos) != (i + 1 == kColumns))
      refuse({file, lines.row(), 1}, "found ", fields(line, '|').size(), " fields, expected ", kColumns);
    const std::string_view text = line.substr(begin, end - begin);
    const Place place = {file, lines.row(), static_cast<int64_t>(begin) + 1};
    numbers[i] =
        text == "NaN" ? std::numeric_limits<double>::quiet_NaN() : finite_number(text, place, kNames[i]);
    begin = end + 1;
  }
  return numbers;
}

void check_hour_and_label(const Place& place, double hour, double before, double label) {
  if (!(hour >= 1 && hour == std::floor(hour)))
    refuse(place, "found the hour ", hour, " in column 'ICULOS', expected a whole number from 1 on");
  if (hour <= before)
    refuse(place, "found the hour ", hour, " in column 'ICULOS', expected a later one than ", before);
  if (label != 0 && label != 1) refuse(place, "found ", label, " in column 'SepsisLabel', expected 0 or 1");
}

// hours that the file leaves out become rows without observations, so that row = hour
FileSeries read_patient(const std::string& file) {
  const std::string text = whole_file(file);
  Lines lines(without_last_ends(text));
  check_header(file, lines);
  FileSeries found;
  Series& series = found.series;
  series.id = stem(file);
  series.where = file;
  series.label = "0";
  double hour = 0;
  while (lines.next()) {
    const std::array<double, kColumns> numbers = row(file, lines);
    check_hour_and_label({file, lines.row(), 1}, numbers[kHourColumn], hour, numbers[kLabelColumn]);
    // of the last line looked at, also if it is the first that is too late, as in the published code
    series.statics.assign(numbers.begin() + kChannels, numbers.begin() + kChannels + kStatics);
    if (numbers[kHourColumn] > kLastHour) break;
    while (++hour < numbers[kHourColumn]) {
      series.times.push_back(hour);
      series.values.insert(series.values.end(), kChannels, std::numeric_limits<double>::quiet_NaN());
      series.step_labels.emplace_back();
    }
    series.times.push_back(hour);
    series.values.insert(series.values.end(), numbers.begin(), numbers.begin() + kChannels);
    series.step_labels.emplace_back(numbers[kLabelColumn] == 1 ? "1" : "0");
    if (numbers[kLabelColumn] == 1) series.label = "1";
  }
  if (series.times.size() < kLeastRows) found.left_out = "at most 2 rows";
  return found;
}

}  // namespace

DataSet read_physionet2019(const std::string& path, const ReadOptions& options) {
  const std::vector<std::string> files = files_below(path, ".psv");
  if (files.empty())
    throw std::runtime_error(path +
                             ": no .psv files below it; the challenge of 2019 unpacks to training_setA "
                             "and training_setB with one for each patient");
  FolderSeries found = read_files(files, options, read_patient);
  return collect({.name = file_name(path),
                  .origin = "physionet2019",
                  .channels = names(0, kChannels),
                  .statics = names(kChannels, kStatics),
                  .classes = {"0", "1"},
                  .time_unit = "hour",
                  .skipped = std::move(found.skipped)},
                 found.series);
}

}  // namespace fastweights

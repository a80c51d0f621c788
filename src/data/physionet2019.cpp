#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "data/files.h"
#include "data/readers.h"
#include "data/text.h"

namespace fastweights::data {
namespace {

constexpr size_t kVitals = 34, kDemographics = 5, kColumns = 41, kHourColumn = 39, kLabelColumn = 40;
constexpr std::array<const char*, kColumns> kColumnNames = {"HR",        "O2Sat",        "Temp",
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
// the first three days of stays of at least three hours
constexpr double kLastHour = 72;
constexpr size_t kLeastRows = 3;

std::vector<std::string> names(size_t first, size_t count) {
  return {kColumnNames.begin() + first, kColumnNames.begin() + first + count};
}

void check_header(const std::string& file, Lines& lines) {
  if (!lines.next()) refuse({file}, "expected a header, got an empty file");
  const std::vector<Field> columns = fields(lines.line(), '|', kColumns);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].text != kColumnNames[i])
      refuse({file, 1, columns[i].column}, "expected the column '", kColumnNames[i], "', got ",
             in_quotes(columns[i].text));
  }
  const size_t count = field_count(lines.line(), '|');
  if (count != kColumns) refuse({file}, "expected ", kColumns, " columns, got ", count);
}

// the values of one line: [kColumns]
std::array<double, kColumns> row(const std::string& file, const Lines& lines) {
  std::array<double, kColumns> values = {};
  const std::string_view line = lines.line();
  size_t begin = 0;
  for (size_t i = 0; i < kColumns; ++i) {
    const size_t end = line.find('|', begin);
    if ((end == std::string_view::npos) != (i + 1 == kColumns))
      refuse({file, lines.row(), 1}, "expected ", kColumns, " fields, got ", field_count(line, '|'));
    const std::string_view text = line.substr(begin, end - begin);
    const Location location = {file, lines.row(), static_cast<int64_t>(begin) + 1};
    values[i] = text == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                              : finite_number(text, location, kColumnNames[i]);
    begin = end + 1;
  }
  return values;
}

void check_hour_and_label(const Location& location, double hour, double before, double label) {
  if (!(hour >= 1 && hour == std::floor(hour)))
    refuse(location, "column 'ICULOS': expected an integer of at least 1, got ", hour);
  if (hour <= before) refuse(location, "column 'ICULOS': expected an hour after ", before, ", got ", hour);
  if (label != 0 && label != 1) refuse(location, "column 'SepsisLabel': expected 0 or 1, got ", label);
}

// hours that are missing in the file become rows without observations, so that row = hour
FileSeries read_stay(const std::string& file, const ReadOptions& options) {
  const std::string text = read_bytes(file, options);
  Lines lines(without_last_ends(text));
  check_header(file, lines);
  FileSeries found;
  Series& series = found.series;
  series.id = stem(file);
  series.where = file;
  series.label = "0";
  double hour = 0;
  while (lines.next()) {
    const std::array<double, kColumns> values = row(file, lines);
    check_hour_and_label({file, lines.row(), 1}, values[kHourColumn], hour, values[kLabelColumn]);
    // of the last line read, even if that is the first one too late, as in the published code
    series.statics.assign(values.begin() + kVitals, values.begin() + kVitals + kDemographics);
    if (values[kHourColumn] > kLastHour) break;
    while (++hour < values[kHourColumn]) {
      series.times.push_back(hour);
      series.values.insert(series.values.end(), kVitals, std::numeric_limits<double>::quiet_NaN());
      series.step_labels.emplace_back();
    }
    series.times.push_back(hour);
    series.values.insert(series.values.end(), values.begin(), values.begin() + kVitals);
    series.step_labels.emplace_back(values[kLabelColumn] == 1 ? "1" : "0");
    if (values[kLabelColumn] == 1) series.label = "1";
  }
  if (series.times.size() < kLeastRows) found.left_out = "at most 2 rows";
  return found;
}

}  // namespace

DataSet read_physionet2019(const std::string& path, const ReadOptions& options) {
  const std::vector<std::string> files = files_below(path, ".psv");
  if (files.empty())
    throw std::runtime_error(
        path +
        ": no .psv files below it; the PhysioNet challenge 2019 has a file per patient in "
        "training_setA and training_setB");
  FolderSeries found =
      read_files(files, options, [&](const std::string& file) { return read_stay(file, options); });
  return collect_series({.name = file_name(path),
                         .origin = "physionet2019",
                         .channels = names(0, kVitals),
                         .statics = names(kVitals, kDemographics),
                         .classes = {"0", "1"},
                         .time_unit = "hour",
                         .skipped = std::move(found.skipped)},
                        found.series);
}

}  // namespace fastweights::data

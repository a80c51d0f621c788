#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

#include "base/error.h"
#include "base/nearest.h"
#include "data/files.h"
#include "data/readers.h"
#include "data/text.h"

namespace fastweights::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kStatics = 5, kChannels = 37;
// recorded once per patient at 00:00; the weight may be measured again later
constexpr std::array<const char*, kStatics> kStaticNames = {"Age", "Gender", "Height", "ICUType", "Weight"};
constexpr std::array<const char*, kChannels> kChannelNames = {
    "ALP",       "ALT",   "AST",       "Albumin",  "BUN",       "Bilirubin", "Cholesterol", "Creatinine",
    "DiasABP",   "FiO2",  "GCS",       "Glucose",  "HCO3",      "HCT",       "HR",          "K",
    "Lactate",   "MAP",   "Mg",        "MechVent", "NIDiasABP", "NIMAP",     "NISysABP",    "Na",
    "PaCO2",     "PaO2",  "Platelets", "RespRate", "SaO2",      "SysABP",    "Temp",        "TroponinI",
    "TroponinT", "Urine", "WBC",       "Weight",   "pH"};

template <size_t N>
size_t position(const std::array<const char*, N>& names, std::string_view name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// hh:mm in hours
double hours(std::string_view text, const Location& location) {
  int hour = 0, minute = 0;
  const char* end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, hour);
  bool good = error == std::errc() && colon != end && *colon == ':' && end - colon == 3;
  if (good) {
    const auto [last, second_error] = std::from_chars(colon + 1, end, minute);
    good = second_error == std::errc() && last == end && hour >= 0 && minute >= 0 && minute < 60;
  }
  if (!good) refuse(location, "expected a time hh:mm, got ", in_quotes(text));
  return hour + minute / 60.0;
}

// index of a parameter among the channels
size_t channel(std::string_view name, const Location& location) {
  const size_t found = position(kChannelNames, name);
  if (found == kChannels) {
    refuse(location, "unknown parameter ", in_quotes(name),
           suggestion(std::string(name), {kChannelNames.begin(), kChannelNames.end()}));
  }
  return found;
}

void add_line(Series& series, const std::string& file, const Lines& lines) {
  const size_t count = field_count(lines.line(), ',');
  if (count != 3)
    refuse({file, lines.row(), 1}, "expected the fields Time, Parameter and Value, got ", count, " fields");
  const std::vector<Field> parts = fields(lines.line(), ',');
  const auto location = [&](size_t i) { return Location{file, lines.row(), parts[i].column}; };
  const double time = hours(parts[0].text, location(0));
  double value = finite_number(parts[2].text, location(2), "Value");
  const std::string_view name = parts[1].text;
  if (name == "RecordID") return;
  if (value == -1) value = kNaN;
  const size_t feature = position(kStaticNames, name);
  if (feature < kStatics && (time == 0 || name != "Weight")) {
    series.statics[feature] = value;
    return;
  }
  const size_t column = channel(name, location(1));
  if (series.times.empty() || time > series.times.back()) {
    series.times.push_back(time);
    series.values.insert(series.values.end(), kChannels, kNaN);
  } else if (time < series.times.back()) {
    refuse(location(0), "expected a time not earlier than in the previous row, got ",
           in_quotes(parts[0].text));
  }
  // of several values at one time the last one is kept
  series.values[(series.times.size() - 1) * kChannels + column] = value;
}

FileSeries read_patient(const std::string& file, const ReadOptions& options) {
  const std::string text = read_bytes(file, options);
  Lines lines(without_last_ends(text));
  if (!lines.next() || lines.line() != "Time,Parameter,Value")
    refuse({file}, "expected 'Time,Parameter,Value', got ", in_quotes(lines.line()));
  Series series = {.id = stem(file), .statics = std::vector<double>(kStatics, kNaN), .where = file};
  while (lines.next()) add_line(series, file, lines);
  // a patient with descriptors only gets one row at 00:00 without observations
  if (series.times.empty()) {
    series.times = {0};
    series.values.assign(kChannels, kNaN);
  }
  return {.series = std::move(series)};
}

// In-hospital_death of each patient
std::map<std::string, std::string> outcomes(const std::string& file, const ReadOptions& options) {
  const std::string text = read_bytes(file, options);
  Lines lines(without_last_ends(text));
  lines.next();
  const size_t limit = read_limit(options), count = field_count(lines.line(), ',');
  require_parts(count, kNameBytes, limit, file, "its columns");
  const std::vector<Field> header = fields(lines.line(), ',');
  const auto column = [&](std::string_view name) {
    const auto found =
        std::find_if(header.begin(), header.end(), [&](const Field& field) { return field.text == name; });
    if (found == header.end()) refuse({file}, "no column '", name, "'");
    return static_cast<size_t>(found - header.begin());
  };
  const size_t id = column("RecordID"), death = column("In-hospital_death");
  std::map<std::string, std::string> labels;
  while (lines.next()) {
    const size_t found = field_count(lines.line(), ',');
    if (found != count)
      refuse({file, lines.row(), 1}, "expected ", count, " fields as in the header, got ", found);
    const std::vector<Field> parts = fields(lines.line(), ',');
    const auto [text_of_death, location] = parts[death];
    if (text_of_death != "0" && text_of_death != "1")
      refuse({file, lines.row(), location}, "column 'In-hospital_death': expected 0 or 1, got ",
             in_quotes(text_of_death));
    labels[std::string(parts[id].text)] = text_of_death;
    require_parts(labels.size(), kNameBytes, limit, file, "its patients");
  }
  return labels;
}

}  // namespace

DataSet read_physionet2012(const std::string& path, const ReadOptions& options) {
  std::vector<std::string> files;
  std::map<std::string, std::string> labels;
  for (const char* set : {"a", "b", "c"}) {
    const std::string folder = path + "/set-" + set, outcome = path + "/Outcomes-" + set + ".txt";
    if (!fs::is_directory(folder)) continue;
    const std::vector<std::string> patients = files_below(folder, ".txt");
    files.insert(files.end(), patients.begin(), patients.end());
    // without published outcomes the patients of a set have no label
    if (fs::exists(outcome)) labels.merge(outcomes(outcome, options));
  }
  if (files.empty())
    throw std::runtime_error(
        path + ": no patients in set-a, set-b or set-c, the folders of the PhysioNet challenge 2012");
  FolderSeries found =
      read_files(files, options, [&](const std::string& file) { return read_patient(file, options); });
  for (Series& series : found.series) {
    const auto label = labels.find(series.id);
    if (label != labels.end()) series.label = label->second;
  }
  return collect_series({.name = file_name(path),
                         .origin = "physionet2012",
                         .channels = {kChannelNames.begin(), kChannelNames.end()},
                         .statics = {kStaticNames.begin(), kStaticNames.end()},
                         .classes = {"0", "1"},
                         .time_unit = "hour",
                         .skipped = std::move(found.skipped)},
                        found.series);
}

}  // namespace fastweights::data

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

#include "data/files.h"
#include "data/readers.h"
#include "fastweights/error.h"
#include "fastweights/nearest.h"

namespace fastweights {
namespace {

namespace fs = std::filesystem;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kStatics = 5, kChannels = 37;
// written at 00:00 once for each patient; the weight may be measured again later
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
double hours(std::string_view text, const FieldPlace& place) {
  int hour = 0, minute = 0;
  const char* end = text.data() + text.size();
  const auto [colon, error] = std::from_chars(text.data(), end, hour);
  bool good = error == std::errc() && colon != end && *colon == ':' && end - colon == 3;
  if (good) {
    const auto [last, second_error] = std::from_chars(colon + 1, end, minute);
    good = second_error == std::errc() && last == end && hour >= 0 && minute >= 0 && minute < 60;
  }
  if (!good) refuse_field(place, text, "a time hh:mm");
  return hour + minute / 60.0;
}

// column of a parameter among the channels
size_t channel(std::string_view name, const FieldPlace& place) {
  const size_t found = position(kChannelNames, name);
  if (found == kChannels) {
    const std::string close = nearest(std::string(name), {kChannelNames.begin(), kChannelNames.end()});
    refuse_field(place, name, "a parameter of the challenge; the nearest is '" + close + "'");
  }
  return found;
}

void add_line(Series& series, const std::string& file, const FileLines& lines) {
  const auto parts = fields(lines.line(), ',');
  if (parts.size() != 3)
    throw std::runtime_error(
        message(file, ": line ", lines.number(), " has ", parts.size(), " columns, expected 3"));
  const auto place = [&](std::string_view column) { return FieldPlace{file, lines.number(), column}; };
  const double time = hours(parts[0], place("Time"));
  double value = field_number(parts[2], place("Value"));
  if (parts[1] == "RecordID") return;
  if (value == -1) value = kNaN;
  const size_t feature = position(kStaticNames, parts[1]);
  if (feature < kStatics && (time == 0 || parts[1] != "Weight")) {
    series.statics[feature] = value;
    return;
  }
  const size_t column = channel(parts[1], place("Parameter"));
  if (series.times.empty() || time > series.times.back()) {
    series.times.push_back(time);
    series.values.insert(series.values.end(), kChannels, kNaN);
  } else if (time < series.times.back()) {
    refuse_field(place("Time"), parts[0], "times that do not fall");
  }
  // the last of several values at one time counts
  series.values[(series.times.size() - 1) * kChannels + column] = value;
}

FileSeries read_patient(const std::string& file) {
  const std::string text = file_bytes(file);
  FileLines lines(text);
  if (!lines.next() || lines.line() != "Time,Parameter,Value")
    throw std::runtime_error(file + ": line 1 is '" + std::string(lines.line().substr(0, 40)) +
                             "', expected 'Time,Parameter,Value'");
  Series series = {.id = stem(file), .statics = std::vector<double>(kStatics, kNaN), .where = file};
  while (lines.next()) add_line(series, file, lines);
  // some patients have descriptors only: they came at 00:00, when nothing else was observed
  if (series.times.empty()) {
    series.times = {0};
    series.values.assign(kChannels, kNaN);
  }
  return {.series = std::move(series)};
}

// In-hospital_death of each patient
std::map<std::string, std::string> outcomes(const std::string& file) {
  const std::string text = file_bytes(file);
  FileLines lines(text);
  lines.next();
  const auto header = fields(lines.line(), ',');
  const auto column = [&](std::string_view name) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) throw std::runtime_error(message(file, ": line 1 has no column '", name, "'"));
    return static_cast<size_t>(found - header.begin());
  };
  const size_t id = column("RecordID"), death = column("In-hospital_death");
  std::map<std::string, std::string> labels;
  while (lines.next()) {
    const auto parts = fields(lines.line(), ',');
    if (parts.size() != header.size())
      throw std::runtime_error(message(file, ": line ", lines.number(), " has ", parts.size(),
                                       " columns, expected ", header.size()));
    if (parts[death] != "0" && parts[death] != "1")
      refuse_field({file, lines.number(), "In-hospital_death"}, parts[death], "0 or 1");
    labels[std::string(parts[id])] = parts[death];
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
    // the outcomes of a set may be unpublished; its patients then have no label
    if (fs::exists(outcome)) labels.merge(outcomes(outcome));
  }
  if (files.empty())
    throw std::runtime_error(path +
                             ": no patients in set-a, set-b or set-c, as the challenge of 2012 unpacks");
  FolderSeries found = read_files(files, options, read_patient);
  for (Series& series : found.series) {
    const auto label = labels.find(series.id);
    if (label != labels.end()) series.label = label->second;
  }
  return collect({.name = file_name(path),
                  .origin = "physionet2012",
                  .channels = {kChannelNames.begin(), kChannelNames.end()},
                  .statics = {kStaticNames.begin(), kStaticNames.end()},
                  .classes = {"0", "1"},
                  .time_unit = "hour",
                  .skipped = std::move(found.skipped)},
                 found.series);
}

}  // namespace fastweights

#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "report/report.h"

namespace fastweights::report {
namespace {

// names come from data: nothing in them is markup, a cell, or a line of its own
std::string plain(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (std::string_view("\\`*_{}[]<>#|!~$").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string number_text(double value, const std::string& format) {
  if (!std::isfinite(value)) return "";
  char text[32];
  if (format == "percent") {
    std::snprintf(text, sizeof text, "%.1f %%", 100 * value);
  } else {
    std::snprintf(text, sizeof text, "%.4g", value);
  }
  return text;
}

std::string pair_list(const Pairs& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) text += "- " + plain(name) + ": " + plain(value) + "\n";
  return text;
}

std::string row_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string metrics_text(const MetricsTable& metrics) {
  std::vector<std::string> head = {"metric"};
  for (const std::string& column : metrics.columns) head.push_back(plain(column));
  std::string text = row_of(head) + row_of(std::vector<std::string>(head.size(), "---"));
  for (const MetricsRow& row : metrics.rows) {
    std::vector<std::string> cells = {plain(row.name)};
    for (size_t i = 0; i < row.values.size(); ++i) {
      cells.push_back(number_text(row.values[i], row.format));
      if (!row.intervals || i >= row.intervals->size() || (*row.intervals)[i].size() != 2) continue;
      const Numbers& interval = (*row.intervals)[i];
      cells.back() += message(" (", number_text(interval[0], row.format), " to ",
                              number_text(interval[1], row.format), ")");
    }
    text += row_of(cells);
  }
  return text;
}

std::string settings_text(const std::vector<ChangedSetting>& changed) {
  if (changed.empty()) return "All settings have their defaults.\n";
  std::string text = row_of({"setting", "value", "default"}) + row_of({"---", "---", "---"});
  for (const ChangedSetting& setting : changed)
    text += row_of({plain(setting.key), plain(setting.value), plain(setting.usual)});
  return text;
}

std::string bullets(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "- " + plain(sentence) + "\n";
  return text;
}

std::string code(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + printable(line) + "\n";
  return text;
}

constexpr const char* kUse =
    "The model is intended for series that resemble its training data: the same channels in the same units, "
    "from the "
    "same kind of source, with similar lengths and gaps. It matches channels and static features by name and "
    "scales "
    "them as in training.\n";
constexpr const char* kLimits =
    "- The metrics describe the parts of the data above. They do not transfer to other sources, periods or "
    "devices "
    "without a new evaluation.\n"
    "- Series far outside of the training data, such as other units or much longer gaps, still get an "
    "answer.\n"
    "- The importance of observations in the report describes the model. It does not show causes in the "
    "data.\n"
    "- Differences between groups of series were not examined. Effects on people need an examination by "
    "those who use "
    "the model.\n";

}  // namespace

std::string model_card(const ReportData& data) {
  std::string text = message("# Model card: ", plain(data.title), "\n\nA model for ", plain(data.subtitle),
                             ", trained with fastweights. Finished ", data.finished, ".\n");
  const auto section = [&](const char* title, const std::string& content) {
    if (!content.empty()) text += message("\n## ", title, "\n\n", content);
  };
  section("Data", pair_list(data.data));
  section("Run", pair_list(data.facts));
  section("Intended use", kUse);
  section("Limits", kLimits);
  section("Architecture", pair_list(data.model.summary));
  section("Settings that differ from the defaults", settings_text(data.model.changed));
  section("Metrics", metrics_text(data.metrics));
  section("What the curves say", bullets(data.advice));
  section("Notes", data.warnings ? bullets(*data.warnings) : "");
  section("How to use it", code(data.commands));
  section("Licence", "To be stated by the owner of the model and the data.\n");
  return text;
}

}  // namespace fastweights::report

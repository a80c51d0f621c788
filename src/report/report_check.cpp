#include "report/report_check.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace fastweights {
namespace {

using Json = ReportJson;

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::invalid_argument(message("[report] ", parts...));
}

enum class Kind { Text, Number, NumberOrNull, Whole, Switch, Value };

const char* words(Kind kind) {
  switch (kind) {
    case Kind::Text:
      return "a text";
    case Kind::Number:
      return "a number";
    case Kind::NumberOrNull:
      return "a number or null";
    case Kind::Whole:
      return "a whole number from 1 on";
    case Kind::Switch:
      return "true or false";
    case Kind::Value:
      return "a text, a number or null";
  }
  return "";
}

bool is(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::Text:
      return value.is_string();
    case Kind::Number:
      return value.is_number();
    case Kind::NumberOrNull:
      return value.is_number() || value.is_null();
    case Kind::Whole:
      return value.is_number_integer() && value.get<int64_t>() > 0;
    case Kind::Switch:
      return value.is_boolean();
    case Kind::Value:
      return value.is_string() || value.is_number() || value.is_null();
  }
  return false;
}

// "?" behind a key: it may be absent, and what is below it then, too; "[]": the same for every element of the
// list
struct Expected {
  const char* path;
  Kind kind;
};

constexpr std::array kExpected = {
    Expected{"version?", Kind::Whole},
    Expected{"title", Kind::Text},
    Expected{"subtitle?", Kind::Text},
    Expected{"finished?", Kind::Text},
    Expected{"facts[][]", Kind::Value},
    Expected{"headline?[].name", Kind::Text},
    Expected{"headline?[].value", Kind::Value},
    Expected{"headline?[].format?", Kind::Text},
    Expected{"curves?[].title", Kind::Text},
    Expected{"curves?[].x_label", Kind::Text},
    Expected{"curves?[].y_label?", Kind::Text},
    Expected{"curves?[].log?", Kind::Switch},
    Expected{"curves?[].best_x?", Kind::NumberOrNull},
    Expected{"curves?[].lines[].name", Kind::Text},
    Expected{"curves?[].lines[].x[]", Kind::Number},
    Expected{"curves?[].lines[].y[]", Kind::NumberOrNull},
    Expected{"metrics?.columns[]", Kind::Text},
    Expected{"metrics?.rows[].name", Kind::Text},
    Expected{"metrics?.rows[].format?", Kind::Text},
    Expected{"metrics?.rows[].values[]", Kind::Value},
    Expected{"confusion?.part?", Kind::Text},
    Expected{"confusion?.classes[]", Kind::Text},
    Expected{"confusion?.counts[][]", Kind::Number},
    Expected{"roc?.part?", Kind::Text},
    Expected{"roc?.auc", Kind::NumberOrNull},
    Expected{"roc?.false_positive[]", Kind::Number},
    Expected{"roc?.true_positive[]", Kind::Number},
    Expected{"roc?.threshold?.value", Kind::Number},
    Expected{"roc?.threshold?.false_positive", Kind::Number},
    Expected{"roc?.threshold?.true_positive", Kind::Number},
    Expected{"calibration?.part?", Kind::Text},
    Expected{"calibration?.predicted[]", Kind::NumberOrNull},
    Expected{"calibration?.observed[]", Kind::NumberOrNull},
    Expected{"calibration?.count[]", Kind::Number},
    Expected{"scatter?.part?", Kind::Text},
    Expected{"scatter?.target?", Kind::Text},
    Expected{"scatter?.true[]", Kind::NumberOrNull},
    Expected{"scatter?.predicted[]", Kind::NumberOrNull},
    Expected{"mistakes?[].id", Kind::Text},
    Expected{"mistakes?[].true", Kind::Value},
    Expected{"mistakes?[].predicted", Kind::Value},
    Expected{"mistakes?[].probability?", Kind::NumberOrNull},
    Expected{"mistakes?[].loss?", Kind::NumberOrNull},
    Expected{"model?.summary?[][]", Kind::Value},
    Expected{"model?.parameters?[][]", Kind::Value},
    Expected{"model?.config?", Kind::Text},
    Expected{"fast_weights?.id", Kind::Text},
    Expected{"fast_weights?.of?", Kind::Text},
    Expected{"fast_weights?.label?", Kind::Value},
    Expected{"fast_weights?.predicted?", Kind::Value},
    Expected{"fast_weights?.time_unit?", Kind::Text},
    Expected{"fast_weights?.channels[]", Kind::Text},
    Expected{"fast_weights?.times[]", Kind::Number},
    Expected{"fast_weights?.values[][]", Kind::NumberOrNull},
    Expected{"fast_weights?.frames.times[]", Kind::Number},
    Expected{"fast_weights?.frames.layers[].heads", Kind::Whole},
    Expected{"fast_weights?.frames.layers[].rows", Kind::Whole},
    Expected{"fast_weights?.frames.layers[].columns", Kind::Whole},
    Expected{"fast_weights?.frames.layers[].w[][]", Kind::NumberOrNull},
    Expected{"fast_weights?.outputs?.names[]", Kind::Text},
    Expected{"fast_weights?.outputs?.times[]", Kind::Number},
    Expected{"fast_weights?.outputs?.values[][]", Kind::NumberOrNull},
    Expected{"fast_weights?.norms?.names[]", Kind::Text},
    Expected{"fast_weights?.norms?.values[][]", Kind::NumberOrNull},
    Expected{"warnings?[]", Kind::Text},
    Expected{"commands?[]", Kind::Text},
};

std::string below(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// follows what is left of an expected path from a value on; path is where that value stands
void check(const Json& value, std::string_view left, Kind kind, const std::string& path) {
  if (left.empty()) {
    if (!is(value, kind)) fail("'", path, "' must be ", words(kind));
    return;
  }
  if (left.starts_with("[]")) {
    if (!value.is_array()) fail("'", path, "' must be a list");
    for (size_t i = 0; i < value.size(); ++i) {
      check(value[i], left.substr(2), kind, path + "[" + std::to_string(i) + "]");
    }
    return;
  }
  if (left.front() == '.') left.remove_prefix(1);
  const std::string_view key = left.substr(0, left.find_first_of(".?["));
  left.remove_prefix(key.size());
  const bool optional = left.starts_with('?');
  if (optional) left.remove_prefix(1);
  if (!value.is_object()) fail("'", path.empty() ? "the report" : path, "' must be an object");
  const auto found = value.find(key);
  if (found == value.end()) {
    if (optional) return;
    fail("the key '", below(path, key), "' is missing");
  }
  check(*found, left, kind, below(path, key));
}

void same_length(const Json& list, const std::string& path, size_t expected, const std::string& reason) {
  if (list.size() == expected) return;
  fail("'", path, "' must have ", expected, " elements, ", reason, ", got ", list.size());
}

void same_lengths(const Json& lists, const std::string& path, size_t expected, const std::string& reason) {
  for (size_t i = 0; i < lists.size(); ++i) {
    same_length(lists[i], path + "[" + std::to_string(i) + "]", expected, reason);
  }
}

// a list under one key, as long as that under another
void like(const Json& part, const std::string& path, const char* key, const char* other) {
  same_length(part.at(key), below(path, key), part.at(other).size(), "as '" + below(path, other) + "'");
}

void not_empty(const Json& list, const std::string& path) {
  if (list.empty()) fail("'", path, "' must not be empty");
}

void ascending(const Json& list, const std::string& path) {
  for (size_t i = 1; i < list.size(); ++i) {
    if (list[i].get<double>() < list[i - 1].get<double>()) fail("'", path, "' must ascend");
  }
}

void check_fast_weights(const Json& view) {
  const std::string path = "fast_weights", frames = path + ".frames";
  like(view, path, "values", "times");
  same_lengths(view.at("values"), path + ".values", view.at("channels").size(), "one per channel");
  ascending(view.at("times"), path + ".times");
  const Json& times = view.at("frames").at("times");
  not_empty(times, frames + ".times");
  ascending(times, frames + ".times");
  const Json& layers = view.at("frames").at("layers");
  not_empty(layers, frames + ".layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string w = frames + ".layers[" + std::to_string(i) + "].w";
    const Json& layer = layers[i];
    same_length(layer.at("w"), w, times.size(), "one per time");
    const size_t numbers =
        layer.at("heads").get<size_t>() * layer.at("rows").get<size_t>() * layer.at("columns").get<size_t>();
    same_lengths(layer.at("w"), w, numbers, "heads x rows x columns");
  }
  if (view.contains("outputs")) {
    const Json& outputs = view.at("outputs");
    like(outputs, path + ".outputs", "values", "times");
    ascending(outputs.at("times"), path + ".outputs.times");
    same_lengths(outputs.at("values"), path + ".outputs.values", outputs.at("names").size(), "one per name");
  }
  if (view.contains("norms")) {
    const Json& norms = view.at("norms");
    same_length(norms.at("values"), path + ".norms.values", times.size(), "as '" + frames + ".times'");
    same_lengths(norms.at("values"), path + ".norms.values", norms.at("names").size(), "one per name");
  }
}

void check_results(const Json& report) {
  if (report.contains("metrics")) {
    const Json& metrics = report.at("metrics");
    for (size_t i = 0; i < metrics.at("rows").size(); ++i) {
      same_length(metrics.at("rows")[i].at("values"), "metrics.rows[" + std::to_string(i) + "].values",
                  metrics.at("columns").size(), "one per column");
    }
  }
  if (report.contains("confusion")) {
    const Json& confusion = report.at("confusion");
    like(confusion, "confusion", "counts", "classes");
    same_lengths(confusion.at("counts"), "confusion.counts", confusion.at("classes").size(), "one per class");
  }
  if (report.contains("roc")) like(report.at("roc"), "roc", "true_positive", "false_positive");
  if (report.contains("calibration")) {
    like(report.at("calibration"), "calibration", "observed", "predicted");
    like(report.at("calibration"), "calibration", "count", "predicted");
  }
  if (report.contains("scatter")) like(report.at("scatter"), "scatter", "predicted", "true");
}

}  // namespace

void check_report(const Json& report) {
  for (const Expected& expected : kExpected) check(report, expected.path, expected.kind, "");
  if (report.contains("version") && report.at("version") != 1) {
    fail("'version' must be 1, got ", report.at("version").dump());
  }
  same_lengths(report.at("facts"), "facts", 2, "a name and a value");
  if (report.contains("curves")) {
    for (size_t i = 0; i < report.at("curves").size(); ++i) {
      const Json& lines = report.at("curves")[i].at("lines");
      for (size_t j = 0; j < lines.size(); ++j) {
        const std::string path = "curves[" + std::to_string(i) + "].lines[" + std::to_string(j) + "]";
        like(lines[j], path, "y", "x");
        ascending(lines[j].at("x"), path + ".x");
      }
    }
  }
  check_results(report);
  if (report.contains("model")) {
    const Json& model = report.at("model");
    if (model.contains("summary"))
      same_lengths(model.at("summary"), "model.summary", 2, "a name and a value");
    if (model.contains("parameters")) {
      same_lengths(model.at("parameters"), "model.parameters", 3, "a name, a shape and a count");
    }
  }
  if (report.contains("fast_weights")) check_fast_weights(report.at("fast_weights"));
}

}  // namespace fastweights

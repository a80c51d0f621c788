#include "report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace fastweights {
namespace {

using ReportJson = nlohmann::ordered_json;

ReportJson sample(const std::string& name) {
  std::ifstream in(FASTWEIGHTS_REPORT_SAMPLES "/" + name);
  return ReportJson::parse(in);
}

// classification, with all parts but "scatter", "calendar" and "runs", and the samples with those
ReportJson everything() {
  ReportJson report = sample("sample.json");
  report["runs"] = sample("runs.json")["runs"];
  for (const char* part : {"scatter", "calendar"}) report[part] = sample("regression.json")[part];
  return report;
}

std::string page_of(const ReportJson& report) {
  return report::page(report.at("title").get<std::string>(), report.dump());
}

// what the page's script will read
ReportJson embedded(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return ReportJson::parse(page.substr(from, page.find("</script>", from) - from));
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Report, ThePageHoldsTheDataAsTheyWereGiven) {
  for (const ReportJson& report : {everything(), sample("regression.json")}) {
    const std::string page = page_of(report);
    EXPECT_EQ(embedded(page), report);
    EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
    EXPECT_NE(page.find("<title>" + report["title"].get<std::string>() + "</title>"), std::string::npos);
  }
}

TEST(Report, ThePageNeedsNothingElse) {
  const std::string page = page_of(everything());
  for (const char* outside : {"https://", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "{{"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  // the name of SVG is no address
  EXPECT_EQ(count(page, "http://"), count(page, "http://www.w3.org/2000/svg"));
}

TEST(Report, HostileTextStaysText) {
  const std::string end = "</script><script>alert(1)</script>", image = "<img src=x onerror=alert(1)>",
                    comment = "<!--<script>";
  ReportJson report = everything();
  const std::string harmless = page_of(report);
  report["title"] = end;
  report["facts"].push_back({image, comment});
  report["mistakes"][0]["id"] = image;
  report["fast_weights"]["id"] = end;
  report["runs"]["runs"][0]["href"] = image;
  report["fast_weights"]["channels"][0] = image;
  report["confusion"]["classes"][0] = comment;
  report["model"]["config"] = end;
  const std::string page = page_of(report);
  EXPECT_EQ(embedded(page), report);
  EXPECT_EQ(count(page, "<script"), count(harmless, "<script"));
  EXPECT_EQ(count(page, "</script"), count(harmless, "</script"));
  EXPECT_EQ(count(page, "<img"), 0);
  EXPECT_EQ(count(page, "<!--"), 0);
}

TEST(Report, MarksOfTheTemplateInTheDataAreLeftAlone) {
  ReportJson report = {{"title", "{{data}} {{nonsense}}"}, {"facts", ReportJson::array()}};
  const std::string page = page_of(report);
  EXPECT_NE(page.find("<title>{{data}} {{nonsense}}</title>"), std::string::npos);
  EXPECT_EQ(embedded(page), report);
}

// keys with dots, the first element standing for those of a list of objects
void add_keys(const ReportJson& json, const std::string& where, std::set<std::string>& keys) {
  if (json.is_array() && !json.empty() && json[0].is_object()) add_keys(json[0], where + "[]", keys);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(where + "." + key);
    add_keys(value, where + "." + key, keys);
  }
}

// every part once
report::ReportData all_parts() {
  report::ReportData data = {.title = "title", .facts = {{"a", "b"}}};
  data.headline = {{"name", 0.5, "percent"}, {"name", int64_t{7}, "integer"}};
  data.calendar = {1709240400000, 3600000};
  data.runs = {"test", {"accuracy"}, {"percent"}, {{"seed-1", "seed-1/report.html", {1}}}};
  data.curves = {{.title = "Loss", .lines = {{"train", {1, 2}, {0.5, std::nan("")}}}}};
  data.advice = {"text"};
  data.data = {{"path", "p"}};
  data.metrics = {{"test"}, {{.name = "accuracy", .values = {1}, .intervals = {{{0.9, 1}}}}}};
  data.confusion = {.classes = {"a", "b"}, .counts = {{1, 2}, {3, 4}}};
  data.classes = {.note = "some", .rows = {{.name = "a"}}};
  data.roc.emplace();
  data.class_roc = {.note = "some", .curves = {{.name = "a"}}};
  data.calibration.emplace();
  data.scatter.emplace();
  data.forecasts = {{{.id = "s1", .low = {{1}}, .high = {{2}}}}};
  data.mistakes = std::vector<report::Mistake>{{.id = "s1"}};
  data.model = {{{"rule", "oja"}}, {{"model.rule", "oja", "delta_pre"}}, {{"head.bias", "[2]", 2}}, "{}"};
  data.fast_weights.emplace();
  data.fast_weights->frames.layers = {{1, 2, 2, {{1, 2, 3, 4}}}};
  data.fast_weights->label = data.fast_weights->predicted = "a";
  data.fast_weights->importance = {.of = "a", .values = {{1}}};
  data.series = {*data.fast_weights};
  data.warnings = std::vector<std::string>{"one"};
  data.commands = {"fastweights"};
  return data;
}

TEST(Report, TheStructuresHaveTheKeysOfTheSamples) {
  std::set<std::string> ours, samples;
  add_keys(ReportJson::parse(report::to_json(all_parts())), "", ours);
  add_keys(everything(), "", samples);
  // of fast weights or a state; a scale that runs do not choose
  ours.erase(".fast_weights.of");
  ours.erase(".series[].of");
  samples.erase(".curves[].log");
  EXPECT_EQ(ours, samples);
}

TEST(Report, TheStructuresAreWrittenAsThePageReadsThem) {
  const ReportJson json = ReportJson::parse(report::to_json(all_parts()));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["facts"], ReportJson::parse(R"([["a", "b"]])"));
  EXPECT_EQ(json["calendar"], ReportJson::parse(R"({"zero": 1709240400000.0, "unit": 3600000.0})"));
  EXPECT_EQ(json["headline"][0]["value"], 0.5);
  EXPECT_TRUE(json["headline"][1]["value"].is_number_integer());
  EXPECT_EQ(json["curves"][0]["lines"][0]["x"], ReportJson::parse("[1, 2]"));
  EXPECT_TRUE(json["curves"][0]["lines"][0]["y"][1].is_null());
  EXPECT_EQ(json["confusion"]["counts"], ReportJson::parse("[[1, 2], [3, 4]]"));
  EXPECT_EQ(json["model"]["parameters"], ReportJson::parse(R"([["head.bias", "[2]", 2]])"));
  EXPECT_EQ(json["fast_weights"]["frames"]["layers"][0]["w"], ReportJson::parse("[[1.0, 2.0, 3.0, 4.0]]"));
}

TEST(Report, AbsentPartsHaveNoKey) {
  const ReportJson json = ReportJson::parse(report::to_json(report::ReportData{.title = "title"}));
  for (const char* key : {"confusion", "roc", "calibration", "scatter", "mistakes", "fast_weights",
                          "warnings", "runs", "calendar"})
    EXPECT_FALSE(json.contains(key)) << key;
}

}  // namespace
}  // namespace fastweights

#include "report/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace fastweights {
namespace {

using Json = nlohmann::ordered_json;

Json sample(const std::string& name) {
  std::ifstream in(FASTWEIGHTS_REPORT_SAMPLES "/" + name);
  return Json::parse(in);
}

// classification, with all parts but "scatter", and regression, with that one
Json everything() {
  Json report = sample("sample.json");
  report["scatter"] = sample("regression.json")["scatter"];
  return report;
}

std::string complaint(const Json& report) {
  try {
    report_page(report.dump());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// what the page's script will read
Json embedded(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Report, ThePageHoldsTheDataAsTheyWereGiven) {
  for (const Json& report : {everything(), sample("regression.json")}) {
    const std::string page = report_page(report.dump());
    EXPECT_EQ(embedded(page), report);
    EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
    EXPECT_NE(page.find("<title>" + report["title"].get<std::string>() + "</title>"), std::string::npos);
  }
}

TEST(Report, ThePageNeedsNothingElse) {
  const std::string page = report_page(everything().dump());
  for (const char* outside : {"https://", " src=", "url(", "@import", "fetch(", "XMLHttpRequest", "{{"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  // the name of SVG is no address
  EXPECT_EQ(count(page, "http://"), count(page, "http://www.w3.org/2000/svg"));
}

TEST(Report, HostileTextStaysText) {
  const std::string end = "</script><script>alert(1)</script>", image = "<img src=x onerror=alert(1)>",
                    comment = "<!--<script>";
  Json report = everything();
  const std::string harmless = report_page(report.dump());
  report["title"] = end;
  report["facts"].push_back({image, comment});
  report["mistakes"][0]["id"] = image;
  report["fast_weights"]["id"] = end;
  report["fast_weights"]["channels"][0] = image;
  report["confusion"]["classes"][0] = comment;
  report["model"]["config"] = end;
  const std::string page = report_page(report.dump());
  EXPECT_EQ(embedded(page), report);
  EXPECT_EQ(count(page, "<script"), count(harmless, "<script"));
  EXPECT_EQ(count(page, "</script"), count(harmless, "</script"));
  EXPECT_EQ(count(page, "<img"), 0);
  EXPECT_EQ(count(page, "<!--"), 0);
}

TEST(Report, MarksOfTheTemplateInTheDataAreLeftAlone) {
  Json report = {{"title", "{{data}} {{nonsense}}"}, {"facts", Json::array()}};
  const std::string page = report_page(report.dump());
  EXPECT_NE(page.find("<title>{{data}} {{nonsense}}</title>"), std::string::npos);
  EXPECT_EQ(embedded(page), report);
}

TEST(Report, EveryPartButTitleAndFactsMayBeLeftOut) {
  const Json report = everything();
  Json least = report;
  for (const auto& [key, value] : report.items()) {
    Json without = report;
    without.erase(key);
    const bool needed = key == "title" || key == "facts";
    EXPECT_EQ(complaint(without), needed ? "[report] the key '" + key + "' is missing" : "");
    if (!needed) least.erase(key);
  }
  EXPECT_EQ(least.size(), 2u);
  EXPECT_EQ(complaint(least), "");
}

TEST(Report, AMissingKeyIsNamedWithItsPlace) {
  const std::vector<std::pair<const char*, const char*>> needed = {
      {"/headline/1/value", "headline[1].value"},
      {"/curves/0/title", "curves[0].title"},
      {"/curves/2/lines", "curves[2].lines"},
      {"/curves/0/lines/1/y", "curves[0].lines[1].y"},
      {"/metrics/columns", "metrics.columns"},
      {"/metrics/rows/3/values", "metrics.rows[3].values"},
      {"/confusion/counts", "confusion.counts"},
      {"/roc/auc", "roc.auc"},
      {"/roc/threshold/value", "roc.threshold.value"},
      {"/calibration/count", "calibration.count"},
      {"/scatter/predicted", "scatter.predicted"},
      {"/mistakes/4/id", "mistakes[4].id"},
      {"/fast_weights/channels", "fast_weights.channels"},
      {"/fast_weights/frames", "fast_weights.frames"},
      {"/fast_weights/frames/times", "fast_weights.frames.times"},
      {"/fast_weights/frames/layers/1/heads", "fast_weights.frames.layers[1].heads"},
      {"/fast_weights/outputs/names", "fast_weights.outputs.names"},
      {"/fast_weights/norms/values", "fast_weights.norms.values"},
  };
  for (const auto& [pointer, name] : needed) {
    Json report = everything();
    const Json::json_pointer place(pointer);
    ASSERT_TRUE(report.contains(place)) << pointer;
    report.at(place.parent_pointer()).erase(place.back());
    EXPECT_EQ(complaint(report), std::string("[report] the key '") + name + "' is missing");
  }
}

TEST(Report, WhatMayBeAbsentWithinAPartMayBe) {
  Json report = everything();
  for (const char* pointer : {"/headline/0/format", "/curves/0/log", "/curves/0/best_x", "/confusion/part",
                              "/roc/threshold", "/mistakes/0/loss", "/model/summary", "/model/parameters",
                              "/model/config", "/fast_weights/label", "/fast_weights/predicted",
                              "/fast_weights/time_unit", "/fast_weights/outputs", "/fast_weights/norms"}) {
    const Json::json_pointer place(pointer);
    ASSERT_TRUE(report.contains(place)) << pointer;
    report.at(place.parent_pointer()).erase(place.back());
    EXPECT_EQ(complaint(report), "") << pointer;
  }
}

struct Wrong {
  const char* pointer;
  Json value;
  const char* complaint;
};

TEST(Report, WhatCannotBeDrawnIsNamed) {
  const std::vector<Wrong> cases = {
      {"/version", 2, "'version' must be 1, got 2"},
      {"/title", 7, "'title' must be a text"},
      {"/facts", "none", "'facts' must be a list"},
      {"/facts/0", {"one"}, "'facts[0]' must have 2 elements, a name and a value, got 1"},
      {"/metrics", Json::array(), "'metrics' must be an object"},
      {"/curves/0/lines/0/x",
       {3, 4},
       "'curves[0].lines[0].y' must have 2 elements, as 'curves[0].lines[0].x'"},
      {"/curves/0/lines/0/x/0", 99, "'curves[0].lines[0].x' must ascend"},
      {"/curves/0/lines/0/y/1", "inf", "'curves[0].lines[0].y[1]' must be a number or null"},
      {"/metrics/rows/1/values",
       {1.0},
       "'metrics.rows[1].values' must have 3 elements, one per column, got 1"},
      {"/confusion/counts/2", {1, 2}, "'confusion.counts[2]' must have 9 elements, one per class, got 2"},
      {"/roc/true_positive", {0, 1}, "'roc.true_positive' must have 21 elements"},
      {"/calibration/count", {5}, "'calibration.count' must have 10 elements"},
      {"/scatter/predicted", {5}, "'scatter.predicted' must have 160 elements"},
      {"/model/parameters/0", {"w", "[2]"}, "'model.parameters[0]' must have 3 elements"},
      {"/fast_weights/values/3", {1.0}, "'fast_weights.values[3]' must have 12 elements, one per channel"},
      {"/fast_weights/times/0", 99.0, "'fast_weights.times' must ascend"},
      {"/fast_weights/frames/times", Json::array(), "'fast_weights.frames.times' must not be empty"},
      {"/fast_weights/frames/layers", Json::array(), "'fast_weights.frames.layers' must not be empty"},
      {"/fast_weights/frames/layers/0/heads", 0, "layers[0].heads' must be a whole number from 1 on"},
      {"/fast_weights/frames/layers/0/rows", 9,
       "layers[0].w[0]' must have 288 elements, heads x rows x columns"},
      {"/fast_weights/outputs/times", {0.0}, "'fast_weights.outputs.values' must have 1 elements"},
      {"/fast_weights/norms/names", {"all"}, "'fast_weights.norms.values[0]' must have 1 elements"},
  };
  for (const Wrong& wrong : cases) {
    Json report = everything();
    const Json::json_pointer place(wrong.pointer);
    ASSERT_TRUE(report.contains(place)) << wrong.pointer;
    report.at(place) = wrong.value;
    EXPECT_NE(complaint(report).find(wrong.complaint), std::string::npos)
        << wrong.pointer << ": " << complaint(report);
  }
}

TEST(Report, WhatIsNotJsonIsRefused) {
  for (const char* text : {"", "{\"title\":", "{\"title\": \"\xff\"}"}) {
    EXPECT_THROW(report_page(text), std::invalid_argument) << text;
  }
  EXPECT_THROW(report_page("[]"), std::invalid_argument);
}

}  // namespace
}  // namespace fastweights

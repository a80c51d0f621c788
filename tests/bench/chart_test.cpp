#include "chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "chart_axis.h"

namespace fastweights::bench {
namespace {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // up to the first element inside
  size_t depth;
};

// all elements in their order; complains about what is not XML
std::vector<Element> elements(const std::string& xml) {
  const std::regex tag(R"re(<(/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<>]*")*)(/?)>([^<>]*))re"),
      attribute(R"re( ([a-zA-Z0-9-]+)="([^"]*)")re"), entity("&(amp|lt|gt|quot);");
  std::vector<Element> found;
  std::vector<std::string> open;
  size_t end = 0;
  for (std::sregex_iterator match(xml.begin(), xml.end(), tag), none; match != none; ++match) {
    EXPECT_EQ(static_cast<size_t>(match->position()), end) << "between two tags: " << xml.substr(end, 80);
    end = static_cast<size_t>(match->position() + match->length());
    const std::string name = (*match)[2], list = (*match)[3], text = (*match)[5];
    EXPECT_EQ(std::regex_replace(list + text, entity, "").find('&'), std::string::npos) << match->str();
    if ((*match)[1] == "/") {
      if (open.empty() || open.back() != name) throw std::runtime_error("nothing to close: " + name);
      open.pop_back();
      continue;
    }
    Element element{name, {}, text, open.size()};
    for (std::sregex_iterator one(list.begin(), list.end(), attribute); one != none; ++one) {
      EXPECT_TRUE(element.attributes.emplace((*one)[1], (*one)[2]).second) << "twice: " << one->str();
    }
    found.push_back(element);
    if ((*match)[4] != "/") open.push_back(name);
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(end, xml.size());
  return found;
}

std::vector<Element> named(const std::string& xml, const std::string& name, const std::string& kind = "") {
  std::vector<Element> found;
  for (const Element& element : elements(xml)) {
    const auto own = element.attributes.find("class");
    if (element.name == name && (kind.empty() || (own != element.attributes.end() && own->second == kind)))
      found.push_back(element);
  }
  return found;
}

double value(const Element& element, const std::string& key) { return std::stod(element.attributes.at(key)); }

std::vector<ChartPoint> pixels(const Element& polyline) {
  std::vector<ChartPoint> result;
  std::istringstream in(polyline.attributes.at("points"));
  char comma;
  for (ChartPoint point; in >> point.x >> comma >> point.y;) result.push_back(point);
  return result;
}

// pixels are written with two decimals
void expect_near(const ChartPoint& got, const ChartPoint& expected) {
  EXPECT_NEAR(got.x, expected.x, 0.005);
  EXPECT_NEAR(got.y, expected.y, 0.005);
}

// share of the frame's width from the left and of its height from below
ChartPoint in_frame(const Element& frame, double x, double y) {
  return {value(frame, "x") + x * value(frame, "width"),
          value(frame, "y") + (1 - y) * value(frame, "height")};
}

LineChart chart_of(std::vector<ChartPoint> points) {
  return {.title = "title", .lines = {{.name = "line", .points = std::move(points)}}};
}

std::string complaint(const std::vector<LineChart>& panels) {
  try {
    svg(panels);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

const double kNan = std::nan(""), kInfinity = std::numeric_limits<double>::infinity();

TEST(Chart, PointsAreWhereTheAxesSay) {
  // the axes are 0 .. 10 and 0 .. 100
  const std::string text = svg({chart_of({{0, 100}, {5, 25}, {10, 0}})});
  const Element frame = named(text, "rect", "frame").at(0);
  const std::vector<ChartPoint> got = pixels(named(text, "polyline").at(0));
  ASSERT_EQ(got.size(), 3u);
  expect_near(got[0], in_frame(frame, 0, 1));
  expect_near(got[1], in_frame(frame, 0.5, 0.25));
  expect_near(got[2], in_frame(frame, 1, 0));
}

TEST(Chart, LogarithmicAxesHaveEqualRatiosAtEqualDistances) {
  LineChart chart = chart_of({{1, 1e-2}, {10, 1e3}, {100, 1e8}});
  chart.x.scale = chart.y.scale = AxisScale::Log;
  const std::string text = svg({chart});
  const Element frame = named(text, "rect", "frame").at(0);
  const std::vector<ChartPoint> got = pixels(named(text, "polyline").at(0));
  ASSERT_EQ(got.size(), 3u);
  // ten powers of ten in steps of two
  for (size_t i = 0; i < 3; ++i) expect_near(got[i], in_frame(frame, 0.5 * i, 0.5 * i));
}

TEST(Chart, TickLabelsStandAtTheirTicks) {
  const std::string text = svg({chart_of({{0, 0}, {4, 40}})});
  const Element frame = named(text, "rect", "frame").at(0);
  const std::vector<Element> labels = named(text, "text", "x");
  ASSERT_EQ(labels.size(), 5u);
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_EQ(labels[i].text, std::to_string(i));
    EXPECT_NEAR(value(labels[i], "x"), in_frame(frame, 0.25 * i, 0).x, 0.005);
  }
  EXPECT_EQ(named(text, "text", "y").back().text, "40");
}

TEST(Chart, PanelsStandSideBySide) {
  const LineChart chart = chart_of({{0, 0}, {1, 1}});
  const std::vector<Element> one = elements(svg({chart})), two = elements(svg({chart, chart}));
  EXPECT_EQ(value(two[0], "width"), 2 * value(one[0], "width"));
  EXPECT_EQ(value(two[0], "height"), value(one[0], "height"));
  const std::vector<Element> frames = named(svg({chart, chart}), "rect", "frame");
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_NEAR(value(frames[1], "x") - value(frames[0], "x"), value(one[0], "width"), 0.01);
  EXPECT_EQ(value(frames[1], "y"), value(frames[0], "y"));
}

TEST(Chart, NothingLeavesThePage) {
  LineChart chart = {.title = "many", .x = {"input"}, .y = {"output"}};
  for (int i = 0; i < 7; ++i) {
    chart.lines.push_back({.name = "a name of some length " + std::to_string(i),
                           .points = {{0, -123456.0 * i}, {1e-3, 1e5}},
                           .markers = LineMarkers::Dots});
  }
  const std::string text = svg({chart});
  const std::vector<Element> all = elements(text);
  const double width = value(all[0], "width"), height = value(all[0], "height");
  const double frame = value(named(text, "rect", "frame").at(0), "y");
  for (const Element& element : named(text, "text")) {
    EXPECT_GT(value(element, "x"), 0);
    EXPECT_LT(value(element, "x"), width);
    EXPECT_GT(value(element, "y"), 10);
    EXPECT_LT(value(element, "y"), height);
  }
  // names are in the legend once each, above the frame, in rows that do not touch
  const std::vector<Element> names = named(text, "text", "legend");
  ASSERT_EQ(names.size(), 7u);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i].text, chart.lines[i].name);
    EXPECT_LT(value(names[i], "y"), frame);
    for (size_t j = 0; j < i; ++j) {
      const bool apart = std::abs(value(names[i], "y") - value(names[j], "y")) >= 12 ||
                         std::abs(value(names[i], "x") - value(names[j], "x")) > 24 * 6;
      EXPECT_TRUE(apart) << names[i].text << " and " << names[j].text;
    }
  }
}

TEST(Chart, ThePageIsWhite) {
  const std::vector<Element> all = elements(svg({chart_of({{0, 0}, {1, 1}})}));
  EXPECT_EQ(all[0].name, "svg");
  EXPECT_EQ(all[0].attributes.at("xmlns"), "http://www.w3.org/2000/svg");
  EXPECT_EQ(all[2].name, "rect");
  EXPECT_EQ(all[2].attributes.at("fill"), "#ffffff");
  EXPECT_EQ(value(all[2], "width"), value(all[0], "width"));
  EXPECT_EQ(value(all[2], "height"), value(all[0], "height"));
}

TEST(Chart, TextIsEscaped) {
  LineChart chart = {.title = "a < b & \"c\" > d\x01", .x = {"<script>"}, .y = {"é²"}};
  chart.lines = {{.name = "</text>", .points = {{0, 0}, {1, 1}}}};
  const std::string text = svg({chart});
  std::vector<std::string> texts;
  for (const Element& element : named(text, "text")) texts.push_back(element.text);
  for (const char* expected :
       {"a &lt; b &amp; &quot;c&quot; &gt; d ", "&lt;script&gt;", "é²", "&lt;/text&gt;"}) {
    EXPECT_EQ(std::count(texts.begin(), texts.end(), expected), 1) << expected;
  }
}

TEST(Chart, PointsWithoutAPlaceInterruptTheLine) {
  const std::vector<ChartPoint> points = {{0, 1}, {1, 2}, {2, kNan}, {3, 1}, {4, 2}, {kInfinity, 1}, {5, 3}};
  const std::string text = svg({chart_of(points)});
  const std::vector<Element> pieces = named(text, "polyline");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pixels(pieces[0]).size(), 2u);
  EXPECT_EQ(pixels(pieces[1]).size(), 2u);
  // the last point stands alone and is seen nevertheless
  EXPECT_EQ(named(text, "circle").size(), 1u);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);

  LineChart chart = chart_of({{1, 1}, {2, 10}, {3, 0}, {4, -1}, {5, 10}, {6, 1}});
  chart.y.scale = AxisScale::Log;
  EXPECT_EQ(named(svg({chart}), "polyline").size(), 2u);
}

TEST(Chart, LinesAreToldApart) {
  LineChart chart = {.title = "lines"};
  for (int i = 0; i < 4; ++i)
    chart.lines.push_back({.points = {{0, 1.0 * i}, {1, 1.0 * i}}, .markers = LineMarkers::Dots});
  chart.lines[1].stroke = LineStroke::Dashed;
  const std::string text = svg({chart});
  std::set<std::string> colours;
  for (const Element& element : named(text, "g")) {
    const auto fill = element.attributes.find("fill");
    if (fill != element.attributes.end()) colours.insert(fill->second);
  }
  EXPECT_EQ(colours.size(), 4u);
  const std::vector<Element> lines = named(text, "polyline");
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lines[i].attributes.contains("stroke-dasharray"), i == 1);
  // two discs, and the three other shapes twice each
  EXPECT_EQ(named(text, "circle").size(), 2u);
  EXPECT_EQ(named(text, "polygon").size(), 6u);
  // lines without names have no legend
  EXPECT_TRUE(named(text, "text", "legend").empty());
}

TEST(Chart, WithoutPointsThereIsNoChart) {
  EXPECT_EQ(complaint({}), "[chart] there is no chart to draw");
  EXPECT_EQ(complaint({chart_of({})}), "[chart] \"title\" has no point to draw");
  EXPECT_EQ(complaint({chart_of({{kNan, 1}, {1, kInfinity}})}), "[chart] \"title\" has no point to draw");
  LineChart many = {.title = "many", .lines = std::vector<ChartLine>(8, {.points = {{0, 0}}})};
  EXPECT_EQ(complaint({many}), "[chart] \"many\" has 8 lines; there are colours for 7");
}

TEST(Chart, TheNumbersAreThoseOfTheLines) {
  LineChart chart = chart_of({{1, 0.1}, {2, kNan}});
  chart.x.label = "epoch";
  const nlohmann::json expected = nlohmann::json::parse(R"([{"title": "title", "x": "epoch", "y": "",
    "lines": [{"name": "line", "x": [1.0, 2.0], "y": [0.1, null]}]}])");
  EXPECT_EQ(nlohmann::json::parse(nlohmann::json::parse(chart_json({chart})).dump()), expected);
}

std::vector<std::string> labels(double low, double high, AxisScale scale) {
  std::vector<std::string> result;
  for (const Tick& tick : make_ticks(low, high, scale).ticks) result.push_back(tick.label);
  return result;
}

using Labels = std::vector<std::string>;

TEST(ChartTicks, LinearOnesAreRoundNumbers) {
  const AxisScale linear = AxisScale::Linear;
  EXPECT_EQ(labels(0, 1, linear), (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(-3, 2.5, linear), (Labels{"-3", "-2", "-1", "0", "1", "2", "3"}));
  EXPECT_EQ(labels(0.013, 0.028, linear), (Labels{"0.010", "0.015", "0.020", "0.025", "0.030"}));
  EXPECT_EQ(labels(0, 12000, linear), (Labels{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}));
  EXPECT_EQ(labels(0, 2e7, linear), (Labels{"0", "5×10⁶", "10⁷", "1.5×10⁷", "2×10⁷"}));
}

TEST(ChartTicks, LogarithmicOnesArePowersOfTen) {
  const AxisScale log = AxisScale::Log;
  EXPECT_EQ(labels(1e-2, 1e3, log), (Labels{"0.01", "0.1", "1", "10", "100", "1,000"}));
  EXPECT_EQ(labels(64, 8192, log), (Labels{"50", "100", "200", "500", "1,000", "2,000", "5,000", "10,000"}));
  EXPECT_EQ(labels(3e-9, 2e3, log), (Labels{"10⁻⁹", "10⁻⁷", "10⁻⁵", "10⁻³", "10⁻¹", "10¹", "10³", "10⁵"}));
}

TEST(ChartTicks, ASingleNumberStandsInTheMiddle) {
  const AxisTicks linear = make_ticks(10, 10, AxisScale::Linear), zero = make_ticks(0, 0, AxisScale::Linear),
                  log = make_ticks(10, 10, AxisScale::Log);
  EXPECT_NEAR(linear.position(10), 0.5, 0.2);
  EXPECT_NEAR(zero.position(0), 0.5, 1e-12);
  EXPECT_NEAR(log.position(10), 0.5, 1e-12);
}

TEST(ChartTicks, CoverAllNumbersWithFewTicks) {
  for (const AxisScale scale : {AxisScale::Linear, AxisScale::Log}) {
    for (const double low : {1e-299, 3e-7, 0.1, 1.0, 9.99, 123456.0, 7e290}) {
      for (const double factor : {1.0, 1 + 1e-12, 1.001, 1.9, 37.0, 1e4, 1e9}) {
        const double high = low * factor;
        const AxisTicks axis = make_ticks(low, high, scale);
        EXPECT_GE(axis.ticks.size(), 2u) << low << " " << high;
        EXPECT_LE(axis.ticks.size(), 9u) << low << " " << high;
        EXPECT_GE(axis.position(low), -1e-8) << low << " " << high;
        EXPECT_LE(axis.position(high), 1 + 1e-8) << low << " " << high;
        for (size_t i = 1; i < axis.ticks.size(); ++i) {
          EXPECT_LT(axis.ticks[i - 1].value, axis.ticks[i].value);
          EXPECT_NE(axis.ticks[i - 1].label, axis.ticks[i].label) << low << " " << high;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fastweights::bench

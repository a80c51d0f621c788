#include "chart.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "chart_axis.h"
#include "report/escape.h"

namespace fastweights::bench {
namespace {

// Okabe and Ito's colours, which colour-blind readers can tell apart, without the yellow one
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#000000"};

// pixels
constexpr double kWidth = 480, kPlotHeight = 270, kRight = 26, kTitle = 36, kLegendRow = 20, kBottom = 52;
constexpr double kLegendSample = 30, kLegendGap = 18;
constexpr double kLetter = 6.8;  // width of a letter, on the generous side

std::string number(double value) {
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 2);
  std::string result(text.data(), end.ptr);
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result == "-0" ? "0" : result;
}

double width_of(const std::string& text) {
  // bytes that go on with a letter do not count
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return kLetter * static_cast<double>(letters);
}

struct Box {
  double x, y, width, height;
};

struct LegendEntry {
  size_t line;
  double x, y;  // from the legend's left upper corner
};

struct Layout {
  AxisTicks x, y;
  std::vector<LegendEntry> legend;
  double left;  // of the frame
  double legend_height;
};

// a point on the page
struct Place {
  double x, y;
};

class Panel {
 public:
  Panel(const LineChart& chart, const Layout& layout, const Box& frame)
      : chart_(chart), layout_(layout), frame_(frame) {}

  std::string draw() const;

 private:
  double x_of(double value) const { return frame_.x + frame_.width * layout_.x.position(value); }
  double y_of(double value) const { return frame_.y + frame_.height * (1 - layout_.y.position(value)); }
  std::string axes() const;
  std::string labels() const;
  std::string legend() const;
  std::string line(size_t index) const;

  const LineChart& chart_;
  const Layout& layout_;
  Box frame_;
};

std::string text_at(const Place& at, const std::string& text, const std::string& attributes) {
  return message("<text x=\"", number(at.x), "\" y=\"", number(at.y), "\" ", attributes, ">", escaped(text),
                 "</text>\n");
}

std::string stroke_of(const ChartLine& line) {
  return line.stroke == LineStroke::Dashed ? " stroke-dasharray=\"7 4\"" : "";
}

// a disc, a square, a diamond or a triangle
std::string marker(size_t shape, const Place& at) {
  const auto polygon = [&](const std::vector<Place>& corners) {
    std::string points;
    for (const Place& corner : corners)
      points += (points.empty() ? "" : " ") + number(at.x + corner.x) + "," + number(at.y + corner.y);
    return "<polygon points=\"" + points + "\"/>\n";
  };
  switch (shape % 4) {
    case 0:
      return message("<circle cx=\"", number(at.x), "\" cy=\"", number(at.y), "\" r=\"3.5\"/>\n");
    case 1:
      return polygon({{-3, -3}, {3, -3}, {3, 3}, {-3, 3}});
    case 2:
      return polygon({{0, -4.5}, {4.5, 0}, {0, 4.5}, {-4.5, 0}});
    default:
      return polygon({{0, -4.5}, {4, 3}, {-4, 3}});
  }
}

std::string Panel::axes() const {
  std::string text = "<g stroke=\"#dddddd\">\n";
  const double bottom = frame_.y + frame_.height, right = frame_.x + frame_.width;
  for (const Tick& tick : layout_.x.ticks) {
    const std::string x = number(x_of(tick.value));
    text += message("<line x1=\"", x, "\" y1=\"", number(frame_.y), "\" x2=\"", x, "\" y2=\"", number(bottom),
                    "\"/>\n");
  }
  for (const Tick& tick : layout_.y.ticks) {
    const std::string y = number(y_of(tick.value));
    text += message("<line x1=\"", number(frame_.x), "\" y1=\"", y, "\" x2=\"", number(right), "\" y2=\"", y,
                    "\"/>\n");
  }
  return text + message("</g>\n<rect class=\"frame\" x=\"", number(frame_.x), "\" y=\"", number(frame_.y),
                        "\" width=\"", number(frame_.width), "\" height=\"", number(frame_.height),
                        "\" fill=\"none\" stroke=\"#888888\"/>\n");
}

std::string Panel::labels() const {
  std::string text;
  const double bottom = frame_.y + frame_.height;
  for (const Tick& tick : layout_.x.ticks)
    text += text_at({x_of(tick.value), bottom + 17}, tick.label, "class=\"x\" text-anchor=\"middle\"");
  for (const Tick& tick : layout_.y.ticks)
    text += text_at({frame_.x - 6, y_of(tick.value) + 4}, tick.label, "class=\"y\" text-anchor=\"end\"");
  text += text_at({frame_.x + frame_.width / 2, bottom + 38}, chart_.x.label, "text-anchor=\"middle\"");
  // turned around its own middle
  const Place middle = {frame_.x - layout_.left + 18, frame_.y + frame_.height / 2};
  return text + text_at(middle, chart_.y.label,
                        message("text-anchor=\"middle\" transform=\"rotate(-90 ", number(middle.x), " ",
                                number(middle.y), ")\""));
}

std::string Panel::legend() const {
  std::string text;
  for (const LegendEntry& entry : layout_.legend) {
    const ChartLine& line = chart_.lines[entry.line];
    const double x = frame_.x + entry.x, y = frame_.y - layout_.legend_height + entry.y + 6;
    text +=
        message("<g fill=\"", kColours[entry.line], "\" stroke=\"", kColours[entry.line], "\"><line x1=\"",
                number(x), "\" y1=\"", number(y), "\" x2=\"", number(x + kLegendSample - 6), "\" y2=\"",
                number(y), "\" stroke-width=\"2\"", stroke_of(line), "/>");
    if (line.markers == LineMarkers::Dots) text += marker(entry.line, {x + (kLegendSample - 6) / 2, y});
    text += "</g>\n" + text_at({x + kLegendSample, y + 4}, line.name, "class=\"legend\"");
  }
  return text;
}

std::string Panel::line(size_t index) const {
  const ChartLine& line = chart_.lines[index];
  // pieces between points that have no place
  std::vector<std::vector<Place>> pieces(1);
  for (const ChartPoint& point : line.points) {
    if (drawable(point.x, chart_.x.scale) && drawable(point.y, chart_.y.scale)) {
      pieces.back().push_back({x_of(point.x), y_of(point.y)});
    } else {
      pieces.emplace_back();
    }
  }
  std::string text = message("<g fill=\"", kColours[index], "\" stroke=\"", kColours[index], "\">\n");
  for (const std::vector<Place>& piece : pieces) {
    if (piece.size() > 1) {
      text += "<polyline points=\"";
      for (const Place& at : piece) text += number(at.x) + "," + number(at.y) + " ";
      text.back() = '"';
      text += message(" fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\"", stroke_of(line), "/>\n");
    }
    // a single point is no line
    if (line.markers == LineMarkers::None && piece.size() != 1) continue;
    for (const Place& at : piece) text += marker(index, at);
  }
  return text + "</g>\n";
}

std::string Panel::draw() const {
  std::string text = "<g>\n" + text_at({frame_.x, frame_.y - layout_.legend_height - 14}, chart_.title,
                                       "font-size=\"14\" font-weight=\"bold\"");
  text += axes() + labels() + legend();
  for (size_t i = 0; i < chart_.lines.size(); ++i) text += line(i);
  return text + "</g>\n";
}

struct Range {
  double low, high;
};

AxisTicks ticks_of(const LineChart& chart, double ChartPoint::*member, const ChartAxis& axis) {
  std::optional<Range> range;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) {
      if (!drawable(point.x, chart.x.scale) || !drawable(point.y, chart.y.scale)) continue;
      const double value = point.*member;
      if (!range) range = {value, value};
      range = {std::min(range->low, value), std::max(range->high, value)};
    }
  }
  FW_CHECK(range.has_value(), "[chart] \"", chart.title, "\" has no point to draw");
  for (const double value : axis.reaches) range = {std::min(range->low, value), std::max(range->high, value)};
  return make_ticks(range->low, range->high, axis.scale);
}

Layout layout_of(const LineChart& chart) {
  FW_CHECK(chart.lines.size() <= kColours.size(), "[chart] \"", chart.title, "\" has ", chart.lines.size(),
           " lines; there are colours for ", kColours.size());
  Layout layout = {
      ticks_of(chart, &ChartPoint::x, chart.x), ticks_of(chart, &ChartPoint::y, chart.y), {}, 0, 0};
  double widest = 0;
  for (const Tick& tick : layout.y.ticks) widest = std::max(widest, width_of(tick.label));
  layout.left = 34 + widest;
  // names from left to right, as many as there is room for in a row
  double x = 0, y = 0;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    if (chart.lines[i].name.empty()) continue;
    const double width = kLegendSample + width_of(chart.lines[i].name);
    if (x > 0 && x + width > kWidth - kRight - layout.left) {
      x = 0;
      y += kLegendRow;
    }
    layout.legend.push_back({i, x, y});
    x += width + kLegendGap;
  }
  layout.legend_height = layout.legend.empty() ? 0 : y + kLegendRow;
  return layout;
}

}  // namespace

std::string svg(const std::vector<LineChart>& panels) {
  FW_CHECK(!panels.empty(), "[chart] there is no chart to draw");
  std::vector<Layout> layouts;
  double top = 0;
  for (const LineChart& chart : panels) {
    layouts.push_back(layout_of(chart));
    // frames begin at one height
    top = std::max(top, kTitle + layouts.back().legend_height);
  }
  const std::string width = number(kWidth * static_cast<double>(panels.size())),
                    height = number(top + kPlotHeight + kBottom);
  std::string text =
      message("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
              "\" viewBox=\"0 0 ", width, " ", height,
              "\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n");
  text += "<title>";
  for (const LineChart& chart : panels)
    text += (&chart == &panels.front() ? "" : "; ") + escaped(chart.title);
  text += message("</title>\n<rect width=\"", width, "\" height=\"", height, "\" fill=\"#ffffff\"/>\n");
  for (size_t i = 0; i < panels.size(); ++i) {
    const double left = layouts[i].left;
    const Box frame = {kWidth * static_cast<double>(i) + left, top, kWidth - left - kRight, kPlotHeight};
    text += Panel(panels[i], layouts[i], frame).draw();
  }
  return text + "</svg>\n";
}

std::string chart_json(const std::vector<LineChart>& panels) {
  using Json = nlohmann::ordered_json;
  Json charts = Json::array();
  for (const LineChart& chart : panels) {
    Json lines = Json::array();
    for (const ChartLine& line : chart.lines) {
      Json x = Json::array(), y = Json::array();
      for (const ChartPoint& point : line.points) {
        x.push_back(point.x);
        y.push_back(point.y);
      }
      lines.push_back({{"name", line.name}, {"x", x}, {"y", y}});
    }
    charts.push_back({{"title", chart.title}, {"x", chart.x.label}, {"y", chart.y.label}, {"lines", lines}});
  }
  return charts.dump() + "\n";
}

}  // namespace fastweights::bench

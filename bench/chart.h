#pragma once

#include <string>
#include <vector>

/// Charts of lines as SVG text: a file that needs nothing else.
///
///     LineChart chart = {.title = "Loss", .x = {.label = "epoch"}, .y = {.scale = AxisScale::Log}};
///     chart.lines.push_back({.name = "training", .points = {{1, 0.7}, {2, 0.3}}});
///     std::ofstream("loss.svg") << svg({chart});

namespace fastweights::bench {

enum class AxisScale { Linear, Log };
enum class LineStroke { Solid, Dashed };
/// Dots have another shape for each line.
enum class LineMarkers { None, Dots };

struct ChartAxis {
  std::string label = {};
  AxisScale scale = AxisScale::Linear;
  std::vector<double> reaches = {};  ///< values that the axis shows, whatever the points are
};

struct ChartPoint {
  double x, y;
};

struct ChartLine {
  std::string name = {};  ///< in the legend; a line without a name is not in it
  /// A point that is not finite, or not positive on a logarithmic axis, interrupts the line.
  std::vector<ChartPoint> points = {};
  LineStroke stroke = LineStroke::Solid;
  LineMarkers markers = LineMarkers::None;
};

/// Texts are UTF-8. Axes reach from the tick below all points to the one above them.
struct LineChart {
  std::string title = {};
  ChartAxis x = {}, y = {};
  std::vector<ChartLine> lines = {};  ///< at most seven, each with a colour of its own
};

/// One SVG file with the charts side by side, on white. A chart without a point to draw is an error.
std::string svg(const std::vector<LineChart>& panels);

/// The numbers of these charts as JSON: titles, labels, and each line's x and y; null where not finite.
std::string chart_json(const std::vector<LineChart>& panels);

}  // namespace fastweights::bench

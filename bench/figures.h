#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chart.h"

/// Figures of the documents: each is a chart, and the numbers that were measured for it. A new one is a
/// source file with a FigureMaker, which figures.cpp lists.

namespace fastweights::bench {

using Json = nlohmann::ordered_json;

/// Tiny: a few small points, to see that everything works.
enum class FigureSize { Full, Tiny };

struct Figure {
  std::vector<LineChart> panels;
  Json numbers;  ///< an object, to which the program adds machine and versions
};

struct FigureMaker {
  std::string name;
  std::function<Figure(FigureSize)> make;
  /// One point in a process of its own: what `measure_apart` of this figure's points runs.
  std::function<Json(const Json& point)> measure;
};

/// Starts this program once more for this point alone and returns what it measured: the point, with what its
/// figure's `measure` adds. A process that takes longer or fails gives the point with the key "failed". Each
/// answer is also a line on the standard output.
Json measure_apart(const std::string& figure, const Json& point, int limit_seconds);

/// The memory of a training step over the length of the series, for each way to a gradient.
FigureMaker memory_figure();

/// Parameters and time of a training step over sizes, for neural CDEs and fast weight programmers.
FigureMaker scalability_figure();

/// Accuracy over the length of a gap that training did not show.
FigureMaker gap_figure();

}  // namespace fastweights::bench

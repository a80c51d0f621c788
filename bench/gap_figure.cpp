#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "fastweights/run.h"
#include "figures.h"

/// Accuracy of trained models over the length of one gap that training did not show, for methods of
/// integration and for other architectures, with and without the saturating clock. The data are synthetic.

namespace fastweights::bench {
namespace {

constexpr int64_t kSeries = 60, kRows = 15;
constexpr int kMostSeconds = 600;  // of a point

// two classes that rise or fall from row to row, with noise, about 1 apart in time
struct GapData {
  uint64_t seed;
  double gap = 1;  // factor of the time between two rows in the middle of each series

  DataSet made() const {
    Random random(seed);
    std::vector<Series> all;
    for (int64_t b = 0; b < kSeries; ++b) {
      const bool rises = b % 2 == 0;
      const auto place = static_cast<int64_t>(random.uniform(3, kRows - 3));
      Series series = {.id = message("s", b), .label = rises ? "up" : "down"};
      double time = 0;
      for (int64_t n = 0; n < kRows; ++n) {
        if (n > 0) time += random.uniform(0.7, 1.3) * (n == place ? gap : 1);
        series.times.push_back(time);
        const double trend = (rises ? 0.1 : -0.1) * static_cast<double>(n - kRows / 2);
        series.values.push_back(trend + 0.3 * random.normal());
        series.values.push_back(random.normal());
      }
      all.push_back(series);
    }
    return collect_series({.name = "gaps", .origin = "generated", .channels = {"a", "b"}}, all);
  }
};

std::vector<double> gaps(FigureSize size) {
  if (size == FigureSize::Tiny) return {1, 30};
  return {1, 3, 10, 30, 100, 1e3, 1e4, 1e6, 1e9};
}

struct Line {
  std::string name, model;
  Settings settings = {};
  double longest = std::numeric_limits<double>::infinity();  // gap to measure
};

const std::vector<Line>& lines() {
  static const std::vector<Line> kLines = {
      {"fast weights, flow", "delta-cde"},
      {"fast weights, rk4", "delta-cde", {{"model.solver.method", "rk4"}}},
      {"rk4, steps of at most 1",
       "delta-cde",
       {{"model.solver.method", "rk4"}, {"model.solver.max_step", "1"}},
       // a gap of 1e6 takes as many steps, and one of 1e9 more than the model accepts
       /*longest=*/1e4},
      {"LSTM", "lstm"},
      {"GRU-D", "gru-d"},
      {"neural CDE", "ncde"},
      {"delta net", "delta-net"}};
  return kLines;
}

double accuracy_of(const TrainedModel& trained, const DataSet& data) {
  for (const auto& [name, value] : evaluate(trained, data).metrics) {
    if (name == "accuracy") return value;
  }
  throw std::runtime_error("the predictions have no accuracy");
}

// trains one model, and evaluates it on new series with each gap
Json measure(const Json& point) {
  const Line& line = lines()[point["line"].get<size_t>()];
  const auto seed = point["seed"].get<uint64_t>();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / message("fastweights-gaps-", getpid());
  RunSetup setup = {.model = line.model, .settings = line.settings};
  setup.settings.push_back({"training.epochs", message(point["epochs"].get<int64_t>())});
  setup.settings.push_back({"training.seed", message(seed)});
  if (!point["clock"].get<bool>()) setup.settings.push_back({"prepare.usual_gaps", "0"});
  const RunResult result =
      train_run(make_run(setup, GapData{.seed = seed}.made()), {.folder = folder.string()});
  std::filesystem::remove_all(folder);
  FW_CHECK(result.trained, "training did not finish: ", result.message);
  Json found = Json::array();
  for (const double gap : point["gaps"].get<std::vector<double>>()) {
    try {
      // rows of steps that a limit of their length makes too many are not a prediction either
      found.push_back(accuracy_of(*result.trained, GapData{.seed = 1000 + seed, .gap = gap}.made()));
    } catch (const std::exception&) {
      found.push_back(nullptr);
    }
  }
  return {{"name", line.name}, {"accuracy", found}};
}

ChartLine drawn(Figure& figure, size_t line, bool clock, FigureSize size) {
  const bool tiny = size == FigureSize::Tiny;
  std::vector<double> lengths = gaps(size);
  std::erase_if(lengths, [&](double gap) { return gap > lines()[line].longest; });
  std::vector<double> sums(lengths.size(), 0);
  const int64_t seeds = tiny ? 1 : 3;
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    const Json point = measure_apart(
        "gaps",
        {{"line", line}, {"clock", clock}, {"seed", seed}, {"epochs", tiny ? 2 : 60}, {"gaps", lengths}},
        kMostSeconds);
    figure.numbers["points"].push_back(point);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const bool known = !point.contains("failed") && !point["accuracy"][i].is_null();
      sums[i] += known ? point["accuracy"][i].get<double>() : std::nan("");
    }
  }
  ChartLine result = {.name = lines()[line].name, .markers = LineMarkers::Dots};
  for (size_t i = 0; i < lengths.size(); ++i)
    result.points.push_back({lengths[i], sums[i] / static_cast<double>(seeds)});
  return result;
}

Figure make(FigureSize size) {
  Figure figure;
  figure.numbers["series"] = kSeries;
  figure.numbers["rows"] = kRows;
  for (const bool clock : {false, true}) {
    LineChart chart = {.title = clock ? "time saturates (default)" : "time as it is",
                       .x = {"gap (median gaps)", AxisScale::Log},
                       .y = {"accuracy", AxisScale::Linear, {0, 1}}};
    const size_t count = size == FigureSize::Tiny ? 2 : lines().size();
    for (size_t line = 0; line < count; ++line) chart.lines.push_back(drawn(figure, line, clock, size));
    figure.panels.push_back(chart);
  }
  return figure;
}

}  // namespace

FigureMaker gap_figure() { return {"gaps", make, measure}; }

}  // namespace fastweights::bench

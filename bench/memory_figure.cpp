#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "fastweights/gradcheck.h"
#include "fastweights/optimise.h"
#include "figures.h"
#include "scan_runs.h"

/// Back-propagation through a recorded solve holds states of d^2 numbers for every stage of every step; the
/// other ways to a gradient do not.

namespace fastweights::bench {
namespace {

constexpr int kMostMegabytes = 6000;
constexpr int kMostSeconds = 60;  // of a point
constexpr int64_t kSamples = 8;

struct GradientWay {
  std::string key, name;
  Backend backend;
  Gradient gradient;
  int64_t memory_limit;                 // bytes; 1: as little as it can
  std::optional<double> allowed_error;  // of a gradient in float32, against back-propagation
};

// the adjoint has an error of its own, which grows with the length; it is written down, not tested
const std::vector<GradientWay>& ways() {
  static const std::vector<GradientWay> kWays = {
      {"exact", "through the recorded solve", Backend::Reference, Gradient::Exact, 0, 0},
      {"checkpointed", "checkpoints", Backend::Reference, Gradient::Checkpointed, 0, 1e-4},
      {"adjoint", "continuous adjoint", Backend::Reference, Gradient::Adjoint, 0, {}},
      {"fused", "fused engine", Backend::Cpu, Gradient::Exact, 0, 1e-4},
      {"fused_least", "fused engine, least memory", Backend::Cpu, Gradient::Exact, 1, 1e-4}};
  return kWays;
}

ProgrammerConfig config_of(const GradientWay& way) {
  ProgrammerConfig config;
  config.channels = 8;
  config.outputs = 4;
  config.hidden_size = 64;
  config.heads = 4;
  config.backend = way.backend;
  config.solver.method = rk4();
  config.solver.gradient = way.gradient;
  config.solver.memory_limit = way.memory_limit;
  return config;
}

ScanBatch batch_of(int64_t steps) {
  const ProgrammerConfig config = config_of(ways()[0]);
  return {synthetic_series({.samples = kSamples,
                            .length = steps + 1,
                            .channels = config.channels,
                            .times = SyntheticTimes::Regular}),
          at::arange(kSamples, at::kLong).remainder(config.outputs)};
}

// megabytes of W of all samples, once
double state_mb() {
  const ProgrammerConfig config = config_of(ways()[0]);
  const int64_t width = config.hidden_size / config.heads;
  return static_cast<double>(kSamples * config.heads * width * width * 4) / (1 << 20);
}

Json measure(const Json& point) {
  return_freed_memory();
  for (const GradientWay& way : ways()) {
    if (way.key != point["line"]) continue;
    // threads and their buffers come first
    ScanRun(Way::Model, config_of(way), batch_of(8)).step();
    ScanRun run(Way::Model, config_of(way), batch_of(point["steps"]));
    const auto start = std::chrono::steady_clock::now();
    const double peak = peak_mb_of([&] { run.step(); });
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    Json found = {{"peak_mb", peak}, {"seconds", taken.count()}, {"backend", run.backend()}};
    // the engine says beforehand what it will take
    if (way.backend != Backend::Reference) {
      found["planned_mb"] = static_cast<double>(run.plan().bytes) / (1 << 20);
      found["blocks"] = run.plan().blocks;
    }
    return found;
  }
  throw std::invalid_argument("there is no line " + point["line"].dump());
}

Tensor gradient_of(const GradientWay& way, int64_t steps) {
  const Model model(config_of(way));
  const Tensor outputs = model.forward({.series = batch_of(steps).series}).outputs;
  std::vector<Tensor> parts = gradients(random_loss(1)(outputs), model.parameter_tensors());
  for (Tensor& part : parts) part = part.flatten();
  return at::cat(parts);
}

// relative to back-propagation; an error where a way is wrong
Json gradient_errors(int64_t steps) {
  const Tensor expected = gradient_of(ways()[0], steps);
  Json errors = {{"steps", steps}};
  for (const GradientWay& way : ways()) {
    const double error = ((gradient_of(way, steps) - expected).norm() / expected.norm()).item<double>();
    if (way.allowed_error && !(error <= *way.allowed_error)) {
      throw std::runtime_error(message("[figures] the gradient of '", way.name, "' is wrong by ", error));
    }
    errors[way.key] = error;
  }
  return errors;
}

// a doubled length takes at most twice as much
std::string reason_to_stop(const Json& last) {
  if (last.contains("failed")) return last["failed"];
  if (2 * last["peak_mb"].get<double>() > kMostMegabytes) {
    return message("twice as long it would take more than ", kMostMegabytes, " MB");
  }
  if (2 * last["seconds"].get<double>() > kMostSeconds) {
    return message("twice as long it would take more than ", kMostSeconds, " s");
  }
  return "";
}

Figure make(FigureSize size) {
  const bool tiny = size == FigureSize::Tiny;
  const int64_t first = tiny ? 8 : 64, last = tiny ? 16 : 8192;
  Figure figure;
  figure.numbers["model"] = Json::parse(to_json(config_of(ways()[0])));
  figure.numbers["samples"] = kSamples;
  figure.numbers["state_mb"] = state_mb();
  // nothing is measured where a gradient is wrong
  for (int64_t steps = first; steps <= std::min(last, 16 * first); steps *= 4)
    figure.numbers["gradient_errors"].push_back(gradient_errors(steps));
  LineChart chart = {.title = "Memory of a training step",
                     .x = {"steps of the series", AxisScale::Log},
                     .y = {"peak memory beyond the data (MB)", AxisScale::Log}};
  for (const GradientWay& way : ways()) {
    ChartLine line = {.name = way.name, .markers = LineMarkers::Dots};
    for (int64_t steps = first; steps <= last; steps *= 2) {
      const Json point = measure_apart("memory", {{"line", way.key}, {"steps", steps}}, 2 * kMostSeconds);
      figure.numbers["points"].push_back(point);
      if (!point.contains("failed"))
        line.points.push_back({static_cast<double>(steps), point["peak_mb"].get<double>()});
      const std::string reason = reason_to_stop(point);
      if (reason.empty() || steps == last) continue;
      figure.numbers["stopped"][way.key] = {{"last_tried", steps}, {"reason", reason}};
      break;
    }
    chart.lines.push_back(line);
  }
  ChartLine states = {.name = "W of every step, once", .stroke = LineStroke::Dashed};
  for (const int64_t steps : {first, last})
    states.points.push_back({static_cast<double>(steps), static_cast<double>(steps) * state_mb()});
  chart.lines.push_back(states);
  figure.panels = {chart};
  return figure;
}

}  // namespace

FigureMaker memory_figure() { return {"memory", make, measure}; }

}  // namespace fastweights::bench

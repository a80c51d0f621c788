#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "base/error.h"
#include "fastweights/gradcheck.h"
#include "fastweights/optimise.h"
#include "fastweights/run.h"
#include "fastweights/tableau.h"
#include "figures.h"

/// A neural CDE's network has d x C outputs, which a fast weight programmer's does not: parameters and time
/// of a training step over the size d of the state and over the channels C.

namespace fastweights::bench {
namespace {

constexpr int64_t kSamples = 32, kLength = 33, kOutputs = 4;
constexpr int kMostSeconds = 120;  // of a point
constexpr int kRepeats = 5;

struct Line {
  std::string key, name;
};

const std::vector<Line>& lines() {
  static const std::vector<Line> kLines = {{"ncde", "neural CDE"},
                                           {"ncde-rank-one", "neural CDE of rank one"},
                                           {"delta-cde", "fast weights, delta rule"},
                                           {"delta-ode", "fast weights, delta rule, direct"}};
  return kLines;
}

// the state of a neural CDE has d numbers, that of fast weights H matrices of d / H x d / H
ModelConfig config_of(const std::string& model, int64_t hidden, int64_t channels) {
  ModelConfig config = named_model(model, {.channels = channels, .outputs = kOutputs});
  if (auto* fast = config.architecture.get_if<FastWeights>()) {
    fast->solver.method = rk4();
    fast->hidden_size = hidden;
    fast->heads = std::max<int64_t>(1, hidden / 8);
    fast->feed_forward_size = 2 * hidden;
  } else {
    auto& cde = config.architecture.get<NeuralCde>();
    cde.hidden_size = cde.field.hidden_size = hidden;
  }
  return config;
}

// forward, loss, backward and Adam on one batch
class Step {
 public:
  explicit Step(const ModelConfig& config) : model_(config), adam_(model_.parameter_tensors(), {}) {
    input_.series = synthetic_series({.samples = kSamples,
                                      .length = kLength,
                                      .channels = config.channels,
                                      .times = SyntheticTimes::Regular});
    input_.series.values = input_.series.values.to(at::kFloat);
    labels_ = at::arange(kSamples, at::kLong).remainder(kOutputs);
  }

  int64_t parameters() const { return model_.parameter_count(); }

  double seconds() {
    const auto start = std::chrono::steady_clock::now();
    const Tensor outputs = model_.forward(input_, {.mode = Mode::Train}).outputs;
    adam_.step(gradients(at::cross_entropy_loss(outputs, labels_), model_.parameter_tensors()));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    return taken.count();
  }

 private:
  Model model_;
  Adam adam_;
  ModelInput input_;
  Tensor labels_;
};

Json measure(const Json& point) {
  Step step(config_of(point["line"], point["hidden"], point["channels"]));
  step.seconds();
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) seconds.push_back(step.seconds());
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return {{"parameters", step.parameters()}, {"ms", 1e3 * seconds[kRepeats / 2]}};
}

// the hidden size at which a model has about so many parameters
int64_t size_for(const std::string& model, int64_t parameters, int64_t channels) {
  int64_t size = 8;
  while (Model(config_of(model, size + 8, channels)).parameter_count() <= parameters) size += 8;
  return size;
}

struct Panel {
  std::string what;  // that changes: hidden or channels
  std::vector<int64_t> sizes;
  int64_t other;
};

void add_panel(Figure& figure, const Panel& panel) {
  const bool hidden = panel.what == "hidden";
  LineChart chart = {.title = hidden ? message("over the size of the state, ", panel.other, " channels")
                                     : message("over the channels, state of size ", panel.other),
                     .x = {hidden ? "hidden size d" : "channels C", AxisScale::Log},
                     .y = {"training step (ms)", AxisScale::Log}};
  for (const Line& line : lines()) {
    ChartLine drawn = {.name = line.name, .markers = LineMarkers::Dots};
    for (const int64_t size : panel.sizes) {
      const Json point = measure_apart("scalability",
                                       {{"panel", panel.what},
                                        {"line", line.key},
                                        {"hidden", hidden ? size : panel.other},
                                        {"channels", hidden ? panel.other : size}},
                                       kMostSeconds);
      figure.numbers["points"].push_back(point);
      if (point.contains("failed")) break;
      drawn.points.push_back({static_cast<double>(size), point["ms"].get<double>()});
      if (point["ms"].get<double>() > 1e3 * kMostSeconds / (4 * kRepeats)) break;
    }
    chart.lines.push_back(drawn);
  }
  figure.panels.push_back(chart);
}

// the same number of parameters and the same data
void add_equal_parameters(Figure& figure, int64_t parameters, int64_t channels) {
  for (const Line& line : lines()) {
    const int64_t hidden = size_for(line.key, parameters, channels);
    figure.numbers["equal_parameters"].push_back(measure_apart(
        "scalability", {{"panel", "equal"}, {"line", line.key}, {"hidden", hidden}, {"channels", channels}},
        kMostSeconds));
  }
}

Figure make(FigureSize size) {
  Figure figure;
  figure.numbers["samples"] = kSamples;
  figure.numbers["length"] = kLength;
  if (size == FigureSize::Tiny) {
    add_panel(figure, {"hidden", {8}, 3});
    return figure;
  }
  add_panel(figure, {"hidden", {16, 32, 64, 128, 256}, 16});
  add_panel(figure, {"channels", {4, 16, 64, 256}, 64});
  add_equal_parameters(figure, 100'000, 16);
  return figure;
}

}  // namespace

FigureMaker scalability_figure() { return {"scalability", make, measure}; }

}  // namespace fastweights::bench

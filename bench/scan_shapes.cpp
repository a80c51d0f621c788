#include "scan_shapes.h"

#include <algorithm>

#include "fastweights/published.h"

namespace fastweights::bench {
namespace {

// rule, drive, control and sizes as published; steps, gradient, query and ends are ours
ProgrammerConfig ours(const ModelConfig& model) {
  const ProgrammerConfig published = ProgrammerConfig(model);
  ProgrammerConfig c;
  c.channels = published.channels;
  c.outputs = published.outputs;
  c.rule = published.rule;
  c.drive = published.drive;
  const auto* windows = std::get_if<LogSignatures>(&published.control.path);
  c.control.path = windows ? ControlPath(LogSignatures{.depth = windows->depth}) : NaturalCubic{};
  c.hidden_size = published.hidden_size;
  c.heads = published.heads;
  c.solver.method = rk4();
  c.feed_forward_size = published.feed_forward_size;
  return c;
}

std::vector<int64_t> equal_lengths(int64_t samples, int64_t points) {
  return std::vector<int64_t>(samples, points);
}

// 8 to 72 points, every length about as often
std::vector<int64_t> spread_lengths(int64_t samples) {
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < samples; ++b) lengths.push_back(8 + (b * 37) % 65);
  return lengths;
}

// lengths of the small batch in steps; heads of the paper's models fill registers anyway
ScanShape gated(ScanShape shape) {
  for (const int64_t steps : {7, 1, 4, 5, 2})
    shape.gate.lengths.push_back(steps * shape.points_per_step() + 1);
  shape.gate.times = CaseTimes::Regular;
  return shape;
}

ScanShape speech(const std::string& name, const std::string& model, int64_t definition_steps) {
  const ProgrammerConfig config = ours(published::speech(model));
  return gated({name, config, equal_lengths(1024, 161), definition_steps});
}

}  // namespace

int64_t ScanShape::points_per_step() const {
  const auto* windows = std::get_if<LogSignatures>(&config.control.path);
  return windows ? std::get<PointWindows>(windows->windows).increments : 1;
}

int64_t ScanShape::longest_steps() const {
  return (*std::max_element(points.begin(), points.end()) - 1) / points_per_step();
}

std::vector<ScanShape> all_shapes() {
  // the log-signature of depth 1 has as many numbers as there are channels
  const ProgrammerConfig worms = ours(published::eigenworms("ode_delta", 1));
  const ProgrammerConfig sepsis = [] {
    ProgrammerConfig c = ours(published::sepsis("delta_cde", published::Intensity::On));
    c.initial = InitialWeights::Rule;
    return c;
  }();
  const int64_t increments = ScanShape{"", worms, {}}.points_per_step();
  const int64_t worm_points = 4496 * increments + 1, million_points = 1'000'000 * increments + 1;
  // the recorded definition holds gigabytes for a hundred steps of 1,024 series: where it is long it is timed
  // on its first steps, all of which cost the same
  return {gated({"E", worms, equal_lengths(181, worm_points), 64}),
          speech("S", "delta_cde", 16),
          gated({"P", sepsis, spread_lengths(1024), 0}),
          speech("S-hebb", "hebb_cde", 32),
          speech("S-oja", "oja_cde", 32),
          gated({"M", worms, equal_lengths(1, million_points), 64})};
}

ScanShape with_method(ScanShape shape, const std::string& method) {
  shape.config.solver.method = fastweights::method(method);
  if (method == "flow" && shape.config.rule == "oja_softmax") shape.config.rule = "oja";
  return shape;
}

ScanShape with_steps(ScanShape shape, int64_t steps) {
  for (int64_t& points : shape.points) points = std::min(points, steps * shape.points_per_step() + 1);
  return shape;
}

ScanShape with_samples(ScanShape shape, int64_t samples) {
  shape.points.resize(std::min(samples, shape.samples()));
  return shape;
}

ScanShape with_heads(ScanShape shape, int64_t heads) {
  shape.config.hidden_size = shape.config.hidden_size / shape.config.heads * heads;
  shape.config.heads = heads;
  return shape;
}

ScanShape tiny(const ScanShape& shape) {
  ScanShape small = with_samples(with_steps(shape, 9), 5);
  if (small.definition_steps > 0) small.definition_steps = 3;
  return small;
}

ScanBatch make_batch(const ScanShape& shape) {
  at::manual_seed(1);
  const Tensor lengths = at::tensor(shape.points, at::kLong);
  const Tensor offsets = at::cat({at::zeros({1}, at::kLong), lengths.cumsum(0)}, 0);
  const int64_t rows = offsets[-1].item<int64_t>();
  const Tensor begins = offsets.slice(0, 0, -1).repeat_interleave(lengths);
  ScanBatch batch;
  batch.series.times = (at::arange(rows, at::kLong) - begins).to(at::kDouble);
  batch.series.values = at::randn({rows, shape.config.channels}, at::kFloat);
  batch.series.offsets = offsets;
  const int64_t classes = std::max<int64_t>(shape.config.outputs, 2);
  batch.labels = at::randint(classes, {shape.samples()}, at::kLong);
  return batch;
}

}  // namespace fastweights::bench

#include <cmath>

#include "fastweights/model.h"
#include "model/config_names.h"
#include "model/parts.h"
#include "model/plain_model.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"

namespace fastweights {
namespace {

using testing::PlainModel;
using testing::random;
using testing::Reading;
using testing::ThreeEighths;

// channels 3, heads 2, key width 4, value width 5, outputs 6; hidden 10 is what W gives, for residuals
ProgrammerConfig deep_config(int64_t layers, LayerInput layer_input, Drive drive) {
  ProgrammerConfig config;
  config.rule = "delta_post";
  config.channels = 3;
  config.outputs = 6;
  config.hidden_size = 10;
  config.heads = 2;
  config.key_width = 4;
  config.value_width = 5;
  config.feed_forward_size = 11;
  config.layers = layers;
  config.layer_input = layer_input;
  config.drive = drive;
  config.time_unit = 0.8;
  return config;
}

RaggedSeries observations() {
  std::vector<Tensor> times, values;
  for (int64_t length : {5, 3}) {
    times.push_back(testing::irregular_times(length, 140 + length));
    values.push_back(2 * random({length, 3}, 150 + length));
  }
  return ragged(times, values);
}

// dW/dt of one layer by the delta rule with the tanh behind
Tensor slope(const PlainModel& plain, int64_t l, const Reading& in, const Tensor& w) {
  const Tensor& u = plain.config.drive == Drive::X ? in.x : in.dx;
  const testing::Raw raw = plain.raw(l, u, u);
  const Tensor k = at::softmax(raw.k, -1), beta = 1 / (1 + at::exp(-raw.b));
  return testing::times_transposed(beta * at::tanh(raw.v - testing::times(w, k)), k);
}

// what the layer above reads
Reading next_reading(const PlainModel& plain, int64_t l, const Reading& in, const Tensor& w,
                     const Tensor& dw) {
  const ProgrammerConfig& c = plain.config;
  if (c.layer_input == LayerInput::Update) {
    const Tensor y = plain.read(l, c.drive == Drive::X ? in.x : in.dx, dw);
    return {y, y};
  }
  const Tensor dy = c.drive == Drive::X ? Tensor() : plain.read_derivative(l, in, w, dw);
  return {plain.read(l, in.x, w), dy};
}

// what a layer reads at each stage of each step, in the order of time
using Readings = std::vector<Reading>;

struct LayerPath {
  Tensor w;     // [1, H, V, K] at the end
  Readings up;  // for the layer above
};

// one layer alone, through all of its steps
LayerPath solve_layer(const PlainModel& plain, int64_t l, Tensor w, const Tensor& times,
                      const Readings& readings) {
  LayerPath path;
  const bool last = l + 1 == plain.config.layers;
  for (int64_t n = 0; n + 1 < times.size(0); ++n) {
    const double dt = (times[n + 1] - times[n]).item<double>();
    std::vector<Tensor> slopes;
    Tensor end = w;
    for (int i = 0; i < ThreeEighths::kStages; ++i) {
      const Reading& in = readings[n * ThreeEighths::kStages + i];
      Tensor stage = w;
      for (int j = 0; j < i; ++j) stage = stage + dt * ThreeEighths::a[i][j] * slopes[j];
      slopes.push_back(slope(plain, l, in, stage));
      end = end + dt * ThreeEighths::b[i] * slopes[i];
      if (!last) path.up.push_back(next_reading(plain, l, in, stage, slopes[i]));
    }
    w = end;
  }
  path.w = w;
  return path;
}

// fast weights of all layers at the end of one sample, layer by layer
std::vector<Tensor> solve_by_layers(const PlainModel& plain, const RaggedSeries& one) {
  const Control control(one);
  Readings readings;
  for (int64_t n = 0; n + 1 < one.times.size(0); ++n) {
    const Samples x =
        control.sample(ThreeEighths::times(one.times[n].item<double>(), one.times[n + 1].item<double>()));
    for (int i = 0; i < ThreeEighths::kStages; ++i) {
      readings.push_back({x.value.select(1, i), x.derivative.select(1, i)});
    }
  }
  const Samples first = control.sample(one.times.slice(0, 0, 1));
  const Tensor empty = at::zeros({1, 2, 5, 4}, at::kDouble);
  Tensor w = slope(plain, 0, {first.value.select(1, 0), first.derivative.select(1, 0)}, empty);
  std::vector<Tensor> result;
  for (int64_t l = 0; l < plain.config.layers; ++l) {
    const LayerPath path = solve_layer(plain, l, w, one.times, readings);
    result.push_back(path.w[0]);
    readings = path.up;
    w = empty;
  }
  return result;
}

struct DeepModel {
  LayerInput layer_input;
  Drive drive;
};

TEST(Exactness, LayersOfADeepModelCanBeSolvedOneAfterAnother) {
  const RaggedSeries series = observations();
  for (const DeepModel& deep :
       {DeepModel{LayerInput::Weights, Drive::X}, DeepModel{LayerInput::Update, Drive::X},
        DeepModel{LayerInput::Weights, Drive::Derivative},
        DeepModel{LayerInput::Update, Drive::Derivative}}) {
    for (bool residual : {false, true}) {
      ProgrammerConfig config = deep_config(3, deep.layer_input, deep.drive);
      config.solver.method = rk4();
      config.residual = residual;
      const Model model(config, {.seed = 6, .type = at::kDouble});
      const at::NoGradGuard no_grad;
      const ModelOutput got = model.forward({.series = series});
      for (int64_t b = 0; b < series.samples(); ++b) {
        const std::vector<Tensor> expected =
            solve_by_layers(PlainModel(model), testing::sample_of(series, b, config.time_unit));
        for (int64_t l = 0; l < config.layers; ++l) {
          // the same sums in other operations; each layer's norms enlarge the rounding of the one below
          EXPECT_LT(testing::relative_error(got.w[l][b], expected[l]), 1e-12)
              << name_of(deep.layer_input) << " " << name_of(deep.drive) << ", layer " << l << ", sample "
              << b;
        }
      }
    }
  }
}

TEST(Exactness, TheUpperLayerReadsTheTimeDerivativeOfTheLowerOnesOutput) {
  ProgrammerConfig config = deep_config(2, LayerInput::Weights, Drive::Derivative);
  config.time_unit = 1;
  config.solver.method = rk4();
  config.solver.steps = ObservationSteps{.max_step = 0.01};
  for (bool residual : {false, true}) {
    config.residual = residual;
    const ModelOptions options = {.seed = 6, .type = at::kDouble};
    const Model model(config, options);
    const PlainModel plain(model);
    const RaggedSeries series = testing::sample_of(observations(), 0, 1);
    // times around the middle of the second interval
    const double t = ((series.times[1] + series.times[2]) / 2).item<double>(), step = 1e-3;
    const Tensor times = t + step * at::tensor({-2., -1., 0., 1., 2.}, at::kDouble);
    const at::NoGradGuard no_grad;
    const ModelOutput path =
        model.forward({.series = series, .output_times = RaggedTimes{times, at::tensor({0, 5}, at::kLong)}});
    const Samples x = Control(series).sample(times);
    const Tensor y = plain.read(0, x.value[0], path.w[0]);  // [5, d]
    // four points: what is left is step^4 / 30 = 3e-14 of the fifth derivative, and rounding of 1e-13
    const Tensor derivative = (8 * (y[3] - y[1]) - (y[4] - y[0])) / (12 * step);

    const Samples now = {x.value[0].slice(0, 2, 3), x.derivative[0].slice(0, 2, 3)};
    const Tensor w = at::stack({path.w[0][2], path.w[1][2]}, 0).unsqueeze(0);  // [1, L, H, V, K]
    const ModelParts parts = make_parts(config, options);
    const Tensor got = weights_slope(parts, now, w, make_masks(parts, {}, 1, 1)).select(1, 1);
    const Tensor expected = slope(plain, 1, {{}, derivative.unsqueeze(0)}, w.select(1, 1));
    // and the solve's error, which rk4 with steps of 0.01 leaves at about 1e-10 between neighbouring points
    EXPECT_LT(testing::relative_error(got, expected), 1e-8);
  }
}

}  // namespace
}  // namespace fastweights

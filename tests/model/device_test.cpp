#include "tensor/device.h"
#include "base/random.h"
#include "fastweights/fastweights.h"
#include "fastweights/tensor.h"
#include "fastweights/tools.h"
#include "fastweights/train.h"
#include "model/programmer_config.h"
#include "support/support.h"
#include "tensor/autograd.h"
#include "tensor/random_tensor.h"

/// On a machine with a GPU what it does; on others that it is refused.

namespace fastweights {
namespace {

using testing::error_message;
using testing::relative_error;

constexpr double kDeviceRounding = 1e-5;  // some hundred roundings of 6e-8

ProgrammerConfig device_config() {
  ProgrammerConfig c;
  c.channels = 3;
  c.outputs = 2;
  c.hidden_size = 24;
  c.heads = 3;
  c.drive = Drive::DerivativeKeys;
  return c;
}

RaggedSeries some_series(const std::vector<int64_t>& lengths) {
  Random random(5);
  std::vector<double> times;
  std::vector<int64_t> offsets = {0};
  for (const int64_t length : lengths) {
    double t = random.uniform();
    for (int64_t i = 0; i < length; ++i) times.push_back(t += 0.2 + random.uniform());
    offsets.push_back(static_cast<int64_t>(times.size()));
  }
  return {uniform({static_cast<int64_t>(times.size()), 3}, -1, 1, random, at::kFloat),
          at::tensor(times, at::kDouble), at::tensor(offsets, at::kLong)};
}

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }
  Model model(const ProgrammerConfig& config = device_config()) const {
    return Model(config, {.device = device_});
  }
  // gradients of a sum of the outputs
  std::vector<Tensor> gradients_of(const Model& model, const PreparedBatch& input) const {
    const at::AutoGradMode on(true);
    return gradients(model.forward(input, {.mode = Mode::Train, .seed = 3}).outputs.square().sum(),
                     model.parameter_tensors());
  }

  const at::Device device_ = find_device("auto");
};

TEST(DeviceName, WrongNamesAreNamed) {
  EXPECT_EQ(error_message([] { find_device("gpu"); }),
            "[device] unknown device 'gpu'; expected cpu, cuda or auto");
  EXPECT_TRUE(find_device("cpu").is_cpu());
}

TEST(DeviceName, WhereThereIsNoneTheReasonIsSaid) {
  if (!find_device("auto").is_cpu()) GTEST_SKIP() << "there is one";
  const std::string reason = device_refusal();
  ASSERT_FALSE(reason.empty());
  EXPECT_EQ(error_message<std::runtime_error>([] { find_device("cuda"); }),
            "[device] cuda cannot be used: " + reason);
  EXPECT_EQ(
      error_message<std::runtime_error>([] { Model(device_config(), {.device = at::Device(at::kCUDA, 0)}); }),
      "[model] device cuda cannot be used: " + reason);
}

TEST(DeviceName, OtherDevicesAreRefused) {
  EXPECT_EQ(error_message([] {
              ProgrammerConfig c = device_config();
              Model(c, {.type = at::kFloat, .device = at::Device(at::kMeta)});
            }),
            "[model] a model is on the CPU or on a CUDA device, not on meta");
}

TEST_F(Device, WhatKernelsCannotDoIsRefused) {
  ProgrammerConfig c = device_config();
  c.solver.method = dopri5();
  c.solver.steps = AdaptiveSteps{};
  EXPECT_EQ(error_message([&] {
              model(c).forward({.series = some_series({4, 5})});
            }),
            "[model] a GPU cannot be used: adaptive steps depend on W; the CPU can");
}

TEST_F(Device, PickedSamplesAreThoseOfABatch) {
  const Model model = this->model();
  const RaggedSeries all = some_series({5, 9, 2, 7});
  const PreparedBatch some = model.prepare({.series = all}).select({3, 0});
  const int64_t* o = all.offsets.data_ptr<int64_t>();
  const auto rows = [&](const Tensor& x) {
    return at::cat({x.slice(0, o[3], o[4]), x.slice(0, o[0], o[1])}, 0);
  };
  const RaggedSeries picked = {rows(all.values), rows(all.times), at::tensor({0, 7, 12}, at::kLong)};
  const Tensor got = model.forward(some).outputs, expected = model.forward({.series = picked}).outputs;
  EXPECT_LT(relative_error(got.detach().cpu(), expected.detach().cpu()), kDeviceRounding);
  EXPECT_EQ(some.samples(), 2);
}

// controls by their settings, each with something of its own
std::vector<ProgrammerConfig> device_controls() {
  std::vector<ProgrammerConfig> configs;
  const auto add = [&](ControlConfig control, Drive drive) {
    ProgrammerConfig c = device_config();
    c.control = control;
    c.drive = drive;
    c.time_unit = 0.7;
    configs.push_back(c);
    return &configs.back();
  };
  add({.path = NaturalCubic{}}, Drive::DerivativeKeys);
  add({.path = NaturalCubic{EndFilling::EndPoint}}, Drive::Derivative);
  add({.path = HermiteCubic{}}, Drive::DerivativeValues);
  add({.path = Linear{}}, Drive::X);
  add({.path = Linear{}}, Drive::Derivative)->query = QueryTime::LastOfBatch;
  add({.path = Rectilinear{.time_channel = 1}}, Drive::DerivativeKeys);
  add({.path = Hold{}}, Drive::X);
  for (const double duration : {0.0, 2.5}) {
    for (const WindowClock clock : {WindowClock::Windows, WindowClock::Time}) {
      const Windows windows = duration > 0 ? Windows(DurationWindows{duration})
                                           : Windows(PointWindows{.increments = 2, .tail = WindowTail::Keep});
      add({.path = LogSignatures{.depth = 3, .windows = windows, .clock = clock}}, Drive::Derivative);
    }
  }
  configs.back().initial = InitialWeights::FirstObservation;
  configs.back().query = QueryTime::FirstObservation;
  return configs;
}

TEST_F(Device, EveryControlIsThatOfTheCpu) {
  RaggedSeries series = some_series({50, 9, 3, 70, 33});
  for (const bool gaps : {false, true}) {
    if (gaps) {
      // something of everything is missing, and a channel of the second series is never observed
      series.values = testing::with_missing(series.values, 0.3, 8);
      series.values.slice(0, 50, 59).select(1, 2).fill_(NAN);
    }
    for (const ProgrammerConfig& c : device_controls()) {
      const Model there = model(c), here = there.to(at::kCPU);
      const Tensor expected = here.forward({.series = series}).outputs.detach();
      EXPECT_LT(
          relative_error(there.forward(there.prepare({.series = series})).outputs.detach().cpu(), expected),
          kDeviceRounding)
          << c.control.path.index() << (gaps ? " with gaps" : "");
    }
  }
}

TEST_F(Device, GradientsOfTheSeriesGoThroughTheCpu) {
  const Model there = model(), here = there.to(at::kCPU);
  const at::AutoGradMode on(true);
  const auto gradient = [](const Model& model) {
    RaggedSeries series = some_series({6, 9});
    series.values.set_requires_grad(true);
    return gradients(model.forward({.series = series}).outputs.sum(), {series.values})[0];
  };
  EXPECT_LT(relative_error(gradient(there).cpu(), gradient(here)), kDeviceRounding);
}

TEST_F(Device, TheSameBitsTwice) {
  ProgrammerConfig c = device_config();
  c.dropout = c.value_dropout = 0.25;
  const Model model = this->model(c);
  const PreparedBatch input = model.prepare({.series = some_series({50, 9, 2, 70, 33})});
  const std::vector<Tensor> one = gradients_of(model, input), two = gradients_of(model, input);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(at::equal(one[i], two[i])) << model.parameters()[i].first;
}

TEST_F(Device, MasksAreThoseOfTheCpu) {
  Random here(9), there(9);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(at::equal(dropout_mask({7, 5}, 0.3, here, at::kFloat),
                          device_dropout_mask({7, 5}, 0.3, there, device_).cpu()));
}

TEST_F(Device, BlocksOfTimeChangeNothing) {
  const ModelInput input = {.series = some_series({90, 40, 3})};
  ProgrammerConfig c = device_config();
  const Model whole = model(c);
  const std::vector<Tensor> expected = gradients_of(whole, whole.prepare(input));
  c.solver.memory_limit = 1;
  const Model cut = model(c);
  EXPECT_GT(cut.forward(input).plan.blocks, 1);
  // all together: of some nothing is left but rounding
  const auto joined = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> parts;
    for (const Tensor& x : list) parts.push_back(x.cpu().reshape({-1}));
    return at::cat(parts, 0);
  };
  EXPECT_LT(relative_error(joined(gradients_of(cut, cut.prepare(input))), joined(expected)), kDeviceRounding);
}

TEST_F(Device, PiecesOfTimeSideBySideGiveTheSame) {
  Random random(3);
  const int64_t heads = 2, width = 5, rows = 2500 + 1100;
  for (const Rule& rule : {hebb(), oja(), delta_pre()}) {
    const auto drawn = [&](at::IntArrayRef shape, double low, double high) {
      return uniform(shape, low, high, random, at::kFloat).to(device_).set_requires_grad(true);
    };
    ScanInput input;
    input.k = drawn({rows, 4, heads, width}, -0.4, 0.4);
    input.v = drawn({rows, 1, heads, width}, -0.4, 0.4);
    input.beta = drawn({rows, 1, heads}, 0.1, 1);
    input.dt = drawn({rows}, 0.2, 1);
    input.w0 = drawn({2, heads, width, width}, -1, 1);
    input.offsets = at::tensor({0, 2500, 3600}, at::kLong);
    input.output_steps = at::tensor({0, 700, 2499, 2500, 64, 1100}, at::kLong);
    input.output_offsets = at::tensor({0, 4, 6}, at::kLong);
    std::vector<Tensor> results[2];
    for (const TimeParallel way : {TimeParallel::Never, TimeParallel::Auto}) {
      const at::AutoGradMode on(true);
      const Tensor w = scan(input, {.rule = rule, .time_parallel = way}).w;
      const Tensor weights = at::linspace(-1, 1, w.numel(), w.options().requires_grad(false)).view(w.sizes());
      std::vector<Tensor>& result = results[way == TimeParallel::Auto];
      result = vector_jacobian({w}, {input.k, input.v, input.beta, input.dt, input.w0}, {weights});
      result.push_back(w.detach());
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_LT(relative_error(results[1][i].cpu(), results[0][i].cpu()), 1e-4) << rule.name << " " << i;
  }
}

TEST_F(Device, AMemoryLimitBelongsToItsModel) {
  const ModelInput input = {.series = some_series({240000, 240000})};
  const Model roomy = model();
  const Tensor taken = at::empty({device_memory(device_).free - (int64_t{256} << 20)},
                                 at::TensorOptions(at::kByte).device(device_));
  const Model cramped = model();
  EXPECT_GT(cramped.plan(input)->blocks, roomy.plan(input)->blocks);
}

TEST_F(Device, AModelMovesThereAndBack) {
  const Model here(device_config(), {.seed = 4});
  const Model there = here.to(device_), back = there.to(at::kCPU);
  for (size_t i = 0; i < here.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(here.parameters()[i].second, back.parameters()[i].second));
  const ModelInput input = {.series = some_series({6, 3})};
  EXPECT_LT(relative_error(there.forward(input).outputs.detach().cpu(), here.forward(input).outputs.detach()),
            kDeviceRounding);
  EXPECT_EQ(there.forward(input).backend, "cuda");
}

}  // namespace
}  // namespace fastweights

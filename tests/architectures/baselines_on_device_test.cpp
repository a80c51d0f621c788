#include "architectures/cases.h"
#include "base/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "train/train_cases.h"

/// Baselines on a GPU against the same models on the CPU. Machines with a GPU only.

namespace fastweights {
namespace {

using testing::input_of_samples;
using testing::random;
using testing::relative_error;
using testing::small_baseline;
using testing::some_samples;

class DeviceBaselines : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (device_.is_cpu()) GTEST_SKIP() << device_refusal();
  }
  const at::Device device_ = find_device("auto");
};
class DeviceBaseline : public DeviceBaselines {};

// some hundred operations, each of which rounds to 6e-8 in float32 and to 1e-16 in float64
double rounding_of(at::ScalarType type) { return type == at::kFloat ? 1e-4 : 1e-10; }

ModelInput some_input() {
  ModelInput input = input_of_samples(some_samples(), random({3, testing::kBaselineStatics}, 77));
  // several outputs of one sample, and none of another
  const auto samples = some_samples();
  input.output_times = {at::cat({samples[0].first.slice(0, 2, 5), samples[2].first.slice(0, 8, 9) - 0.01}, 0),
                        at::tensor({0, 3, 3, 4}, at::kLong)};
  return input;
}

// the same samples, all of which begin at 0, as joint error control needs it
ModelInput together(ModelInput input) {
  const auto from_zero = [&](const RaggedTimes& times) {
    const Tensor counts = times.offsets.slice(0, 1) - times.offsets.slice(0, 0, -1);
    const Tensor begins = input.series.times.index_select(0, input.series.offsets.slice(0, 0, -1));
    return times.times - begins.repeat_interleave(counts);
  };
  const Tensor outputs = from_zero(*input.output_times);
  input.series.times = from_zero({input.series.times, input.series.offsets});
  input.output_times->times = outputs;
  return input;
}

struct Pass {
  Tensor outputs;
  Tensor gradient;  // of all parameters, together: of some nothing is left but rounding
};

Pass pass_of(const Model& model, const PreparedBatch& batch, const ForwardOptions& options) {
  const ModelOutput output = model.forward(batch, options);
  Tensor loss = (output.outputs * random(output.outputs.sizes(), 9).to(output.outputs.options())).sum();
  if (output.auxiliary_loss.defined()) loss = loss + output.auxiliary_loss;
  std::vector<Tensor> parts;
  for (const Tensor& g : vector_jacobian({loss}, model.parameter_tensors(), {at::ones_like(loss)}))
    parts.push_back(g.cpu().to(at::kDouble).reshape({-1}));
  return {output.outputs.detach().cpu().to(at::kDouble), at::cat(parts, 0)};
}

void expect_same_pass(const Model& here, const Model& there, const PreparedBatch& batch_here,
                      const PreparedBatch& batch_there, const ForwardOptions& options) {
  const double rounding = rounding_of(here.parameters()[0].second.scalar_type());
  const Pass expected = pass_of(here, batch_here, options), got = pass_of(there, batch_there, options);
  EXPECT_LT(relative_error(got.outputs, expected.outputs), rounding);
  EXPECT_LT(relative_error(got.gradient, expected.gradient), rounding);
}

TEST_P(DeviceBaselines, OutputsAndGradientsAreThoseOfTheCpu) {
  const ModelConfig config =
      with_setting(small_baseline(GetParam(), testing::kBaselineStatics), "dropout", "0.25");
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const Model here(config, {.seed = 5, .type = type}), there = here.to(device_);
    const ModelInput input = some_input();
    const PreparedBatch batch_here = here.prepare(input), batch_there = there.prepare(input);
    const ForwardOptions options = {.mode = Mode::Train, .seed = 3};
    expect_same_pass(here, there, batch_here, batch_there, options);
    expect_same_pass(here, there, batch_here, batch_there, {});
    expect_same_pass(here, there, batch_here.select({2, 0}), batch_there.select({2, 0}), options);
    EXPECT_TRUE(there.parameters()[0].second.is_cuda());
    EXPECT_TRUE(there.forward(batch_there).outputs.is_cuda());
  }
}

TEST_P(DeviceBaselines, TheSameBitsTwice) {
  const Model model(with_setting(small_baseline(GetParam()), "dropout", "0.25"), {.device = device_});
  ModelInput input = input_of_samples(some_samples());
  // at every row
  input.output_times = {input.series.times, input.series.offsets};
  const PreparedBatch batch = model.prepare(input);
  const ForwardOptions options = {.mode = Mode::Train, .seed = 3};
  const Pass one = pass_of(model, batch, options), two = pass_of(model, batch, options);
  EXPECT_TRUE(at::equal(one.outputs, two.outputs));
  EXPECT_TRUE(at::equal(one.gradient, two.gradient));
}

TEST_P(DeviceBaselines, Train) {
  const TrainData data = train_data(two_classes(40));
  const auto shape = [&] {
    DataShape result = {.channels = data.preparation.model_channels(), .outputs = 2};
    result.dropout = 0.1;
    return result;
  };
  const auto losses = [&](const at::Device& device) {
    Trainer trainer(Model(named_model(GetParam(), shape()), {.device = device}), data,
                    {.epochs = 2, .batch_size = 8});
    std::vector<double> result;
    while (!trainer.finished()) {
      const TrainStep step = trainer.step();
      EXPECT_EQ(step.not_finite, "");
      result.push_back(step.loss);
    }
    return result;
  };
  const std::vector<double> here = losses(at::kCPU), there = losses(device_);
  ASSERT_EQ(here.size(), there.size());
  // Adam's first steps divide by gradients that may be near zero
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-3) << i;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceBaselines, ::testing::ValuesIn(testing::trained_baselines()),
                         [](const auto& info) { return testing::name_of_test(info.param); });

TEST_F(DeviceBaseline, GenericSolverGivesTheSame) {
  for (const char* name :
       {"ncde", "nrde", "gru-ode", "gru-ode-direct", "ode-rnn", "latent-ode", "ode-rfwp"}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
      for (const Gradient gradient : {Gradient::Exact, Gradient::Checkpointed, Gradient::Adjoint}) {
        for (const ErrorControl control : {ErrorControl::PerSample, ErrorControl::Joint}) {
          SCOPED_TRACE(message(name, " ", type, ", gradient ", static_cast<int>(gradient), ", control ",
                               static_cast<int>(control)));
          ModelConfig config = small_baseline(name, testing::kBaselineStatics);
          SolverConfig& solver = *solver_of(config);
          solver.method = dopri5();
          solver.gradient = gradient;
          // float32 and float64 must find the same steps
          solver.steps = AdaptiveSteps{.rtol = 1e-3, .atol = 1e-3, .control = control};
          const Model here(config, {.seed = 5, .type = type}), there = here.to(device_);
          const ModelInput input = together(some_input());
          expect_same_pass(here, there, here.prepare(input), there.prepare(input), {});
        }
      }
    }
  }
}

TEST_F(DeviceBaseline, PassesCanBeObserved) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const Model here(small_baseline("ncde", testing::kBaselineStatics), {.seed = 5, .type = type});
    const Model there = here.to(device_);
    int64_t looks = 0;
    const ForwardOptions options = {.observe = [&](const Time&, const Samples&) { ++looks; }};
    const Tensor expected = here.forward(some_input()).outputs.detach();
    EXPECT_LT(relative_error(there.forward(some_input(), options).outputs.detach().cpu(), expected),
              rounding_of(type));
    EXPECT_GT(looks, 10);
  }
}

TEST_F(DeviceBaseline, FittedOnesStayOnTheCpu) {
  EXPECT_EQ(testing::error_message([&] { Model(small_baseline("naive")).to(device_); }),
            "[model] architecture naive runs on the CPU only");
}

}  // namespace
}  // namespace fastweights

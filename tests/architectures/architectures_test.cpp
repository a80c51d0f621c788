#include <cmath>
#include <cstdio>

#include "architectures/cases.h"
#include "fastweights/gradcheck.h"
#include "tensor/autograd.h"

/// What every system must be able to do, by every name.

namespace fastweights {
namespace {

using testing::error_message;
using testing::input_of_samples;
using testing::irregular_times;
using testing::random;
using testing::relative_error;
using testing::small_baseline;
using testing::small_model_of;
using testing::some_samples;

class Architectures : public ::testing::TestWithParam<std::string> {};

// gradients of a random sum of the outputs: all parameters, then the series' values
std::vector<Tensor> gradients_of(const Model& model, const ModelInput& input) {
  ModelInput moved = input;
  moved.series.values = input.series.values.detach().clone().set_requires_grad(true);
  const ModelOutput output = model.forward(moved);
  const Tensor loss = (output.outputs * random(output.outputs.sizes(), 9)).sum();
  std::vector<Tensor> inputs = model.parameter_tensors();
  inputs.push_back(moved.series.values);
  return vector_jacobian({loss}, inputs, {at::ones_like(loss)});
}

TEST_P(Architectures, ASampleDoesNotDependOnItsBatch) {
  for (const int64_t statics : {int64_t{0}, testing::kBaselineStatics}) {
    const Model model = small_model_of(small_baseline(GetParam(), statics));
    const auto samples = some_samples();
    const Tensor features = statics > 0 ? random({3, statics}, 77) : Tensor();
    const ModelOutput all = model.forward(input_of_samples(samples, features));
    ASSERT_TRUE(all.status) << all.status.message();
    for (int64_t b = 0; b < 3; ++b) {
      const Tensor own = statics > 0 ? features.narrow(0, b, 1) : Tensor();
      const ModelOutput alone = model.forward(input_of_samples({samples[static_cast<size_t>(b)]}, own));
      // sums in another order
      EXPECT_LT(relative_error(alone.outputs[0], all.outputs[b]), 1e-12) << "sample " << b;
      EXPECT_LT(relative_error(alone.w[0][0], all.w[0][b]), 1e-12) << "sample " << b;
    }
    // other outputs for other samples, or nothing was compared
    EXPECT_GT(relative_error(all.outputs[1], all.outputs[0]), 1e-6);
  }
}

TEST_P(Architectures, StaticFeaturesMatter) {
  const Model model = small_model_of(small_baseline(GetParam(), testing::kBaselineStatics));
  const Tensor features = random({3, testing::kBaselineStatics}, 77);
  const Tensor one = model.forward(input_of_samples(some_samples(), features)).outputs;
  const Tensor other = model.forward(input_of_samples(some_samples(), features + 1)).outputs;
  EXPECT_GT(relative_error(other, one), 1e-6);
}

TEST_P(Architectures, GradientsAreThoseOfDifferences) {
  const Model model = small_model_of(small_baseline(GetParam(), testing::kBaselineStatics));
  const ModelInput input = input_of_samples(some_samples(), random({3, testing::kBaselineStatics}, 77));
  GradcheckOptions options = {.modes = {Gradient::Exact}, .directions = 1, .step = 1e-5};
  if (model.has_solver()) options.modes.push_back(Gradient::Checkpointed);
  // steps of 1e-5 in functions of order 1: about 1e-10 of the third derivative, and rounding
  for (const GradcheckRow& row : gradcheck(model, input, random_loss(3), options)) {
    for (const double error : row.errors) EXPECT_LT(error, 1e-6) << row.name;
  }
}

TEST_P(Architectures, GradientsOfValuesAreThoseOfDifferences) {
  const Model model = small_model_of(small_baseline(GetParam()));
  const ModelInput input = input_of_samples(some_samples());
  const Tensor weight = random({3, testing::kBaselineOutputs}, 9);
  const auto loss = [&](const Tensor& values) {
    ModelInput moved = input;
    moved.series.values = values;
    return (model.forward(moved).outputs * weight).sum();
  };
  const Tensor got = testing::autograd_gradient(loss, input.series.values);
  const Tensor expected = testing::central_difference(loss, input.series.values, 1e-5);
  EXPECT_LT(relative_error(got, at::nan_to_num(expected, 0)), 1e-6);
}

TEST_P(Architectures, OutputsAtAllTimes) {
  const Model model = small_model_of(small_baseline(GetParam()));
  ModelInput input = input_of_samples(some_samples());
  const Tensor last = model.forward(input).outputs;
  const Tensor times = input.series.times;
  // at every row, and a little later in every gap
  std::vector<double> wanted;
  std::vector<int64_t> offsets = {0};
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t from = input.series.offsets[b].item<int64_t>(),
                  to = input.series.offsets[b + 1].item<int64_t>();
    for (int64_t i = from; i < to; ++i) {
      const double t = times[i].item<double>();
      wanted.push_back(t);
      if (i + 1 < to) wanted.push_back(t + 0.3 * (times[i + 1].item<double>() - t));
    }
    offsets.push_back(static_cast<int64_t>(wanted.size()));
  }
  input.output_times = {at::tensor(wanted, at::kDouble), at::tensor(offsets, at::kLong)};
  const ModelOutput all = model.forward(input);
  ASSERT_EQ(all.outputs.size(0), static_cast<int64_t>(wanted.size()));
  EXPECT_TRUE(at::isfinite(all.outputs).all().item<bool>());
  // windows of log-signatures are stepped through otherwise where outputs lie inside of them
  const bool windows = testing::text_at(model.config(), "/control/kind") == "log_signature";
  // from row to row further outputs change nothing; elsewhere they are further steps, whose error is smaller
  const bool rows = testing::text_at(model.config(), "/control/kind") == "hold" &&
                    !model.config().architecture.get_if<LatentOde>();
  for (int64_t b = 0; b < 3 && !windows; ++b)
    EXPECT_LT(relative_error(all.outputs[offsets[static_cast<size_t>(b) + 1] - 1], last[b]),
              rows ? 1e-12 : 0.05)
        << b;
}

TEST_P(Architectures, AFileKeepsThem) {
  const Model model = small_model_of(small_baseline(GetParam(), testing::kBaselineStatics));
  const std::string path = ::testing::TempDir() + "system_" + GetParam() + ".safetensors";
  save_model(path, model);
  const Model again = load_model(path);
  std::remove(path.c_str());
  EXPECT_TRUE(again.config() == model.config());
  const ModelInput input = input_of_samples(some_samples(), random({3, testing::kBaselineStatics}, 77));
  EXPECT_TRUE(at::equal(again.forward(input).outputs, model.forward(input).outputs));
}

TEST_P(Architectures, TrainingIsTheSameForASeedAndOtherForAnother) {
  const ModelConfig config = with_setting(small_baseline(GetParam()), "dropout", "0.5");
  const Model model = small_model_of(config);
  const ModelInput input = input_of_samples(some_samples());
  const auto pass = [&](uint64_t seed) {
    return model.forward(input, {.mode = Mode::Train, .seed = seed}).outputs;
  };
  EXPECT_TRUE(at::equal(pass(1), pass(1)));
  EXPECT_FALSE(at::equal(pass(1), pass(2)));
  EXPECT_TRUE(at::equal(model.forward(input).outputs, model.forward(input, {.seed = 4}).outputs));
}

TEST_P(Architectures, ABrokenSeriesIsNamed) {
  const Model model = small_model_of(small_baseline(GetParam()));
  auto samples = some_samples();
  samples[1].second[2][1] = INFINITY;
  const std::string trouble = error_message([&] { model.forward(input_of_samples(samples)); });
  EXPECT_NE(trouble.find("sample 1"), std::string::npos) << trouble;
}

INSTANTIATE_TEST_SUITE_P(All, Architectures, ::testing::ValuesIn(testing::trained_models()),
                         [](const auto& info) { return testing::name_of_test(info.param); });

TEST(ArchitecturesCompared, TheAdjointConverges) {
  for (const char* name : {"ncde", "ncde-rank-one", "gru-ode-direct", "ode-rnn"}) {
    ModelConfig config = small_baseline(name);
    // a field without relus: corners would spoil the order
    if (config.architecture.get_if<NeuralCde>()) config = with_setting(config, "field.layers", "0");
    Model model = small_model_of(config);
    const ModelInput input = input_of_samples(some_samples());
    const auto error = [&](double max_step) {
      const auto gradient = [&](Gradient mode) {
        SolverConfig solver = *solver_of(model.config());
        solver.steps = ObservationSteps{.max_step = max_step};
        solver.gradient = mode;
        model.set_solver(solver);
        std::vector<Tensor> flat;
        // the signal's values are no parameters of the adjoint's equation everywhere
        const Tensor loss = (model.forward(input).outputs * random({3, testing::kBaselineOutputs}, 9)).sum();
        for (const Tensor& g : vector_jacobian({loss}, model.parameter_tensors(), {at::ones_like(loss)}))
          flat.push_back(g.reshape({-1}));
        return at::cat(flat, 0);
      };
      const Tensor exact = gradient(Gradient::Exact), adjoint = gradient(Gradient::Adjoint);
      return ((adjoint - exact).norm() / exact.norm()).item<double>();
    };
    const double coarse = error(0.2), fine = error(0.1);
    // both are as good as steps of order four
    EXPECT_LT(fine, std::max(coarse / 6, 1e-12)) << name << ": " << coarse;
    EXPECT_LT(coarse, 1e-2) << name;
  }
}

// steps one by one through the generic solver, and all stages prepared at once
TEST(ArchitecturesCompared, PreparedStepsAreTheSolversSteps) {
  for (const char* name : {"ncde", "ncde-rank-one", "nrde", "gru-ode", "gru-ode-direct"}) {
    Model model = small_model_of(small_baseline(name));
    const ModelInput input = input_of_samples(some_samples());
    const Tensor fast = model.forward(input).outputs;
    const auto fast_gradients = gradients_of(model, input);
    int64_t looks = 0;
    const Tensor slow =
        model.forward(input, {.observe = [&](const Time&, const Samples&) { ++looks; }}).outputs;
    EXPECT_GT(looks, 10);
    EXPECT_LT(relative_error(fast, slow), 1e-12) << name;
    SolverConfig solver = *solver_of(model.config());
    solver.gradient = Gradient::Checkpointed;
    model.set_solver(solver);
    const auto slow_gradients = gradients_of(model, input);
    for (size_t i = 0; i < fast_gradients.size(); ++i)
      EXPECT_LT(relative_error(fast_gradients[i], slow_gradients[i]), 1e-10) << name << " " << i;
  }
}

// little memory: fewer states are kept, and the gradient is the same
TEST(ArchitecturesCompared, LittleMemoryGivesTheSameGradient) {
  Model model = small_model_of(small_baseline("ncde"));
  const ModelInput input = input_of_samples(some_samples());
  const auto before = gradients_of(model, input);
  SolverConfig solver = *solver_of(model.config());
  solver.memory_limit = 2000;
  model.set_solver(solver);
  const auto after = gradients_of(model, input);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_LT(relative_error(after[i], before[i]), 1e-10) << i;
}

TEST(ArchitecturesCompared, WhatCannotBeIsSaid) {
  const Model model = small_model_of(small_baseline("gru"));
  ModelInput input = input_of_samples(some_samples());
  input.start = FastWeightState{};
  EXPECT_EQ(error_message([&] { model.forward(input); }),
            "[model] architecture gru reads a series from its beginning; only fast weight programmers take a "
            "start");
  EXPECT_EQ(error_message([&] { small_model_of(small_baseline("naive")).to(at::Device(at::kCUDA)); }),
            "[model] architecture naive runs on the CPU only");
  const auto refusal = [](const std::string& name, const char* key, const char* value) {
    return error_message([&] { check_config(with_setting(small_baseline(name), key, value)); });
  };
  EXPECT_EQ(refusal("gru", "solver.method", "euler"),
            "[config] solver.method would not be used with architecture gru");
  EXPECT_EQ(refusal("delta-cde", "field.layers", "3"),
            "[config] field.layers would not be used with architecture fast_weights");
  EXPECT_EQ(refusal("ncde", "heads", "8"), "[config] heads would not be used with architecture neural_cde");
  EXPECT_NE(refusal("ncde", "control.kind", "hold").find("needs x'(t)"), std::string::npos);
  EXPECT_NE(refusal("lstm", "control.kind", "rectilinear").find("processes rows"), std::string::npos);
  EXPECT_NE(refusal("gru-d", "rows.values_only", "true").find("needs rows.input published"),
            std::string::npos);
  EXPECT_NE(refusal("ncde", "hidden_size", "1000000")
                .find("the limit is 1000000000; reduce hidden_size, which is 1000000"),
            std::string::npos);
  EXPECT_NE(refusal("lstm", "hidden_size", "100000").find("the limit is"), std::string::npos);
  EXPECT_EQ(refusal("gru-d", "rows.input", "published"), "");
  EXPECT_NE(error_message([] {
              ModelConfig config = small_baseline("gru-d");
              config.channels = 4;
              config.architecture.get<GapGru>().rows.input = RowInput::Published;
              check_config(config);
            }).find("an odd number of channels, got 4"),
            std::string::npos);
  EXPECT_NE(error_message([] { named_model("gru-x", {}); }).find("the nearest is 'gru-"), std::string::npos);
}

}  // namespace
}  // namespace fastweights

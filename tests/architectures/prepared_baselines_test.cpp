#include "architectures/cases.h"
#include "fastweights/network.h"
#include "tensor/autograd.h"

/// Prepared batches of baselines: selections, and replaced solvers.

namespace fastweights {
namespace {

using testing::error_message;
using testing::input_of_samples;
using testing::random;
using testing::relative_error;
using testing::small_baseline;
using testing::small_model_of;
using testing::some_samples;

using Samples3 = std::vector<std::pair<Tensor, Tensor>>;

class PreparedBaselines : public ::testing::TestWithParam<std::string> {};

// outputs at some rows and in a gap, several of one sample, and none of another
ModelInput input_with_times(const Samples3& samples, const Tensor& statics,
                            const std::vector<int64_t>& counts) {
  ModelInput input = input_of_samples(samples, statics);
  std::vector<Tensor> times;
  std::vector<int64_t> offsets = {0};
  for (size_t b = 0; b < samples.size(); ++b) {
    const Tensor& t = samples[b].first;
    const Tensor own = at::stack({t[1], 0.7 * t[2] + 0.3 * t[3], t[3]}, 0).slice(0, 0, counts[b]);
    times.push_back(own);
    offsets.push_back(offsets.back() + own.size(0));
  }
  input.output_times = {at::cat(times, 0), at::tensor(offsets, at::kLong)};
  return input;
}

std::vector<Tensor> gradients_of(const Model& model, const ModelOutput& output) {
  const Tensor loss = (output.outputs * random(output.outputs.sizes(), 9)).sum();
  return vector_jacobian({loss}, model.parameter_tensors(), {at::ones_like(loss)});
}

void expect_same(const Model& model, const ModelOutput& got, const ModelOutput& expected) {
  EXPECT_TRUE(at::equal(got.times, expected.times));
  EXPECT_TRUE(at::equal(got.offsets, expected.offsets));
  EXPECT_EQ(got.steps, expected.steps);
  // sums in another order
  EXPECT_LT(relative_error(got.outputs, expected.outputs), 1e-12);
  EXPECT_LT(relative_error(got.w[0], expected.w[0]), 1e-12);
  EXPECT_LT(relative_error(got.last.w[0], expected.last.w[0]), 1e-12);
  EXPECT_TRUE(at::equal(got.last.t, expected.last.t));
  const auto found = gradients_of(model, got), right = gradients_of(model, expected);
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(relative_error(found[i], right[i]), 1e-10) << model.parameters()[i].first;
}

TEST_P(PreparedBaselines, SelectedSamplesAreABatchOfTheirOwn) {
  const Model model = small_model_of(small_baseline(GetParam(), testing::kBaselineStatics));
  const Samples3 s = some_samples();
  const Tensor features = random({3, testing::kBaselineStatics}, 77);
  const PreparedBatch all = model.prepare(input_with_times(s, features, {2, 0, 3}));
  const Tensor own = at::stack({features[2], features[0], features[1]}, 0);
  const ModelOutput expected = model.forward(input_with_times({s[2], s[0], s[1]}, own, {3, 2, 0}));
  expect_same(model, model.forward(all.select({2, 0, 1})), expected);
  // a selection of a selection
  const ModelOutput two = model.forward(input_with_times({s[2], s[0]}, own.slice(0, 0, 2), {3, 2}));
  expect_same(model, model.forward(all.select({1, 0, 2}).select({2, 1})), two);
  EXPECT_TRUE(all.contents().separable());
  EXPECT_GT(all.bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, PreparedBaselines, ::testing::ValuesIn(testing::trained_baselines()),
                         [](const auto& info) { return testing::name_of_test(info.param); });

TEST(PreparedBaseline, AReplacedSolverPlansItsOwnSteps) {
  for (const char* name : {"ncde", "gru-ode-direct", "ode-rnn"}) {
    Model model = small_model_of(small_baseline(name));
    const ModelInput input = input_of_samples(some_samples());
    const PreparedBatch batch = model.prepare(input), some = batch.select({1, 2});
    SolverConfig solver = *solver_of(model.config());
    solver.method = euler();
    const Tensor before = model.forward(batch).outputs;
    model.set_solver(solver);
    const Tensor after = model.forward(input).outputs;
    EXPECT_GT(relative_error(after, before), 1e-6) << name;
    EXPECT_LT(relative_error(model.forward(batch).outputs, after), 1e-12) << name;
    EXPECT_LT(relative_error(model.forward(some).outputs, after.slice(0, 1)), 1e-12) << name;
  }
}

TEST(PreparedBaseline, GradientsByTheGenericSolverOfASelection) {
  Model model = small_model_of(small_baseline("ncde"));
  const PreparedBatch some = model.prepare(input_of_samples(some_samples())).select({1, 2});
  const auto exact = gradients_of(model, model.forward(some));
  SolverConfig solver = *solver_of(model.config());
  solver.gradient = Gradient::Checkpointed;
  model.set_solver(solver);
  const auto checkpointed = gradients_of(model, model.forward(some));
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_LT(relative_error(checkpointed[i], exact[i]), 1e-10) << i;
}

TEST(PreparedBaseline, BatchesOfOtherArchitecturesAreRefused) {
  const ModelInput input = input_of_samples(some_samples());
  const auto model = [](const char* name) { return small_model_of(small_baseline(name)); };
  const std::string refusal = "[model] this batch was prepared by a model of another architecture";
  EXPECT_EQ(error_message([&] { model("gru-d").forward(model("gru").prepare(input)); }), refusal);
  EXPECT_EQ(error_message([&] { model("ncde").forward(model("gru-ode").prepare(input)); }), refusal);
  EXPECT_EQ(error_message([&] { model("ncde").forward(model("gru").prepare(input)); }), refusal);
}

}  // namespace
}  // namespace fastweights

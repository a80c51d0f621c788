#include "train/importance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fastweights/run.h"
#include "support/support.h"
#include "train/train_cases.h"

namespace fastweights {
namespace {

// a model of random parameters, large enough to be far from linear
TrainedModel model_of(const std::string& name, const DataSet& data) {
  const Run run = make_run({.model = name}, data);
  Model model(run.config.model, {.seed = 3});
  const at::NoGradGuard no_grad;
  for (const auto& [parameter, tensor] : model.parameters()) tensor.mul_(1.5);
  return {model, run.data.preparation, run.data.task};
}

// log-odds of the class that the series itself is given
double output_of(const TrainedModel& trained, const PreparedData& data, int64_t guess) {
  const Tensor out = predict(trained.model, data, trained.preparation, trained.task).outputs.to(at::kDouble);
  if (out.size(1) == 1) return (guess == 1 ? 1 : -1) * out[0][0].item<double>();
  const Tensor p = at::softmax(out[0], 0)[guess];
  return (p / (1 - p)).log().item<double>();
}

PreparedData one_series(const PreparedData& all, int64_t sample) {
  PreparedData one = all;
  const int64_t first = all.offsets[sample].item<int64_t>(), last = all.offsets[sample + 1].item<int64_t>();
  one.ids = {all.ids[static_cast<size_t>(sample)]};
  one.values = all.values.slice(0, first, last).clone();
  one.times = all.times.slice(0, first, last);
  one.offsets = at::tensor({int64_t{0}, last - first}, at::kLong);
  one.labels = all.labels.slice(0, sample, sample + 1);
  return one;
}

DataSet three_classes(int64_t samples) {
  DataSet data = two_classes(samples);
  data.head.classes.push_back("level");
  for (size_t b = 0; b < data.labels.size(); b += 3) data.labels[b] = 2;
  return data;
}

class ImportanceOf : public ::testing::TestWithParam<const char*> {};

// of 48 nodes; gradients jump where units of feed-forward layers switch on
constexpr double kTolerance = 0.02;

TEST_P(ImportanceOf, ContributionsSumToTheDifferenceOfOutputs) {
  for (const DataSet& set : {two_classes(24), three_classes(24)}) {
    const TrainedModel trained = model_of(GetParam(), set);
    const PreparedData all = prepare(set, trained.preparation);
    for (const int64_t sample : {0, 5}) {
      const std::optional<Importance> found = importance_of(trained, all, sample);
      ASSERT_TRUE(found);
      const PreparedData own = one_series(all, sample);
      PreparedData baseline = own;
      baseline.values = at::where(own.values.isnan(), own.values, at::zeros_like(own.values));
      const Tensor outputs = predict(trained.model, own, trained.preparation, trained.task).outputs;
      const int64_t guess = predicted_classes(class_probabilities(outputs), 0.5)[0].item<int64_t>();
      const double difference = output_of(trained, own, guess) - output_of(trained, baseline, guess);
      ASSERT_GT(std::abs(difference), 1e-3) << "a model that reads nothing shows nothing";
      EXPECT_NEAR(found->values.sum().item<double>(), difference,
                  kTolerance * std::max(1.0, std::abs(difference)));
      EXPECT_NEAR(found->output - found->baseline, difference, 1e-4);
      EXPECT_EQ(found->of, "log-odds of " + trained.preparation.classes[static_cast<size_t>(guess)]);
      EXPECT_EQ(found->values.sizes(), own.values.sizes());
      // what was not observed has contributed nothing
      EXPECT_EQ(found->values.masked_select(own.values.isnan()).abs().sum().item<double>(), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImportanceOf,
                         ::testing::Values("delta-cde", "hebb-ode", "oja-rde", "ncde", "gru", "gru-d",
                                           "gru-ode", "lem", "ode-rnn", "delta-net", "ode-rfwp"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Importance, TheBaselineHasNone) {
  const DataSet set = two_classes(12);
  const TrainedModel trained = model_of("delta-cde", set);
  PreparedData all = prepare(set, trained.preparation);
  all.values = all.values * 0;
  const std::optional<Importance> found = importance_of(trained, all, 1);
  EXPECT_EQ(found->values.abs().sum().item<double>(), 0);
  EXPECT_EQ(found->output, found->baseline);
}

TEST(Importance, TasksWithoutOneOutputHaveNone) {
  const DataSet set = two_classes(12);
  const auto run = make_run({.settings = {{"task.kind", "forecast"}}}, set);
  const TrainedModel trained = {Model(run.config.model), run.data.preparation, run.data.task};
  EXPECT_FALSE(importance_of(trained, prepare(set, trained.preparation), 0));
}

}  // namespace
}  // namespace fastweights

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/data_support.h"
#include "fastweights/run.h"
#include "fastweights/task.h"
#include "support/support.h"

/// Whatever the length of a gap, predictions of default models stay finite and W stays bounded, and beyond
/// some length they no longer change.

namespace fastweights::testing {
namespace {

constexpr int64_t kSamples = 6, kRows = 10;

// random walks about 1 apart in time, with one longer gap in each series
DataSet walks(uint64_t seed, double gap) {
  Random random(seed);
  std::vector<Series> all;
  for (int64_t b = 0; b < kSamples; ++b) {
    const auto place = static_cast<int64_t>(random.uniform(1, kRows));
    Series series = {.id = message("s", b), .label = b % 2 == 0 ? "up" : "down"};
    double time = 0, level = 0;
    for (int64_t n = 0; n < kRows; ++n) {
      if (n > 0) time += random.uniform(0.5, 1.5) * (n == place ? gap : 1);
      level += random.normal();
      series.times.push_back(time);
      series.values.push_back(level);
      series.values.push_back(random.uniform() < 0.2 ? std::nan("") : random.normal());
    }
    all.push_back(series);
  }
  return collect_series({.name = "walks", .origin = "generated", .channels = {"a", "b"}}, all);
}

struct GapModel {
  const char* rule;
  Drive drive;
  ControlPath control;
  int64_t layers;
};

std::vector<GapModel> gap_models() {
  std::vector<GapModel> models;
  for (const char* rule : {"hebb", "oja", "delta_pre", "delta_post"}) {
    for (const Drive drive : {Drive::X, Drive::DerivativeKeys, Drive::DerivativeValues, Drive::Derivative}) {
      for (const ControlPath& control : {ControlPath(HermiteCubic{}), ControlPath(Linear{})}) {
        for (const int64_t layers : {1, 2}) models.push_back({rule, drive, control, layers});
      }
      models.push_back({rule, drive, NaturalCubic{}, 1});
      models.push_back({rule, drive, Rectilinear{}, 1});
    }
    models.push_back({rule, Drive::X, Hold{}, 1});
    for (const Drive drive : {Drive::X, Drive::Derivative})
      models.push_back({rule, drive, LogSignatures{}, 1});
  }
  return models;
}

Model model_of(const GapModel& chosen, const Preparation& preparation, uint64_t seed) {
  ModelConfig config = named_model(
      "delta-cde",
      {.channels = preparation.model_channels(), .outputs = 1, .median_gap = preparation.median_gap});
  FastWeights& fast = fast_weights(config);
  fast.rule = chosen.rule;
  fast.drive = chosen.drive;
  fast.control.path = chosen.control;
  fast.layers = chosen.layers;
  return Model(config, {.seed = seed});
}

struct GapOutput {
  Tensor logits;
  double largest;  // entry of W
};

GapOutput output_of(const Model& model, const Preparation& preparation, uint64_t seed, double gap) {
  const PreparedData data = prepare(walks(seed, gap), preparation);
  std::vector<int64_t> all;
  for (int64_t b = 0; b < kSamples; ++b) all.push_back(b);
  const Batch batch = make_batch(data, preparation, {.kind = TaskKind::Classification}, all, /*seed=*/1);
  const at::NoGradGuard no_grad;
  const ModelOutput out = model.forward(batch.input);
  EXPECT_TRUE(out.status) << out.status.message();
  return {out.outputs, at::stack(out.w).abs().max().item<double>()};
}

TEST(Gaps, OfAnyLengthKeepPredictionsFiniteAndWBounded) {
  for (const GapModel& chosen : gap_models()) {
    for (const uint64_t seed : {1, 2}) {
      const std::string name = message(chosen.rule, ", drive ", static_cast<int>(chosen.drive), ", control ",
                                       chosen.control.index(), ", ", chosen.layers, " layers, seed ", seed);
      const Preparation preparation = fit_preparation(walks(seed, 1));
      const Model model = model_of(chosen, preparation, seed);
      const GapOutput usual = output_of(model, preparation, seed, 1);
      for (const double gap : {3.0, 30.0, 1e3, 1e4, 1e6, 1e9}) {
        const GapOutput output = output_of(model, preparation, seed, gap);
        EXPECT_TRUE(at::isfinite(output.logits).all().item<bool>()) << name << ", gap " << gap;
        // a step writes at most what is missing of its value, and Oja's rule divides by the length of one
        EXPECT_LT(output.largest, 5 * usual.largest + 5) << name << ", gap " << gap;
      }
      const Tensor far = output_of(model, preparation, seed, 1e6).logits,
                   farther = output_of(model, preparation, seed, 1e9).logits;
      EXPECT_LT((far - farther).abs().max().item<double>(), 1e-3) << name;
    }
  }
}

// the first channel rises or falls; one step in the middle of each series is `gap` times as long
DataSet trends(uint64_t seed, double gap) {
  Random random(seed);
  std::vector<Series> all;
  for (int64_t b = 0; b < 40; ++b) {
    const double slope = b % 2 == 0 ? 0.3 : -0.3;
    Series series = {.id = message("s", b), .label = slope > 0 ? "up" : "down"};
    double time = 0;
    for (int64_t n = 0; n < 12; ++n) {
      if (n > 0) time += random.uniform(0.7, 1.3) * (n == 6 ? gap : 1);
      series.times.push_back(time);
      series.values.push_back(slope * static_cast<double>(n - 6) + 0.3 * random.normal());
      series.values.push_back(random.normal());
    }
    all.push_back(series);
  }
  return collect_series({.name = "trends", .origin = "generated", .channels = {"a", "b"}}, all);
}

TrainedModel trained_on_trends(uint64_t seed, const Settings& settings) {
  const TestFolder folder;
  RunSetup setup = {.settings = {{"training.epochs", "40"}, {"training.seed", message(seed)}}};
  setup.settings.insert(setup.settings.end(), settings.begin(), settings.end());
  const RunResult result = train_run(make_run(setup, trends(seed, 1)), {.folder = folder.path("run")});
  EXPECT_EQ(result.end, RunEnd::Finished) << result.message;
  return result.trained.value();
}

double accuracy_over(const TrainedModel& trained, double gap) {
  return metric(evaluate(trained, trends(/*seed=*/100, gap)).metrics, "accuracy");
}

TEST(Gaps, OfAnyLengthKeepTheAccuracyOfATrainedModel) {
  for (const uint64_t seed : {1, 2}) {
    const TrainedModel trained = trained_on_trends(seed, {});
    for (const double gap : {1.0, 20.0, 100.0, 1e4, 1e6, 1e9})
      EXPECT_EQ(accuracy_over(trained, gap), 1) << "seed " << seed << ", gap " << gap;
  }
  // explicit steps over model time that does not saturate lose it
  const TrainedModel explicit_steps =
      trained_on_trends(1, {{"model.solver.method", "rk4"}, {"prepare.usual_gaps", "0"}});
  EXPECT_EQ(accuracy_over(explicit_steps, 1), 1);
  EXPECT_LT(accuracy_over(explicit_steps, 100), 0.9);
}

}  // namespace
}  // namespace fastweights::testing
